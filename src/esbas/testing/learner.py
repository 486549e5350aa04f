"""Checks the contract of a learner and its policies."""

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas import seeding
from esbas._internal import archive
from esbas.learner import LEARNER_METHODS, Policy, Portfolio, RandomPolicy
from esbas.loop import play
from esbas.testing.contract import check_rules, expect
from esbas.testing.policy import POLICY_RULES, act_once, policy_case
from esbas.trajectory import Trajectory, TrajectorySet


def check_learner(
    factory: Callable[[], Any],
    env: Any,
    *,
    seed: int = 0,
    episodes: int = 6,
    max_episode_steps: int = 100_000,
    draws: int = 2000,
) -> None:
    """Raise a ContractError unless the learner keeps the contract of `esbas.Learner`.

    The rules: it has a name, says whether it is stationary, and has `learn` or `step` unless it is;
    its spaces, if it declares them, are the environment's; its policies keep the contract of
    `esbas.Policy` (see `check_policy`) and change only inside `learn` or `step`, and never if the
    learner is stationary; it learns from trajectories of others, as a set or step by step, and from
    a set without new ones; what it does depends on the data alone; its state, if it has one, is
    arrays and plain data and determines everything that follows; its `policy_state`, if it has one,
    is arrays and plain data and determines what it does without exploration; its `metrics` are
    floats.

    Args:
        factory: called as `factory()`; returns a new learner, always the same.
        env: any Gymnasium-style environment, in which the learner is checked.
        seed: seed of the episodes.
        episodes: how many are collected with random actions, and once more with the learner's own.
        max_episode_steps: an episode that takes longer is an error.
        draws: see `check_policy`.
    """
    name = getattr(factory(), "name", "the learner")
    case = _Case(
        factory=factory,
        env=env,
        seed=seed,
        episodes=episodes,
        max_episode_steps=max_episode_steps,
        draws=draws,
    )
    check_rules(f"Learner {name!r}", _RULES, case)


@dataclass
class _Case:
    factory: Callable[[], Any]
    env: Any
    seed: int
    episodes: int
    max_episode_steps: int
    draws: int

    def episode(self, policy: Policy, number: int) -> Trajectory:
        rng, seed = seeding.episode(self.seed, number)
        return play(self.env, policy, rng=rng, seed=seed, max_episode_steps=self.max_episode_steps)

    def data(
        self, policy: Policy | None = None, *, to: TrajectorySet | None = None
    ) -> TrajectorySet:
        """Return a set with more episodes of this policy, by default of random actions."""
        data = to or TrajectorySet()
        policy = policy or RandomPolicy(self.env.action_space)
        for _ in range(self.episodes):
            data.append(self.episode(policy, len(data)), arm="another")
        return data

    def observations(self) -> list[Any]:
        """Return a few observations that occur."""
        seen = self.data()[0].observations
        return list(seen[:: max(1, len(seen) // 8)])


def _has_the_parts(case: _Case) -> None:
    """A learner has `name`, `stationary`, `policy()` and `learn` or `step`, and fits the env.

    If it is stationary, it needs neither `learn` nor `step`.
    """
    learner = case.factory()
    Portfolio([learner]).check_spaces(case.env)
    expect(isinstance(learner.stationary, bool), f"stationary is {learner.stationary!r}")
    expect(learner.name != "", "its name is empty")
    for name in LEARNER_METHODS:
        expect(
            not hasattr(learner, name) or callable(getattr(learner, name)),
            f"{name} is {getattr(learner, name, None)!r}",
        )
    for saves, loads in (("state_dict", "load_state_dict"), ("policy_state", "load_policy_state")):
        expect(
            hasattr(learner, saves) == hasattr(learner, loads),
            f"it has only one of {saves} and {loads}",
        )


def _has_good_policies(case: _Case) -> None:
    """Its policies keep the contract of a policy, with and without exploration.

    This holds before and after learning.
    """
    for learner in (case.factory(), _taught(case)):
        for kind in ("policy", "greedy_policy"):
            if not hasattr(learner, kind):
                continue
            policies = policy_case(
                getattr(learner, kind),
                case.env,
                seed=case.seed,
                max_episode_steps=case.max_episode_steps,
                draws=case.draws,
            )
            for rule in POLICY_RULES:
                rule(policies)


def _learns(case: _Case) -> None:
    """It learns from trajectories of others, also if none are new, and does not change the set."""
    learner = case.factory()
    data = case.data()
    if hasattr(learner, "learn"):
        for _ in range(2):
            learner.learn(data)
        expect(
            len(data) == case.episodes,
            f"the set had {case.episodes} trajectories and now has {len(data)}",
        )
        learner.learn(case.data(learner.policy(), to=data))
    if hasattr(learner, "step"):
        _step_through(case.factory(), data)


def _changes_in_learning_alone(case: _Case) -> None:
    """A policy changes only inside `learn` or `step`, and never if the learner is stationary."""
    learner = case.factory()
    before = _behavior(case, learner)
    case.data(learner.policy())
    expect(
        _behavior(case, learner) == before,
        "it acted differently after episodes from which it did not learn",
    )
    if learner.stationary:
        _teach(case, learner)
        expect(
            _behavior(case, learner) == before,
            "it is stationary, but acted differently after learning",
        )


def _is_reproducible(case: _Case) -> None:
    """Two learners that see the same data do the same: only the data determine what it does."""
    one = _behavior(case, _taught(case))
    two = _behavior(case, _taught(case))
    expect(one == two, "two learners that saw the same data acted differently")


def _saves_and_loads(case: _Case) -> None:
    """A learner that loads another's state behaves the same, now and after more learning.

    The state is arrays and plain data.
    """
    learner = case.factory()
    if not hasattr(learner, "state_dict"):
        return
    for has_learnt in (False, True):
        if has_learnt:
            _teach(case, learner)
        state = _saved(learner.state_dict())
        new = case.factory()
        used = _taught(case)
        for twin, which in ((new, "a new learner"), (used, "a learner that had learnt before")):
            twin.load_state_dict(state)
            expect(
                _behavior(case, twin) == _behavior(case, learner),
                f"{which} that loaded the state acted differently",
            )
    _teach(case, learner)
    _teach(case, used)
    expect(
        _behavior(case, used) == _behavior(case, learner),
        "one that loaded the state acted differently after more learning",
    )


def _saves_its_policy(case: _Case) -> None:
    """A learner that loads another's `policy_state` acts the same without exploration.

    It can learn, too. The state is arrays and plain data.
    """
    learner = _taught(case)
    if not hasattr(learner, "policy_state"):
        return
    twin = case.factory()
    twin.load_policy_state(_saved(learner.policy_state()))
    if hasattr(learner, "greedy_policy") or learner.stationary:
        same = _behavior(case, twin, "greedy_policy") == _behavior(case, learner, "greedy_policy")
        expect(
            same, "a new learner that loaded the policy_state acted differently without exploration"
        )
    _teach(case, twin)


def _has_metrics(case: _Case) -> None:
    """Its `metrics` are floats, before and after learning."""
    for learner in (case.factory(), _taught(case)):
        found = learner.metrics() if hasattr(learner, "metrics") else {}
        expect(isinstance(found, dict), f"metrics() is {found!r}")
        for name, value in found.items():
            fits = isinstance(name, str) and isinstance(value, float) and not math.isinf(value)
            expect(fits, f"metrics() has {name!r}: {value!r}, which is not a finite float or NaN")


_RULES = (
    _has_the_parts,
    _has_good_policies,
    _learns,
    _changes_in_learning_alone,
    _is_reproducible,
    _saves_and_loads,
    _saves_its_policy,
    _has_metrics,
)


def _saved(state: Any) -> Any:
    """Return the state as it is after it was written to a file and read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        archive.write(path, "learner", {"state": state})
        return archive.read(path, "learner")["state"]


def _teach(case: _Case, learner: Any) -> None:
    """Learn from some trajectories, as a set and step by step, as far as the learner can."""
    data = case.data()
    if hasattr(learner, "learn"):
        learner.learn(data)
    if hasattr(learner, "step"):
        _step_through(learner, data)


def _step_through(learner: Any, data: TrajectorySet) -> None:
    for trajectory in data.since(0):
        for transition in trajectory.transitions():
            learner.step(transition)


def _taught(case: _Case) -> Any:
    learner = case.factory()
    _teach(case, learner)
    return learner


def _behavior(case: _Case, learner: Any, kind: str = "policy") -> str:
    """Return what its policy of this kind does in one episode and at a few observations."""
    policy = getattr(learner, kind, learner.policy)()
    trajectory = case.episode(policy, 1000)
    actions = []
    for observation in case.observations():
        actions += [repr(act_once(policy, observation, seed)) for seed in range(4)]
    return repr((trajectory.actions.tolist(), trajectory.log_probs.tolist(), actions))
