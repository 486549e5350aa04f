"""What DQNs cost that train together, against Stable-Baselines3, and what selection adds."""

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
from esbas.loop import Budget
from esbas.training import default_recipe, make_env
from esbas.training.display.status import StatusTracker
from esbas.training.runs.episode_log import RunLog

BLOCK = 150  # environment steps
BLOCKS = 9  # repeats
WARM_UP = 200  # steps before the first update
BATCH = 64
RATE = 1e-3
USUAL: dict[str, Any] = {
    "learning_rate": RATE,
    "batch_size": BATCH,
    "train_freq": 1,
    "learning_starts": WARM_UP,
}


def main() -> None:
    alike: dict[str, Any] = {"n_steps": 1, "double": False}  # what Stable-Baselines3 computes
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
    print(
        "DQNs with an MLP 64 x 64, batches of 64 and an update after every step of CartPole-v1,"
        " us per environment step:"
    )
    for name, (count, _) in makers.items():
        print(f"  {name}: {cost[name]:.0f}, {cost[name] / count:.0f} per network", flush=True)
    print(f"  one of SBX: {_sbx()}", flush=True)
    one = cost["one"]
    six = cost["six"]
    foreign = cost["one of Stable-Baselines3"]
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
    _default_portfolio("CartPole-v1", gymnasium.make("CartPole-v1"), 0.45)
    _default_portfolio("MinAtar's Breakout", _breakout(), 0.75)


def _breakout() -> Any:
    game = "minatar.gym:BaseEnv(game='breakout', use_minimal_action_set=True)"
    return make_env(game, wrappers=["FlattenObservation", "TimeLimit(max_episode_steps=1000)"])


def _default_portfolio(name: str, env: Any, limit: float) -> None:
    """Print what the default portfolio costs against one DQN of Stable-Baselines3.

    Both make an update of each network after every step.
    """
    foreign = _foreign("one", SharedReplay(env, buffer_size=20_000))
    learners: dict[str, list[Any]] = {
        "default": list(default_recipe(env).build(env, steps=60_000, seed=0)),
        "foreign": [foreign],
    }
    runs = {}
    costs: dict[str, list[float]] = {each: [] for each in learners}
    for each, made in learners.items():
        runs[each] = esbas.run(env, made, steps=2_000, keep_data=False)
        for _ in runs[each]:
            pass
    for _ in range(BLOCKS):
        for each, run in runs.items():
            costs[each].append(_block(run))
    own = statistics.median(costs["default"])
    other = statistics.median(costs["foreign"])
    print(f"default portfolio of {len(learners['default'])} on {name}: {own:.0f} us per step")
    print(f"one of Stable-Baselines3 on {name}: {other:.0f} us per step")
    _compare(f"default portfolio / one of Stable-Baselines3 on {name}", own / other, limit)


def _compare(name: str, ratio: float, limit: float) -> None:
    print(f"{name}: {ratio:.3f} (at most {limit:.3f}: {_verdict(ratio <= limit)})", flush=True)


def _sbx() -> str:
    """Return the cost of one DQN of SBX, the JAX version of Stable-Baselines3.

    Its compilation is not included.
    """
    if find_spec("sbx") is None:
        return "not installed"
    sbx = import_module("sbx")
    env = gymnasium.make("CartPole-v1")
    model = sbx.DQN("MlpPolicy", env, policy_kwargs={"net_arch": [64, 64]}, **USUAL)
    model.learn(WARM_UP + BLOCK)
    start = time.process_time()
    model.learn(BLOCK * BLOCKS, reset_num_timesteps=False)
    return f"{(time.process_time() - start) / (BLOCK * BLOCKS) * 1e6:.0f}"


def _run(count: int, make: Callable[[str, SharedReplay], Any]) -> esbas.Run:
    """Return a run past its first update."""
    env = gymnasium.make("CartPole-v1")
    replay = SharedReplay(env, buffer_size=20_000)
    learners = [make(f"learner {k}", replay) for k in range(count)]
    selector = esbas.SSBAS([learner.name for learner in learners])
    run = esbas.run(env, learners, selector, steps=WARM_UP + 50, keep_data=False)
    for _ in run:
        pass
    return run


def _own(name: str, replay: SharedReplay, **options: Any) -> DQN:
    return DQN(name, replay=replay, hidden=(64, 64), **USUAL | options)


def _foreign(name: str, replay: SharedReplay, **options: Any) -> SB3Learner:
    # Its MlpPolicy has 64 x 64 units, too.
    return SB3Learner(name, "dqn", replay=replay, total_steps=100_000, options=USUAL | options)


def _block(run: esbas.Run) -> float:
    """Return microseconds per environment step, over episodes of at least `BLOCK` steps."""
    run.budget = Budget(steps=run.steps + BLOCK)
    before = run.steps
    start = time.process_time()
    for _ in run:
        pass
    return (time.process_time() - start) / (run.steps - before) * 1e6


def _selection(env_id: str, setting: str, options: dict[str, Any]) -> None:
    """Print what three learners of Stable-Baselines3 wait for.

    These are selection and records, and passing the transitions. Between the last call of an
    episode and the next reset lie the choice, seeds, trajectory, value and record, and what `esbas
    train` writes down. In the first steps of CartPole episodes are as short as they will ever be,
    and it counts most.
    """
    env = gymnasium.make(env_id)
    replay = SharedReplay(env, buffer_size=20_000)
    gaps = _Gaps()
    learners = [_foreign(f"learner {k}", replay, **options) for k in range(3)]
    for learner in learners:
        watched = gaps.around("act", learner.act_with_log_prob)
        learner.act_with_log_prob = watched  # type: ignore[method-assign]
    share, _, text = _shares(env, learners, gaps, warm_up=WARM_UP, steps=BLOCK * BLOCKS)
    print(f"three DQNs of Stable-Baselines3 on {env_id}, {setting}, {text}", flush=True)
    print(f"  selection and records under 1 %: {_verdict(share < 0.01)}", flush=True)


def _own_share() -> None:
    """Print the same for the default portfolio of `esbas train` on CartPole-v1.

    Its first 5,000 steps are not measured.
    """
    env = gymnasium.make("CartPole-v1")
    gaps = _Gaps()
    learners = default_recipe(env).build(env, steps=60_000, seed=0)
    for learner in learners:
        watched = partial(_watched_policy, learner.policy, gaps)
        learner.policy = watched  # type: ignore[method-assign]
    share, handing, text = _shares(env, learners, gaps, warm_up=5_000, steps=10_000)
    print(f"{len(learners)} DQNs of the default portfolio on CartPole-v1, {text}")
    _compare("selection, records and passing transitions / all", share + handing, 0.05)


def _watched_policy(policy: Callable[[], Any], gaps: "_Gaps") -> Any:
    """Return a policy that looks at the clock."""
    current = policy()
    if hasattr(current, "start"):  # another object acts in each episode
        return SimpleNamespace(act=current.act, start=partial(_watched_policy, current.start, gaps))
    return SimpleNamespace(
        act=current.act, act_with_log_prob=gaps.around("act", current.act_with_log_prob)
    )


def _shares(
    env: Any, learners: list[Any], gaps: "_Gaps", *, warm_up: int, steps: int
) -> tuple[float, float, str]:
    """Return two parts of the CPU time, and a text about them.

    The first part is selection and records, the second is passing transitions to learners.
    """
    for learner in learners:
        learner.step = gaps.around("step", learner.step)
    env.step = gaps.around("env.step", env.step)
    env.reset = gaps.around("env.reset", env.reset)
    selector = esbas.SSBAS([learner.name for learner in learners])
    run = esbas.run(env, learners, selector, steps=warm_up, keep_data=False)
    for _ in run:
        pass
    run.budget = Budget(steps=run.steps + steps)
    gaps.seconds.clear()
    with tempfile.TemporaryDirectory() as folder, RunLog(Path(folder), upto=0) as log:
        tracker = StatusTracker(run, seed=0)
        start = time.process_time()
        for record in run:
            log.add(record, steps=run.steps)
            tracker.add_record(record)
        whole = time.process_time() - start
    between = ("step", "env.reset")
    count = len(gaps.seconds["act", "env.step"])
    episodes = len(gaps.seconds[between])
    episode = statistics.median(gaps.seconds[between])
    share = episodes * episode / whole
    handing = (gaps.total() - episodes * episode) / whole
    step = whole / count * 1e6
    text = f"""episodes of {count / episodes:.0f} steps:
  selection and records: {share:.2%}, {episode * 1e6:.0f} us per episode
  passing transitions to learners: {handing:.2%}, {handing * step:.0f} of {step:.0f} us per step"""
    return share, handing, text


class _Gaps:
    """The time between the calls of some functions.

    Each gap is so short that most are never interrupted by other programs.
    """

    def __init__(self) -> None:
        # By the function that was called before the gap, and the one that was called after it.
        self.seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._before = ""
        self._end = 0.0

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, which looks at the clock when it is called and when it returns."""

        def call(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            self.seconds[self._before, name].append(start - self._end)
            result = function(*args, **options)
            self._before = name
            self._end = time.perf_counter()
            return result

        return call

    def total(self) -> float:
        """Return the sum, as if each gap had taken as long as the median of its kind."""
        return sum(len(gaps) * statistics.median(gaps) for gaps in self.seconds.values())


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
