"""What a process of its own costs a learner, and what a time limit without one does."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import esbas
from esbas.learners import Isolated, TabularQ
from esbas.limits import limited

CALLS, MEMORY = 2000, 20_000


def small() -> TabularQ:
    """Takes next to no time itself."""
    return TabularQ("table", states=2, actions=2)


def deep() -> Any:
    """With a full memory."""
    from esbas.learners import DQN, SharedReplay  # here, so that the other process starts without PyTorch

    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, capacity=MEMORY)
    seen = np.zeros(4, np.float32)
    for _ in range(MEMORY):
        replay.add(esbas.Transition(seen, 0, 1.0, seen, False, False))
    return DQN("deep", replay=replay)


def main() -> None:
    rng, transition = np.random.default_rng(0), esbas.Transition(0, 1, 1.0, 1, False, False, 0.5)
    here, apart = small(), Isolated(small, time_limit=10.0, snapshot_every=10**9)
    costs = {"here": _calls(here, rng, transition), "isolated": _calls(apart, rng, transition)}
    told = ", ".join(
        f"{what} {cost:.0f} us" for what, cost in zip(("act", "probability", "step"), costs["isolated"], strict=True)
    )
    print(f"in a process of its own: {told}; {sum(costs['isolated']):.0f} us per environment step", flush=True)
    print(f"a learner of next to no cost, not isolated: {sum(costs['here']):.0f} us per environment step", flush=True)
    step = limited(here.step, 10.0)
    print(f"a time limit without a process: {_quick(lambda: step(transition)) - costs['here'][2]:.0f} us per call", flush=True)
    print(f"a process starts in {_start(small):.1f} s, with PyTorch in {_start(deep):.1f} s", flush=True)
    big = Isolated(deep)
    snapshot = _quick(lambda: big._keep(), calls=20)  # a part of what `step` does
    print(f"a snapshot of a DQN with a memory of {MEMORY:,} steps of CartPole-v1: {snapshot / 1e3:.1f} ms", flush=True)
    for learner in (apart, big):
        learner.close()


def _calls(learner: Any, rng: np.random.Generator, transition: esbas.Transition) -> list[float]:
    """What the calls of an environment step take: act, probability, step."""
    policy = learner.policy()
    return [
        _quick(lambda: policy.act(0, rng)),
        _quick(lambda: policy.probability(0, 1)),
        _quick(lambda: learner.step(transition)),
    ]


def _start(make: Callable[[], Any]) -> float:
    """Seconds until a new process has built its learner: the least of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        learner = Isolated(make)
        taken.append(time.perf_counter() - start)
        learner.close()
    return min(taken)


def _quick(call: Callable[[], Any], *, calls: int = CALLS) -> float:
    """Microseconds that a call takes when nobody disturbs it: the lowest tenth of many."""
    taken = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.quantile(taken, 0.1)) * 1e6
