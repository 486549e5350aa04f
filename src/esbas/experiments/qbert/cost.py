"""What a profile would take, computed from rates that are measured on this machine within seconds."""

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import esbas
from esbas import seeding
from esbas.engine.progress import Progress
from esbas.experiments.qbert.profiles import NETWORKS, Network, Profile
from esbas.experiments.qbert.setup import COPIES, QbertSetup
from esbas.experiments.qbert.sweep import random_policy
from esbas.learners.deep.pytorch import torch
from esbas.reporting import Results, terminal
from esbas.reporting.files import write_json
from esbas.training.config import usable_cores
from esbas.trajectory import Transition

if TYPE_CHECKING:
    from esbas.experiments.qbert import Qbert

SECONDS = 1.5  # of processor time for each measurement
ROWS = 10_000  # of the memory that is measured: large enough to be written to files of its own
FEWEST = 300  # transitions to measure with
FRAME, OTHERS = 84 * 84, 26  # bytes of a row of the replay memory: its image; action, reward and bookkeeping
ARRAYS = {"rmsprop": 5, "adam": 7}  # of each network: target, and two versions of the weights and of each moment
GIGABYTE = 1e9
HEADER = "what", "value", "unit"


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds and bytes, measured. Times are those of one core."""

    step: float  # seconds of the game and its preprocessing per agent step
    act: dict[str, float]  # seconds per action, by network
    update: dict[str, float]  # seconds per update, by network, with sampling
    gpu_update: dict[str, float] | None  # the same on a GPU; None if there is none
    weights: dict[str, int]  # by network
    process: float  # bytes of a process without the replay memory
    libraries: float  # bytes that all processes share
    disk_per_frame: float  # bytes


def publish(options: "Qbert") -> None:
    """Measure, print the estimate, and write estimate.json."""
    options.check()
    folder = options.out or Path("esbas-qbert-estimate")
    results = Results(folder, command=options.command, config=options.settings() | {"estimate": True})
    rates = measure(options.setup)
    rows = estimate(rates, options.values, cores=usable_cores())
    results.table("estimate", HEADER, rows)
    named = [dict(zip(HEADER, row, strict=True)) for row in rows]
    write_json(folder / "estimate.json", {"rates": vars(rates), "estimate": named})
    title = f"Profile {options.profile}, {options.values.steps:,} agent steps on {options.setup.game}"
    terminal.print_table(title, HEADER, [[what, _short(value), unit] for what, value, unit in rows])
    terminal.print_text(
        "Times are processor time. Hours on several cores assume that the work divides evenly. The games without exploration at "
        "the end of a run add at most a fifth to the acting.",
        f"Files: {folder / 'estimate.json'}, {folder / 'estimate.csv'}",
    )


def estimate(rates: Rates, profile: Profile, *, cores: int) -> list[list[object]]:
    """The costs as rows, see HEADER."""
    acting = profile.steps * (rates.step + sum(rates.act.values()) / len(rates.act)) / 3600  # hours of one core
    updates = max(0, profile.steps - profile.replay_start) / profile.update_every
    training = updates * COPIES * sum(rates.update.values()) / 3600
    alone = len(NETWORKS) * COPIES * acting + training  # six runs, one network each
    gpu = None if rates.gpu_update is None else updates * COPIES * sum(rates.gpu_update.values()) / 3600
    on_gpu = "not measured here: no GPU" if gpu is None else gpu
    frames = (profile.memory + profile.history - 1) * (FRAME + OTHERS) / GIGABYTE
    array = COPIES * sum(rates.weights.values()) * 4 / GIGABYTE
    networks = ARRAYS[profile.optimizer] * array
    processes = ((1 + cores) * rates.process + rates.libraries) / GIGABYTE
    stored = profile.memory * rates.disk_per_frame / GIGABYTE
    rows: list[list[object]] = [
        ["game and preprocessing", 1000 * rates.step, "ms per agent step"],
        *([f"network {name}: one action", 1000 * seconds, "ms"] for name, seconds in rates.act.items()),
        *([f"network {name}: one update, with sampling", 1000 * seconds, "ms"] for name, seconds in rates.update.items()),
        ["updates of each network", round(updates), ""],
        ["acting", acting, "core-hours"],
        ["updates of six networks", training, "core-hours"],
        ["one run in total", acting + training, "core-hours"],
        [f"one run on {cores} cores", max(acting, (acting + training) / cores), "hours, at best"],
        ["the same with six networks alone", acting + training + alone, "core-hours"],
        ["updates of six networks on a GPU", on_gpu, "GPU-hours"],
        ["replay memory", frames, "GB of memory"],
        ["networks, targets and optimisers", networks, "GB of memory"],
        [f"{1 + cores} processes with PyTorch", processes, "GB of memory"],
        ["memory in total", frames + networks + processes, "GB of memory"],
        ["replay memory, compressed", stored, "GB on disk"],
        ["networks in a checkpoint", (4 if profile.optimizer == "rmsprop" else 5) * array, "GB on disk"],
    ]
    return rows


def measure(setup: QbertSetup) -> Rates:
    """Play random games, then let each network act and learn."""
    task = setup.make_task()
    try:
        with Progress("measuring", total=2 + len(NETWORKS)) as progress:
            transitions, step = _random_games(task)
            progress.advance("the game")
            measured = {}
            for network in NETWORKS:
                measured[network.name] = _measure_network(setup, network, task, transitions, device="cpu")
                progress.advance(f"network {network.name}")
            process, libraries = _measure_process(setup, task, transitions)
            progress.advance("a process")
        fast = None
        if torch.cuda.is_available():
            found = {each.name: _measure_network(setup, each, task, transitions, device="cuda") for each in NETWORKS}
            fast = {name: each["update"] for name, each in found.items()}
    finally:
        task.close()
    return Rates(
        step=step,
        act={name: each["act"] for name, each in measured.items()},
        update={name: each["update"] for name, each in measured.items()},
        gpu_update=fast,
        weights={name: int(each["weights"]) for name, each in measured.items()},
        process=process,
        libraries=libraries,
        disk_per_frame=max(each["disk"] for each in measured.values()),
    )


def _random_games(task: Any) -> tuple[list[Transition], float]:
    """Transitions of whole games, and the seconds that each took."""
    found: list[Transition] = []
    start, game = time.process_time(), 0
    while len(found) < FEWEST or time.process_time() - start < SECONDS:
        rng = seeding.generator(0, "measured games", game)
        esbas.play(task, random_policy(task), rng=rng, seed=game, see=found.append)
        game += 1
    return found, (time.process_time() - start) / len(found)


def _measure_network(
    setup: QbertSetup, network: Network, task: Any, transitions: list[Transition], *, device: str
) -> dict[str, float]:
    """Seconds per action and update of one network, while the two of its shape learn side by side; bytes on disk per frame."""
    often = replace(setup.profile, memory=ROWS, update_every=1, replay_start=len(transitions))
    names = tuple(f"{network.name} {copy}" for copy in range(1, COPIES + 1))
    recipe = replace(setup, profile=often).recipe(names).on_device(device)
    with tempfile.TemporaryDirectory() as place:
        learners: list[Any] = recipe.build(task, steps=often.steps, seed=0, folder=Path(place))
        try:
            for transition in transitions:  # nobody learns yet
                _learn(learners, transition)
            learners[0].state_dict()  # writes the frames
            disk = sum(path.stat().st_size for path in Path(place).iterdir()) / len(transitions)
            stream = cycle(transitions)
            clock = time.process_time if device == "cpu" else time.perf_counter  # others may use the same cores
            update = _seconds_of(lambda: _learn(learners, next(stream)), clock) / len(learners)
            policy, rng = learners[0].greedy_policy(), seeding.generator(0, "measured actions")
            act = _seconds_of(lambda: policy.act(next(stream).observation, rng), clock)
            weights = learners[0].policy_state()["weights"].size
        finally:
            for learner in learners:
                learner.close()
    return {"act": act, "update": update, "weights": weights, "disk": disk}


def _measure_process(setup: QbertSetup, task: Any, transitions: list[Transition]) -> tuple[float, float]:
    """Bytes of a process that trains: its own, and those of libraries. The one that acts has as many, beside the frames."""
    often = replace(setup.profile, memory=ROWS, update_every=1, replay_start=setup.profile.batch)
    recipe = replace(setup, profile=often).recipe(tuple(f"{NETWORKS[-1].name} {copy}" for copy in range(1, COPIES + 1)))
    before, learners = _children(), recipe.build(task, steps=often.steps, seed=0, processes=2)
    try:
        for transition in transitions[: often.replay_start + often.n_step + 2]:  # some updates
            _learn(learners, transition)
        found = [[_resident(process, kind) for kind in ("RssAnon", "RssFile")] for process in _children() - before]
    finally:
        for learner in learners:
            learner.close()  # type: ignore[attr-defined]  # all are DQNs
    own, files = (max(each, default=0.0) for each in zip(*found, strict=True)) if found else (0.0, 0.0)
    return own, files


def _children() -> set[str]:
    """The numbers of the processes that this one has started."""
    return {number for path in Path("/proc/self/task").glob("*/children") for number in path.read_text().split()}


def _resident(process: str, kind: str) -> float:
    """Bytes of a process in memory: "RssAnon", its own, or "RssFile", of files. 0 if the system does not report them."""
    path = Path(f"/proc/{process}/status")
    found = re.search(rf"{kind}:\s+(\d+) kB", path.read_text()) if path.exists() else None
    return 0.0 if found is None else 1024.0 * int(found[1])


def _learn(learners: list[Any], transition: Transition) -> None:
    for learner in learners:
        learner.step(transition)


def _seconds_of(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """The mean duration of a call, after a first one that is not counted."""
    call()
    calls, start = 0, clock()
    while calls < 3 or clock() - start < SECONDS:
        call()
        calls += 1
    return (clock() - start) / calls


def _short(value: object) -> str:
    """Three digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
