"""The cost of isolating a learner in a separate process, and of a time limit without one."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import esbas
from esbas._internal.limits import limited
from esbas.learners import Isolated, TabularQ

CALLS = 2000
MEMORY = 20_000


def small() -> TabularQ:
    """Return a learner whose own cost is negligible."""
    return TabularQ("table", states=2, actions=2)


def deep() -> Any:
    """Return a DQN with a full replay memory."""
    # Imported here, so that the other process starts without PyTorch.
    from esbas.learners import DQN, SharedReplay

    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, buffer_size=MEMORY)
    seen = np.zeros(4, np.float32)
    for _ in range(MEMORY):
        replay.add(esbas.Transition(seen, 0, 1.0, seen, False, False))
    return DQN("deep", replay=replay)


def main() -> None:
    rng = np.random.default_rng(0)
    transition = esbas.Transition(0, 1, 1.0, 1, False, False)
    here = small()
    apart = Isolated(small, learn_timeout=10.0, snapshot_every=10**9)
    costs_here = _calls(here, rng, transition)
    costs_apart = _calls(apart, rng, transition)
    calls = ", ".join(f"{name} {cost:.0f} us" for name, cost in costs_apart.items())
    print(f"isolated: {calls}; {_per_step(costs_apart):.0f} us per environment step", flush=True)
    print(
        f"the same learner, not isolated: {_per_step(costs_here):.0f} us per environment step",
        flush=True,
    )
    step = limited(here.step, 10.0)
    added = _quick(lambda: step(transition)) - costs_here["step"]
    print(f"a time limit without a process: {added:.0f} us per call", flush=True)
    print(
        f"a process starts in {_start(small):.1f} s, with PyTorch in {_start(deep):.1f} s",
        flush=True,
    )
    big = Isolated(deep)
    snapshot = _quick(lambda: big._take_snapshot(), calls=20)  # a part of what `step` does
    print(
        f"a snapshot of a DQN with a memory of {MEMORY:,} steps of CartPole-v1:"
        f" {snapshot / 1e3:.1f} ms",
        flush=True,
    )
    for learner in (apart, big):
        learner.close()


def _calls(
    learner: Any, rng: np.random.Generator, transition: esbas.Transition
) -> dict[str, float]:
    """Return the duration of each call in microseconds."""
    policy = learner.policy()
    return {
        "act": _quick(lambda: policy.act(0, rng)),
        "act_with_log_prob": _quick(lambda: policy.act_with_log_prob(0, rng)),
        "step": _quick(lambda: learner.step(transition)),
    }


def _per_step(costs: dict[str, float]) -> float:
    """Return the cost of an environment step, which calls `act_with_log_prob` and `step`."""
    return costs["act_with_log_prob"] + costs["step"]


def _start(make: Callable[[], Any]) -> float:
    """Return the seconds that a new process takes to build its learner, the minimum of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        learner = Isolated(make)
        taken.append(time.perf_counter() - start)
        learner.close()
    return min(taken)


def _quick(call: Callable[[], Any], *, calls: int = CALLS) -> float:
    """Return the duration of a call in microseconds, the lowest decile of many."""
    taken = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.quantile(taken, 0.1)) * 1e6
