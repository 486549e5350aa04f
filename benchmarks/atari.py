"""Six DQNs on Q*bert: the gain of a second process, the cost of sampling, and the memory."""

import gc
import os
import statistics
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import esbas
from esbas.experiments.qbert.profiles import PAPER
from esbas.experiments.qbert.setup import QbertSetup
from esbas.learner import RandomPolicy
from esbas.learners.dqn.overlapped import excerpts, overlapped
from esbas.loop import Budget

BLOCK = 200
BLOCKS = 7
WARM_UP = 400
FRAMES = 100_000
SETUP = QbertSetup(
    profile=PAPER.with_options(steps=20_000, memory=20_000, action_repeat=4, update_every=None)
)


def main() -> None:
    _processes()
    _sampling()
    _memory()


def _processes() -> None:
    runs = {processes: _run(processes) for processes in (1, 2)}
    rates: dict[int, list[float]] = {processes: [] for processes in runs}
    for _ in range(BLOCKS):  # in turn, so that a busy machine slows both of them alike
        for processes, run in runs.items():
            rates[processes].append(_block(run))
    one = statistics.median(rates[1])
    two = statistics.median(rates[2])
    print(
        f"agent steps per second, an update of each network every {PAPER.update_every}:"
        f" 1 process {one:.0f}, 2 processes {two:.0f}",
        flush=True,
    )
    _compare("two processes / one", two / one, 1.5, at_least=True)
    for run in runs.values():
        run.close()


def _run(processes: int) -> esbas.Run:
    """Return a run past its first updates, for which workers are started."""
    env = SETUP.make_env()
    learners = SETUP.recipe().build(env, steps=SETUP.profile.steps, seed=0, processes=processes)
    for learner in learners:
        # The profile waits for a larger memory.
        learner._learning_starts = WARM_UP // 2  # type: ignore[attr-defined]
    selector = esbas.SSBAS([learner.name for learner in learners])
    run = esbas.run(
        env, learners, selector, steps=WARM_UP, keep_data=False, objective=esbas.total_return()
    )
    for _ in run:
        pass
    return run


def _block(run: esbas.Run) -> float:
    """Return agent steps per second over episodes of at least `BLOCK` steps together."""
    run.budget = Budget(steps=run.steps + BLOCK)
    before = run.steps
    start = time.perf_counter()
    for _ in run:
        pass
    return (run.steps - before) / (time.perf_counter() - start)


def _sampling() -> None:
    """Print the share of drawing and copying batches in the CPU time of a run in one process."""
    run = _run(1)
    spent = 0.0
    fill = excerpts.fill

    def timed(*arguments: Any) -> None:
        nonlocal spent
        start = time.process_time()
        fill(*arguments)
        spent += time.process_time() - start

    with mock.patch.object(overlapped, "fill", timed):
        start = time.process_time()
        for _ in range(3):
            _block(run)
        _compare("sampling / whole run", spent / (time.process_time() - start), 0.05)
    run.close()


def _memory() -> None:
    """Print the memory that frames take, compared with 7.1 GB per million, as documented."""
    from esbas.learners import SharedReplay

    gc.collect()  # the memories of the runs before
    env = SETUP.make_env()
    replay = SharedReplay(env, buffer_size=FRAMES, stack=4)
    rng = np.random.default_rng(0)
    before = _resident()
    episode: list[esbas.Transition] = []
    while replay.added < FRAMES:
        if not episode:
            episode = list(_game(env, rng))
        for step in episode:  # the same game again: its frames are stored again
            replay.add(step._replace())
    taken = (_resident() - before) / FRAMES * 1e6 / 1e9
    _compare("GB per million frames / 7.1", taken / 7.1, 0.9, at_least=True)
    _compare("GB per million frames / 7.1", taken / 7.1, 1.1)
    env.close()


def _game(env: Any, rng: np.random.Generator) -> Any:
    return esbas.play(env, RandomPolicy(env.action_space), rng=rng, seed=0).transitions()


def _resident() -> float:
    """Return the main memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _compare(name: str, ratio: float, limit: float, *, at_least: bool = False) -> None:
    held = ratio >= limit if at_least else ratio <= limit
    rule = "at least" if at_least else "at most"
    print(f"{name}: {ratio:.3f} ({rule} {limit:g}: {'yes' if held else 'NO'})", flush=True)
