"""A check of the contract that every learner and its policies keep."""

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from esbas import archive, seeding, spaces
from esbas.learner import Policy, Portfolio, RandomPolicy
from esbas.runner import play
from esbas.testing.contract import check_rules, expect
from esbas.trajectory import Trajectory, TrajectorySet

DRAWS = 2000  # to compare how often an action is drawn with the probability that the policy tells


def check_learner(factory: Callable[[], Any], env: Any, *, seed: int = 0, episodes: int = 6, max_steps: int = 100_000) -> None:
    """Raise a ContractError unless the learner keeps the contract of `esbas.Learner` in this environment.

    The rules: it has a name, says whether it is stationary, and has `learn` or `step` unless it is; its spaces, if it tells
    them, are the environment's; its policy acts within the action space, draws from the generator it is given alone, and tells
    true probabilities, if any; the policy changes only inside `learn` or `step`, and never if the learner is stationary; it
    learns from anybody's trajectories, as a set or step by step, and from none that are new; what it does follows from the data
    alone; its state, if it has one, is arrays and plain data and tells the whole future.

    Args:
        factory: called as `factory()`; returns a new learner, always the same.
        env: any Gymnasium-style environment.
        seed: of the episodes.
        episodes: how many are collected with random actions, and once more with the learner's own.
        max_steps: an episode that goes on for longer is an error.
    """
    name = getattr(factory(), "name", "the learner")
    check_rules(f"learner {name!r}", _RULES, _Case(factory, env, seed, episodes, max_steps))


@dataclass
class _Case:
    factory: Callable[[], Any]
    env: Any
    seed: int
    episodes: int
    max_steps: int

    def episode(self, policy: Policy, number: int) -> Trajectory:
        rng, seed = seeding.episode(self.seed, number)
        _start(policy)
        return play(self.env, policy, rng=rng, seed=seed, max_steps=self.max_steps)

    def data(self, policy: Policy | None = None, *, to: TrajectorySet | None = None) -> TrajectorySet:
        """A set with more episodes of this policy, by default of random actions."""
        data, policy = to or TrajectorySet(), policy or RandomPolicy(self.env.action_space)
        for _ in range(self.episodes):
            data.append(self.episode(policy, len(data)), arm="somebody")
        return data

    def observations(self) -> list[Any]:
        """A few that occur."""
        seen = self.data()[0].observations
        return list(seen[:: max(1, len(seen) // 8)])


def _has_the_parts(case: _Case) -> None:
    """A learner has a name, `stationary` and `policy()`, `learn` or `step` unless it is stationary, and fits the environment."""
    learner = case.factory()
    Portfolio([learner]).check_spaces(case.env)
    expect(isinstance(learner.stationary, bool), f"stationary is {learner.stationary!r}")
    expect(learner.name != "", "its name is empty")
    expect(callable(getattr(learner.policy(), "act", None)), f"policy() returned {learner.policy()!r}, which cannot act")
    savable = [hasattr(learner, method) for method in ("state_dict", "load_state_dict")]
    expect(savable[0] == savable[1], "it has one of state_dict and load_state_dict alone")


def _acts(case: _Case) -> None:
    """A policy acts within the action space, and all its randomness comes from the generator it is given."""
    for learner in (case.factory(), _taught(case)):
        for observation in case.observations():
            actions = [_act(learner.policy(), observation, seed) for seed in (0, 1, 2, 0, 1, 2)]
            for action in actions:
                valid = spaces.membership(case.env.action_space)(action)
                expect(valid, f"it acted {action!r}, which is not in {case.env.action_space}")
            same = all(np.array_equal(one, two) for one, two in zip(actions[:3], actions[3:], strict=True))
            expect(same, f"it acted differently with the same generator: {actions[:3]} and {actions[3:]}")


def _tells_probabilities(case: _Case) -> None:
    """A probability lies in [0, 1] and is that with which the policy acts; those of all discrete actions sum to 1."""
    if not hasattr(case.factory().policy(), "probability"):
        return
    space = case.env.action_space
    for learner in (case.factory(), _taught(case)):
        policy = learner.policy()
        for observation in case.observations():
            actions = [space.start + k for k in range(space.n)] if spaces.is_discrete(space) else [_act(policy, observation, 0)]
            told = [_probability(policy, observation, action) for action in actions]
            expect(all(math.isnan(p) or 0 <= p <= 1 + 1e-9 for p in told), f"it told the probabilities {told}")
            if spaces.is_discrete(space) and not any(map(math.isnan, told)):
                expect(abs(sum(told) - 1) < 1e-6, f"the probabilities {told} sum to {sum(told)}")
                _expect_frequencies(policy, observation, actions, told)


def _expect_frequencies(policy: Policy, observation: Any, actions: list[int], told: list[float]) -> None:
    rng = seeding.generator(0, "frequencies")
    drawn = []
    for _ in range(DRAWS):
        _start(policy)
        drawn.append(int(policy.act(observation, rng)))
    for action, probability in zip(actions, told, strict=True):
        share = drawn.count(action) / DRAWS
        margin = 6 * math.sqrt(max(probability * (1 - probability), 0) / DRAWS) + 1e-9  # chance goes beyond it once in 10^8 times
        expect(
            abs(share - probability) <= margin, f"it took action {action} in {share:.1%} of {DRAWS} draws and told {probability}"
        )


def _learns(case: _Case) -> None:
    """It learns from anybody's trajectories, also when none are new, and leaves the set as it is."""
    learner = case.factory()
    data = case.data()
    if hasattr(learner, "learn"):
        for _ in range(2):
            learner.learn(data)
        expect(len(data) == case.episodes, f"the set had {case.episodes} trajectories and now has {len(data)}")
        learner.learn(case.data(learner.policy(), to=data))
    if hasattr(learner, "step"):
        _step_through(case.factory(), data)


def _changes_in_learning_alone(case: _Case) -> None:
    """A policy changes only inside `learn` or `step`, and never if the learner is stationary."""
    learner = case.factory()
    before = _behaviour(case, learner)
    case.data(learner.policy())
    expect(_behaviour(case, learner) == before, "it acted differently after episodes from which it had not learnt")
    if learner.stationary:
        _teach(case, learner)
        expect(_behaviour(case, learner) == before, "it is stationary, but acted differently after learning")


def _is_reproducible(case: _Case) -> None:
    """What a learner does follows from the data alone: two of them that see the same do the same."""
    expect(_behaviour(case, _taught(case)) == _behaviour(case, _taught(case)), "two that saw the same acted differently")


def _saves_and_loads(case: _Case) -> None:
    """A learner that loads another's state behaves the same, now and after more learning; the state is arrays and plain data."""
    learner = case.factory()
    if not hasattr(learner, "state_dict"):
        return
    for lessons in (0, 1):
        for _ in range(lessons):
            _teach(case, learner)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "learner"
            archive.write(path, "learner", {"state": learner.state_dict()})
            state = archive.read(path, "learner")["state"]
        for twin, which in ((case.factory(), "a new learner"), (_taught(case), "a learner that had learnt before")):
            twin.load_state_dict(state)
            expect(_behaviour(case, twin) == _behaviour(case, learner), f"{which} that loaded the state acted differently")
    _teach(case, learner)
    _teach(case, twin)
    expect(_behaviour(case, twin) == _behaviour(case, learner), "one that loaded the state acted differently after more learning")


_RULES = (_has_the_parts, _acts, _tells_probabilities, _learns, _changes_in_learning_alone, _is_reproducible, _saves_and_loads)


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


def _behaviour(case: _Case, learner: Any) -> str:
    """What its policy does in one episode, and would do at a few observations."""
    policy = learner.policy()
    trajectory = case.episode(policy, 1000)
    told = [
        (repr(action), _probability(policy, seen, action)) for seen in case.observations() for action in _acts_at(policy, seen)
    ]
    return repr((trajectory.actions.tolist(), trajectory.probabilities.tolist(), told))


def _acts_at(policy: Policy, observation: Any) -> list[Any]:
    return [_act(policy, observation, seed) for seed in range(4)]


def _act(policy: Policy, observation: Any, seed: int) -> Any:
    _start(policy)
    return policy.act(observation, seeding.generator(seed, "act"))


def _start(policy: Any) -> None:
    getattr(policy, "start", lambda: None)()


def _probability(policy: Any, observation: Any, action: Any) -> float:
    return float(policy.probability(observation, action)) if hasattr(policy, "probability") else math.nan
