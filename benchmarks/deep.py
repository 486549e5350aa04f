"""What six DQNs that train as one cost, against one alone and six of Stable-Baselines3; and what selection adds to a run."""

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium

import esbas
from esbas.learners import DQN, SB3Learner, SharedReplay
from esbas.runner import Budget
from esbas.training.display.status import StatusTracker
from esbas.training.runs.episode_log import RunLog

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
    usual: dict[str, Any] = {"train_freq": 4}
    larger: dict[str, Any] = {"train_freq": 2, "policy_kwargs": {"net_arch": [256, 256]}}
    _selection("CartPole-v1", "an update every 4 steps", usual)
    _selection("CartPole-v1", "an update every 2 steps, MLP 256 x 256", larger)
    _selection("Acrobot-v1", "an update every 4 steps", usual)


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


def _foreign(name: str, replay: SharedReplay, **options: Any) -> SB3Learner:
    usual = {"learning_rate": RATE, "batch_size": BATCH, "train_freq": 1, "learning_starts": WARM_UP}
    return SB3Learner(name, "dqn", replay=replay, total_steps=100_000, options=usual | options)  # MlpPolicy: 64 x 64


def _block(run: esbas.Run) -> float:
    """Microseconds per environment step, over episodes of at least `BLOCK` steps together."""
    run.budget = Budget(steps=run.steps + BLOCK)
    before, start = run.steps, time.process_time()
    for _ in run:
        pass
    return (time.process_time() - start) / (run.steps - before) * 1e6


def _selection(task: str, setting: str, options: dict[str, Any]) -> None:
    """What three members of Stable-Baselines3 are made to wait for: selection and records, and being handed the transitions.

    Between the last call of an episode and the next reset lie the choice, seeds, trajectory, value and record, and what
    `esbas train` writes down. In the first steps of CartPole episodes are as short as they will ever be, and it counts most.
    """
    env = gymnasium.make(task)
    replay, gaps = SharedReplay(env, capacity=20_000), _Gaps()
    members = [_foreign(f"member {k}", replay, **options) for k in range(3)]
    for learner in members:
        learner.step = gaps.around("step", learner.step)  # type: ignore[method-assign]  # to look at the clock
        learner.act = gaps.around("act", learner.act)  # type: ignore[method-assign]
    env.step, env.reset = gaps.around("env.step", env.step), gaps.around("env.reset", env.reset)  # type: ignore[method-assign]
    run = esbas.run(env, members, esbas.SSBAS([member.name for member in members]), steps=WARM_UP, keep_data=False)
    for _ in run:
        pass
    run.budget = Budget(steps=run.steps + BLOCK * BLOCKS)
    gaps.seconds.clear()
    with tempfile.TemporaryDirectory() as folder, RunLog(Path(folder), upto=0) as log:
        tracker, start = StatusTracker(run, seed=0), time.process_time()
        for record in run:
            log.add(record, steps=run.steps)
            tracker.add_record(record)
        whole = time.process_time() - start
    between = ("step", "env.reset")
    steps, episodes = len(gaps.seconds["act", "env.step"]), len(gaps.seconds[between])
    episode = statistics.median(gaps.seconds[between])
    share, handing = episodes * episode / whole, (gaps.total() - episodes * episode) / whole
    print(f"three DQNs of Stable-Baselines3 on {task}, {setting}, episodes of {steps / episodes:.0f} steps:", flush=True)
    print(f"  selection and records: {share:.2%}, {episode * 1e6:.0f} us per episode (under 1 %: {_verdict(share < 0.01)})")
    print(f"  handing transitions to members: {handing:.2%}, {handing * whole / steps * 1e6:.0f} us per step", flush=True)


class _Gaps:
    """The time between the calls of some functions. Each gap is so short that most are never interrupted by other programs."""

    def __init__(self) -> None:
        self.seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)  # by what was called before and behind
        self._before, self._end = "", 0.0

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which looks at the clock when it is called and when it returns."""

        def call(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            self.seconds[self._before, name].append(start - self._end)
            result = function(*args, **options)
            self._before, self._end = name, time.perf_counter()
            return result

        return call

    def total(self) -> float:
        """As if each gap had taken as long as the median of its kind."""
        return sum(len(gaps) * statistics.median(gaps) for gaps in self.seconds.values())


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
