"""What the core costs: `ask` and `tell` early and late in a run, and the loop in each step."""

import gc
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import esbas
from esbas import seeding
from esbas.learners import Constant, TabularQ

ARMS = [f"arm {k}" for k in range(8)]
EARLY = 1_000
LATE = 1_000_000
OFFSETS = {arm: k for k, arm in enumerate(ARMS)}
VALUES = seeding.generator(0, "values").normal(size=4096).tolist()


def main() -> None:
    for kind in (esbas.ESBAS, esbas.SSBAS):
        _ask_and_tell(kind.__name__, partial(kind, ARMS, scale=None), late=LATE, limit=20)
    kalman = partial(esbas.BanditSelector, ARMS, bandit=esbas.KalmanThompson, scale=None)
    _ask_and_tell("KalmanThompson", kalman, late=LATE // 10, limit=60)
    balance = Constant("balance", lambda seen: int(seen[2] + seen[3] > 0))
    _loop("CartPole-v1", balance.policy(), episodes=5)
    _loop("FrozenLake-v1", _walker(), episodes=40)


def _ask_and_tell(name: str, new: Callable[[], esbas.Selector], *, late: int, limit: float) -> None:
    """Print the costs after `EARLY` and after `late` rounds, with their limit in microseconds."""
    used = new()
    _choices(used, late)

    def early_block() -> float:
        early = new()
        _choices(early, EARLY)
        return _choices(early, 200)

    early_cost, late_cost = _interleaved(early_block, lambda: _choices(used, 200), repeats=40)
    ratio = late_cost / early_cost
    met = _verdict(ratio <= 1.5 and max(early_cost, late_cost) <= limit)
    print(
        f"{name}, ask + tell, {len(ARMS)} arms: {early_cost:.1f} us at tau = {EARLY:,},"
        f" {late_cost:.1f} us at tau = {late:,}, ratio {ratio:.2f}"
        f" (at most {limit} us and 1.5: {met})",
        flush=True,
    )


def _choices(selector: esbas.Selector, rounds: int) -> float:
    """Return microseconds per round."""
    values = VALUES
    start = time.process_time()
    for number in range(rounds):
        epoch = selector.claim_epoch()
        if epoch is not None:
            selector.epoch_ready(epoch)
        choice = selector.ask()
        selector.tell(choice, values[number & 4095] + OFFSETS[choice.arm])
    return (time.process_time() - start) / rounds * 1e6


def _loop(name: str, policy: Any, *, episodes: int) -> None:
    """Print the cost of the same policy by hand and in the loop.

    The loop is online here: every transition is shown to every learner.
    """
    env = gymnasium.make(name)
    bare_steps = 0
    loop_steps = 0
    # The loop makes them as it goes.
    seeds = [seeding.episode(0, number)[1] for number in range(1, episodes + 1)]

    def bare() -> float:
        nonlocal bare_steps
        rng = np.random.default_rng(0)
        start = time.process_time()
        steps = 0
        for seed in seeds:
            observation, _ = env.reset(seed=seed)
            terminated = False
            truncated = False
            while not (terminated or truncated):
                observation, _, terminated, truncated, _ = env.step(policy.act(observation, rng))
                steps += 1
        bare_steps = steps
        return (time.process_time() - start) / steps * 1e6

    def loop() -> float:
        nonlocal loop_steps
        selector = esbas.SSBAS(["same"])
        start = time.process_time()
        run = esbas.run(env, [Constant("same", policy)], selector, episodes=episodes)
        steps = sum(record.length for record in run)
        loop_steps = steps
        return (time.process_time() - start) / steps * 1e6

    bare_cost, loop_cost = _interleaved(bare, loop, repeats=80)
    added = loop_cost - bare_cost
    print(
        f"{name}, per step, episodes of {bare_steps / episodes:.0f} and {loop_steps / episodes:.0f}"
        f" steps: {bare_cost:.1f} us by hand, {loop_cost:.1f} us in the loop,"
        f" ratio {loop_cost / bare_cost:.2f}, added {added:.1f} us"
        f" (at most 10 us: {_verdict(added <= 10)})",
        flush=True,
    )


def _walker() -> Any:
    """Return the policy of a table that has learnt the lake."""
    env = gymnasium.make("FrozenLake-v1")
    learner = TabularQ("walker", states=16, actions=4, learning_rate=0.05, epsilon=0.3)
    for _ in esbas.run(env, [learner], esbas.Fixed(["walker"]), episodes=2000):
        pass
    greedy = TabularQ("walker", states=16, actions=4, epsilon=0.01)
    greedy.load_state_dict(learner.state_dict())
    return greedy.policy()


def _interleaved(
    one: Callable[[], float], other: Callable[[], float], *, repeats: int
) -> tuple[float, float]:
    """Return the lowest cost of each, measured in turns, so that a busy machine slows both."""
    gc.collect()
    lowest_one = math.inf
    lowest_other = math.inf
    for _ in range(repeats):
        lowest_one = min(lowest_one, one())
        lowest_other = min(lowest_other, other())
    return lowest_one, lowest_other


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
