"""The cost of isolating a learner in a separate process, and of a time limit without one."""

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
    """A learner whose own cost is negligible."""
    return TabularQ("table", states=2, actions=2)


def deep() -> Any:
    """A DQN with a full replay memory."""
    from esbas.learners import DQN, SharedReplay  # here, so that the other process starts without PyTorch

    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, capacity=MEMORY)
    seen = np.zeros(4, np.float32)
    for _ in range(MEMORY):
        replay.add(esbas.Transition(seen, 0, 1.0, seen, False, False))
    return DQN("deep", replay=replay)


def main() -> None:
    rng, transition = np.random.default_rng(0), esbas.Transition(0, 1, 1.0, 1, False, False)
    here, apart = small(), Isolated(small, time_limit=10.0, snapshot_every=10**9)
    costs = {"here": _calls(here, rng, transition), "isolated": _calls(apart, rng, transition)}
    calls = ", ".join(f"{name} {cost:.0f} us" for name, cost in costs["isolated"].items())
    print(f"isolated: {calls}; {_per_step(costs['isolated']):.0f} us per environment step", flush=True)
    print(f"the same learner, not isolated: {_per_step(costs['here']):.0f} us per environment step", flush=True)
    step = limited(here.step, 10.0)
    print(
        f"a time limit without a process: {_quick(lambda: step(transition)) - costs['here']['step']:.0f} us per call", flush=True
    )
    print(f"a process starts in {_start(small):.1f} s, with PyTorch in {_start(deep):.1f} s", flush=True)
    big = Isolated(deep)
    snapshot = _quick(lambda: big._take_snapshot(), calls=20)  # a part of what `step` does
    print(f"a snapshot of a DQN with a memory of {MEMORY:,} steps of CartPole-v1: {snapshot / 1e3:.1f} ms", flush=True)
    for learner in (apart, big):
        learner.close()


def _calls(learner: Any, rng: np.random.Generator, transition: esbas.Transition) -> dict[str, float]:
    """The duration of each call in microseconds."""
    policy = learner.policy()
    return {
        "act": _quick(lambda: policy.act(0, rng)),
        "act_with_log_prob": _quick(lambda: policy.act_with_log_prob(0, rng)),
        "step": _quick(lambda: learner.step(transition)),
    }


def _per_step(costs: dict[str, float]) -> float:
    """An environment step calls `act_with_log_prob` and `step`."""
    return costs["act_with_log_prob"] + costs["step"]


def _start(make: Callable[[], Any]) -> float:
    """The seconds that a new process takes to build its learner, the minimum of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        learner = Isolated(make)
        taken.append(time.perf_counter() - start)
        learner.close()
    return min(taken)


def _quick(call: Callable[[], Any], *, calls: int = CALLS) -> float:
    """The duration of a call in microseconds, the lowest decile of many."""
    taken = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.quantile(taken, 0.1)) * 1e6
