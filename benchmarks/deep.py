"""What six DQNs that train as one cost, against one alone and six of Stable-Baselines3; and what selection adds to a run."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import esbas
from esbas.learners.dqn import DQN
from esbas.learners.replay import SharedReplay
from esbas.learners.sb3 import SB3Learner

BLOCK, BLOCKS, WARM_UP = 150, 9, 200  # environment steps, repeats, steps before the first update
BATCH, RATE = 64, 1e-3


def main() -> None:
    runs = {"one": _run(1, _own), "six": _run(6, _own), "six of Stable-Baselines3": _run(6, _foreign)}
    costs: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(BLOCKS):  # in turn, so that a busy machine slows all of them alike
        for name, run in runs.items():
            costs[name].append(_block(run))
    one, six, foreign = (statistics.median(cost) for cost in costs.values())
    told = "MLP 64 x 64, batch 64, one update per step on CartPole-v1"
    print(f"DQN alone: {one:.0f} us per environment step; {told}", flush=True)
    print(
        f"six DQNs that train as one: {six:.0f} us, ratio to one {six / one:.2f} (at most 2.0: {_verdict(six <= 2 * one)})",
        flush=True,
    )
    ratio = f"ratio of ours {six / foreign:.2f} (at most 0.33: {_verdict(six <= foreign / 3)})"
    print(f"six DQNs of Stable-Baselines3: {foreign:.0f} us, {ratio}", flush=True)
    _selection()


def _run(count: int, make: Callable[[str, SharedReplay], Any]) -> esbas.Run:
    """A run past its first update."""
    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, capacity=20_000)
    members = [make(f"member {k}", replay) for k in range(count)]
    run = esbas.run(env, members, esbas.SSBAS([member.name for member in members]), steps=WARM_UP + 50, keep_data=False)
    for _ in run:
        pass
    return run


def _own(name: str, replay: SharedReplay) -> DQN:
    return DQN(name, replay=replay, rate=RATE, batch=BATCH, hidden=(64, 64), train_every=1, learning_starts=WARM_UP, double=False)


def _foreign(name: str, replay: SharedReplay, train_every: int = 1) -> SB3Learner:
    options = {"learning_rate": RATE, "batch_size": BATCH, "train_freq": train_every, "learning_starts": WARM_UP}
    return SB3Learner(name, "dqn", replay=replay, total_steps=100_000, options=options)  # MlpPolicy: 64 x 64


def _block(run: esbas.Run) -> float:
    """Microseconds per environment step, over episodes of at least `BLOCK` steps together."""
    run.steps = run.loop.steps + BLOCK
    before, start = run.loop.steps, time.process_time()
    for _ in run:
        pass
    return (time.process_time() - start) / (run.loop.steps - before) * 1e6


def _selection() -> None:
    """The share of a run of three members of Stable-Baselines3 that is spent neither in them nor in the environment."""
    spent = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **options)
            spent[0] += time.perf_counter() - start
            return result

        return call

    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, capacity=20_000)
    members = [_foreign(f"member {k}", replay, train_every=4) for k in range(3)]
    for learner in members:
        learner.step = timed(learner.step)  # type: ignore[method-assign]  # to look at the clock
        learner.act = timed(learner.act)  # type: ignore[method-assign]
    env.step, env.reset = timed(env.step), timed(env.reset)  # type: ignore[method-assign]
    names = [member.name for member in members]
    shares = []
    run = esbas.run(env, members, esbas.SSBAS(names), steps=WARM_UP, keep_data=False)
    for _ in run:
        pass
    for _ in range(BLOCKS):
        run.steps, spent[0], start = run.loop.steps + BLOCK, 0.0, time.perf_counter()
        for _ in run:
            pass
        whole = time.perf_counter() - start
        shares.append((whole - spent[0]) / whole)
    share = float(np.median(shares))
    told = "three DQNs of Stable-Baselines3, an update every 4 steps"
    print(f"selection and record keeping: {share:.2%} of a run of {told} (under 1 %: {_verdict(share < 0.01)})", flush=True)


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
