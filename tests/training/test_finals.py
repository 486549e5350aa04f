"""The finals of an evaluation: better policies play more episodes."""

import gymnasium
import numpy as np
import pytest

import esbas
from esbas import seeding
from esbas.learners import Constant
from esbas.training.policies.scoring import Scorer


class OneStep(gymnasium.Env):
    """Pays the number of the action."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(action), True, False, {}


def episodes(count, *, objective=None, **settings):
    """The number of episodes of each policy; policy k earns k."""
    scorer = Scorer(OneStep, objective or esbas.total_return(), stream=lambda n: seeding.generator(0, "test", n), limit=10)
    policies = {str(k): lambda k=k: Constant(str(k), lambda _: k).policy() for k in range(count)}
    scores = scorer.score(policies, **settings)
    assert [np.mean(score.values) for score in scores.values()] == list(range(count))
    return [len(score.values) for score in scores.values()]


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [3]), (2, [3, 3]), (3, [3, 6, 6]), (5, [3, 3, 6, 12, 12]), (8, [3, 3, 3, 3, 6, 6, 12, 12])]
)
def test_the_better_half_plays_twice_as_many_episodes_down_to_two_policies(count, expected):
    assert episodes(count, episodes=3, allowance=np.inf, finals=np.inf) == expected


def test_finals_keep_to_their_steps():
    assert episodes(8, episodes=3, allowance=np.inf, finals=4) == [3, 3, 3, 3, 4, 4, 6, 6]  # 4 x 1 step, then 2 x 2 steps
    assert episodes(8, episodes=3, allowance=np.inf, finals=3) == [3, 3, 3, 3, 3, 3, 4, 4]
    assert episodes(8, episodes=3, allowance=16, finals=0.0) == [2] * 8


def test_of_an_objective_to_minimise_the_smallest_values_are_better():
    cost = esbas.Objective(name="cost", function=lambda trajectory: float(trajectory.rewards.sum()), maximize=False)
    assert episodes(4, objective=cost, episodes=2, allowance=np.inf, finals=np.inf) == [4, 4, 2, 2]
