"""What the core costs: `ask` and `tell` early and late in a run, and what the loop adds to each environment step."""

import gc
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
EARLY, LATE = 1_000, 1_000_000
OFFSETS = {arm: k for k, arm in enumerate(ARMS)}
VALUES = seeding.generator(0, "values").normal(size=4096).tolist()
EVIDENCE = {  # the better an arm, the longer its episodes: the worst case of BudgetedThompson
    arm: esbas.Evidence.from_log_probs({arm: [0.0] * (20 + 10 * k)}, arm=arm, value=0.0) for arm, k in OFFSETS.items()
}


def main() -> None:
    for kind in (esbas.ESBAS, esbas.SSBAS):
        _ask_and_tell(kind.__name__, partial(kind, ARMS, scale=None), late=LATE, limit=20)
    for bandit in (esbas.KalmanThompson, esbas.BudgetedThompson):
        _ask_and_tell(bandit.__name__, partial(esbas.BanditSelector, ARMS, bandit=bandit, scale=None), late=LATE // 10, limit=60)
    _loop("CartPole-v1", Constant("balance", lambda seen: int(seen[2] + seen[3] > 0)).policy(), episodes=5)
    _loop("FrozenLake-v1", _walker(), episodes=40)


def _ask_and_tell(name: str, new: Callable[[], esbas.Selector], *, late: int, limit: float) -> None:
    """The costs after `EARLY` and after `late` rounds; neither may exceed the limit, in microseconds."""
    used = new()
    _choices(used, late)

    def early_block() -> float:
        early = new()
        _choices(early, EARLY)
        return _choices(early, 200)

    early_cost, late_cost = _interleaved(early_block, lambda: _choices(used, 200), repeats=40)
    ratio = late_cost / early_cost
    met = _verdict(ratio <= 1.5 and max(early_cost, late_cost) <= limit)
    costs = f"{early_cost:.1f} us at tau = {EARLY:,}, {late_cost:.1f} us at tau = {late:,}, ratio {ratio:.2f}"
    print(f"{name}, ask + tell, {len(ARMS)} arms: {costs} (at most {limit} us and 1.5: {met})", flush=True)


def _choices(selector: esbas.Selector, rounds: int) -> float:
    """Microseconds per round."""
    values, start = VALUES, time.process_time()
    for number in range(rounds):
        epoch = selector.claim_epoch()
        if epoch is not None:
            selector.epoch_ready(epoch)
        choice = selector.ask()
        value = values[number & 4095] + OFFSETS[choice.arm]
        if selector.wants:
            selector.tell(choice, value, evidence=EVIDENCE[choice.arm])
        else:
            selector.tell(choice, value)
    return (time.process_time() - start) / rounds * 1e6


def _loop(name: str, policy: Any, *, episodes: int) -> None:
    """The same policy by hand and in the loop, which here is online: every transition is shown to every learner."""
    env = gymnasium.make(name)
    bare_steps, loop_steps = [0], [0]
    seeds = [seeding.episode(0, number)[1] for number in range(1, episodes + 1)]  # the loop makes them as it goes

    def bare() -> float:
        rng, start, steps = np.random.default_rng(0), time.process_time(), 0
        for seed in seeds:
            observation, _ = env.reset(seed=seed)
            terminated = truncated = False
            while not (terminated or truncated):
                observation, _, terminated, truncated, _ = env.step(policy.act(observation, rng))
                steps += 1
        bare_steps[0] = steps
        return (time.process_time() - start) / steps * 1e6

    def loop() -> float:
        selector = esbas.SSBAS(["same"])
        start = time.process_time()
        steps = sum(record.length for record in esbas.run(env, [Constant("same", policy)], selector, episodes=episodes))
        loop_steps[0] = steps
        return (time.process_time() - start) / steps * 1e6

    bare_cost, loop_cost = _interleaved(bare, loop, repeats=80)
    added = loop_cost - bare_cost
    costs = f"{bare_cost:.1f} us by hand, {loop_cost:.1f} us in the loop, ratio {loop_cost / bare_cost:.2f}, added {added:.1f} us"
    length = f"episodes of {bare_steps[0] / episodes:.0f} and {loop_steps[0] / episodes:.0f} steps"
    print(f"{name}, per step, {length}: {costs} (at most 10 us: {_verdict(added <= 10)})", flush=True)


def _walker() -> Any:
    """The policy of a table that has learnt the lake."""
    env, learner = gymnasium.make("FrozenLake-v1"), TabularQ("walker", states=16, actions=4, rate=0.05, epsilon=0.3)
    for _ in esbas.run(env, [learner], esbas.Fixed(["walker"]), episodes=2000):
        pass
    greedy = TabularQ("walker", states=16, actions=4, epsilon=0.01)
    greedy.load_state_dict(learner.state_dict())
    return greedy.policy()


def _interleaved(one: Callable[[], float], other: Callable[[], float], *, repeats: int) -> tuple[float, float]:
    """The lowest cost of each, measured in turns, so that a busy machine is busy for both."""
    gc.collect()
    costs = [(one(), other()) for _ in range(repeats)]
    return min(cost for cost, _ in costs), min(cost for _, cost in costs)


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
