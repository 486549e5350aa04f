"""What DQNs that train together cost, compared with those of Stable-Baselines3; and what selection adds to a run."""

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium

import esbas
from esbas.learners import DQN, SB3Learner, SharedReplay
from esbas.runner import Budget
from esbas.training import default_recipe
from esbas.training.display.status import StatusTracker
from esbas.training.runs.episode_log import RunLog

BLOCK, BLOCKS, WARM_UP = 150, 9, 200  # environment steps, repeats, steps before the first update
BATCH, RATE = 64, 1e-3


def main() -> None:
    alike: dict[str, Any] = {"n_step": 1, "double": False}  # what Stable-Baselines3 computes
    makers: dict[str, tuple[int, Callable[..., Any]]] = {
        "one": (1, partial(_own, **alike)),
        "six": (6, partial(_own, **alike)),
        "sixty-four": (64, partial(_own, **alike)),
        "one with corrected returns": (1, _own),
        "six with corrected returns": (6, _own),
        "one of Stable-Baselines3": (1, _foreign),
        "six of Stable-Baselines3": (6, _foreign),
    }
    runs = {name: _run(*maker) for name, maker in makers.items()}
    costs: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(BLOCKS):  # in turn, so that a busy machine slows all of them alike
        for name, run in runs.items():
            costs[name].append(_block(run))
    cost = {name: statistics.median(each) for name, each in costs.items()}
    print("DQNs with an MLP 64 x 64, batches of 64 and an update after every step of CartPole-v1, us per environment step:")
    for name, (count, _) in makers.items():
        print(f"  {name}: {cost[name]:.0f}, {cost[name] / count:.0f} per network", flush=True)
    print(f"  one of SBX: {_sbx()}", flush=True)
    one, six, foreign = cost["one"], cost["six"], cost["one of Stable-Baselines3"]
    _compare("one / one of Stable-Baselines3", one / foreign, 1 / 8)
    _compare("six / one of Stable-Baselines3", six / foreign, 0.5)
    _compare("six / six of Stable-Baselines3", six / cost["six of Stable-Baselines3"], 1 / 15)
    _compare("per network, sixty-four / six", cost["sixty-four"] / 64 / (six / 6), 1.2)
    usual: dict[str, Any] = {"train_freq": 4}
    larger: dict[str, Any] = {"train_freq": 2, "policy_kwargs": {"net_arch": [256, 256]}}
    _selection("CartPole-v1", "an update every 4 steps", usual)
    _selection("CartPole-v1", "an update every 2 steps, MLP 256 x 256", larger)
    _selection("Acrobot-v1", "an update every 4 steps", usual)
    _own_share()


def _compare(name: str, ratio: float, limit: float) -> None:
    print(f"{name}: {ratio:.3f} (at most {limit:.3f}: {_verdict(ratio <= limit)})", flush=True)


def _sbx() -> str:
    """The cost of one DQN of SBX, the JAX version of Stable-Baselines3, after its compilation."""
    if find_spec("sbx") is None:
        return "not installed"
    sbx = import_module("sbx")

    options = {"learning_rate": RATE, "batch_size": BATCH, "train_freq": 1, "learning_starts": WARM_UP}
    model = sbx.DQN("MlpPolicy", gymnasium.make("CartPole-v1"), policy_kwargs={"net_arch": [64, 64]}, **options)
    model.learn(WARM_UP + BLOCK)
    start = time.process_time()
    model.learn(BLOCK * BLOCKS, reset_num_timesteps=False)
    return f"{(time.process_time() - start) / (BLOCK * BLOCKS) * 1e6:.0f}"


def _run(count: int, make: Callable[[str, SharedReplay], Any]) -> esbas.Run:
    """A run past its first update."""
    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, capacity=20_000)
    members = [make(f"member {k}", replay) for k in range(count)]
    run = esbas.run(env, members, esbas.SSBAS([member.name for member in members]), steps=WARM_UP + 50, keep_data=False)
    for _ in run:
        pass
    return run


def _own(name: str, replay: SharedReplay, **options: Any) -> DQN:
    usual: dict[str, Any] = {"rate": RATE, "batch": BATCH, "hidden": (64, 64), "train_every": 1, "learning_starts": WARM_UP}
    return DQN(name, replay=replay, **usual | options)


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
        learner.act_with_log_prob = gaps.around("act", learner.act_with_log_prob)  # type: ignore[method-assign]  # to look at the clock
    share, _, text = _shares(env, members, gaps, warm_up=WARM_UP, steps=BLOCK * BLOCKS)
    print(f"three DQNs of Stable-Baselines3 on {task}, {setting}, {text}", flush=True)
    print(f"  selection and records under 1 %: {_verdict(share < 0.01)}", flush=True)


def _own_share() -> None:
    """The same for the default portfolio of `esbas train` on CartPole-v1, after its first 5,000 steps."""
    env, gaps = gymnasium.make("CartPole-v1"), _Gaps()
    members = default_recipe(env).build(env, steps=60_000, seed=0)
    for learner in members:
        learner.policy = partial(_watched_policy, learner.policy, gaps)  # type: ignore[method-assign]
    share, handing, text = _shares(env, members, gaps, warm_up=5_000, steps=10_000)
    print(f"{len(members)} DQNs of the default portfolio on CartPole-v1, {text}")
    _compare("selection, records and passing transitions / all", share + handing, 0.05)


def _watched_policy(policy: Callable[[], Any], gaps: "_Gaps") -> Any:
    """A policy that looks at the clock."""
    current = policy()
    return SimpleNamespace(act=current.act, act_with_log_prob=gaps.around("act", current.act_with_log_prob))


def _shares(env: Any, members: list[Any], gaps: "_Gaps", *, warm_up: int, steps: int) -> tuple[float, float, str]:
    """Selection and records, and passing transitions to learners, as parts of the CPU time; and a text about them."""
    for learner in members:
        learner.step = gaps.around("step", learner.step)
    env.step, env.reset = gaps.around("env.step", env.step), gaps.around("env.reset", env.reset)
    run = esbas.run(env, members, esbas.SSBAS([member.name for member in members]), steps=warm_up, keep_data=False)
    for _ in run:
        pass
    run.budget = Budget(steps=run.steps + steps)
    gaps.seconds.clear()
    with tempfile.TemporaryDirectory() as folder, RunLog(Path(folder), upto=0) as log:
        tracker, start = StatusTracker(run, seed=0), time.process_time()
        for record in run:
            log.add(record, steps=run.steps)
            tracker.add_record(record)
        whole = time.process_time() - start
    between = ("step", "env.reset")
    count, episodes = len(gaps.seconds["act", "env.step"]), len(gaps.seconds[between])
    episode = statistics.median(gaps.seconds[between])
    share, handing = episodes * episode / whole, (gaps.total() - episodes * episode) / whole
    text = f"""episodes of {count / episodes:.0f} steps:
  selection and records: {share:.2%}, {episode * 1e6:.0f} us per episode
  passing transitions to learners: {handing:.2%}, {handing * whole / count * 1e6:.0f} of {whole / count * 1e6:.0f} us per step"""
    return share, handing, text


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
