"""The race at the end of a training: made-up policies of known values."""

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

import esbas
from esbas import seeding
from esbas.learners import Constant
from esbas.training.policies.racing import NOT_PLAYED, Race, _Difference
from esbas.training.policies.scoring import Score, Scorer

LENGTH = 10  # steps of an episode


class Values(gymnasium.Env[int, int]):
    """Pays, at the end of an episode, the value of its action and noise.

    Args:
        means: the mean value of each action.
        noise: the standard deviation of the values of an action.
        common: the share of the noise that is the same for all actions in an episode.
    """

    observation_space = gymnasium.spaces.Discrete(1)

    def __init__(self, means: list[float], noise: float, common: float) -> None:
        self.action_space: Any = gymnasium.spaces.Discrete(len(means))
        self._means = means
        self._noise = noise
        self._common = common

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        self._common_noise = self.np_random.normal()
        self._own_noise = self.np_random.normal(size=len(self._means))
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps < LENGTH:
            return 0, 0.0, False, False, {}
        noise = math.sqrt(self._common) * self._common_noise
        noise += math.sqrt(1 - self._common) * self._own_noise[action]
        return 0, self._means[action] + self._noise * noise, True, False, {}


COST = esbas.Objective(
    name="cost", function=lambda trajectory: float(trajectory.rewards.sum()), maximize=False
)


def race(
    means: list[float],
    *,
    shares: dict[str, float] | None = None,
    seed: int = 0,
    noise: float = 1.0,
    common: float = 0.0,
    episodes: int = 3,
    budget: float = 10_000,
    objective: esbas.Objective | None = None,
) -> tuple[list[str], dict[str, Score]]:
    """Let policies "0", "1", ... with these mean values race; return their order and scores."""

    def policy(action: int) -> Any:
        return lambda: Constant(str(action), lambda _: action).policy()

    policies = {str(action): policy(action) for action in range(len(means))}
    scorer = Scorer(
        Values(means, noise, common),
        objective or esbas.total_return(),
        policies,
        stream=lambda number: seeding.generator(seed, "race", number),
        limit=1000,
        budget=budget,
    )
    order = Race(scorer, episodes=episodes, shares=shares or {}, start=-10.0, length=LENGTH).run()
    assert sum(score.played for score in scorer.scores.values()) <= budget
    return order, scorer.scores


def counts(scores: dict[str, Score]) -> list[int]:
    return [len(score.values) for score in scores.values()]


def test_the_best_of_clearly_different_policies_wins_after_few_episodes() -> None:
    order, scores = race([0.0, 5.0, 10.0, 20.0], noise=0.5)
    assert order == ["3", "2", "1", "0"]
    assert max(counts(scores)) <= 8


def test_of_an_objective_to_minimize_the_smallest_values_are_better() -> None:
    order, _ = race([0.0, 5.0, 10.0, 20.0], noise=0.5, objective=COST)
    assert order[0] == "0"


def test_those_that_are_close_to_the_leader_play_more_episodes() -> None:
    _, scores = race([-5.0, 0.0, 2.8, 3.0], noise=1.0)
    played = counts(scores)
    assert played[0] < 10
    assert min(played[2:]) > 3 * played[0]


def test_the_winner_is_almost_always_the_best_or_close_to_it() -> None:
    means = [0.0, 1.0, 2.0, 2.9, 3.0]
    winners = [race(means, seed=seed, noise=1.0)[0][0] for seed in range(40)]
    regrets = [3.0 - means[int(winner)] for winner in winners]
    assert np.mean([regret <= 0.1 for regret in regrets]) >= 0.95


def test_common_noise_does_not_matter() -> None:
    for seed in range(10):
        order, scores = race([0.0, 0.1], noise=5.0, common=1.0, seed=seed)
        assert order == ["1", "0"]
        assert max(counts(scores)) <= 6


def test_of_equal_policies_the_one_with_most_control_wins() -> None:
    shares = {"0": 0.1, "1": 0.6, "2": 0.3}
    order, scores = race([3.0, 3.0, 3.0], shares=shares, common=1.0)
    assert order[0] == "1"
    assert 20 <= max(counts(scores)) <= 22  # more would not show a difference


def test_a_share_of_control_does_not_help_a_policy_that_is_worse() -> None:
    for seed in range(10):
        order, _ = race([0.0, 3.0], shares={"0": 1.0}, seed=seed)
        assert order[0] == "1"


def test_with_few_steps_the_policy_with_most_control_stays_in_the_race() -> None:
    means = [2.9, 1.0, 1.0, 1.0, 1.0, 3.0]
    shares = {"0": 0.9}
    for seed in range(10):
        _, scores = race(means, shares=shares, noise=3.0, budget=600, seed=seed)
        played = counts(scores)
        assert played[0] == max(played)


def test_with_few_steps_the_worse_half_leaves() -> None:
    _, scores = race([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], noise=30.0, budget=2400)
    played = sorted(counts(scores))
    assert played[-1] > 2 * played[0]
    assert len(set(played)) >= 3


def test_with_very_few_steps_only_those_with_most_control_race() -> None:
    shares = {"0": 0.1, "1": 0.3, "2": 0.6}
    order, scores = race([9.0, 1.0, 2.0], shares=shares, budget=4 * LENGTH)
    assert counts(scores) == [0, 2, 2]
    assert scores["0"].problem == NOT_PLAYED
    assert set(order) == {"1", "2"}
    order, scores = race([9.0, 1.0, 2.0], shares=shares, budget=LENGTH)
    assert (order, counts(scores)) == (["2"], [0, 0, 1])


def test_two_episodes_are_not_enough_to_overrule_the_selector() -> None:
    """Half a standard error of two episodes is 0.69 of it by Student's distribution."""
    assert _Difference(mean=0.6, error=1.0, episodes=2).is_tie
    assert not _Difference(mean=0.6, error=1.0, episodes=6).is_tie
    assert not _Difference(mean=0.7, error=1.0, episodes=2).is_tie
    assert _Difference(mean=0.5, error=1.0, episodes=1000).is_tie
    assert not _Difference(mean=0.51, error=1.0, episodes=1000).is_tie
    assert _Difference(mean=9.0, error=math.inf, episodes=1).is_tie


@pytest.mark.parametrize("count", [1, 2])
def test_the_winner_has_the_episodes_that_were_asked_for(count: int) -> None:
    order, scores = race([0.0, 9.0][-count:], noise=0.1, episodes=15)
    assert len(scores[order[0]].values) == 15


def test_races_are_the_same_every_time() -> None:
    assert race([1.0, 1.5, 1.7], seed=3) == race([1.0, 1.5, 1.7], seed=3)
