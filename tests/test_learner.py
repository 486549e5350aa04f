import gymnasium
import numpy as np
import pytest

from doubles import Always, Faulty
from esbas import Portfolio
from esbas._internal.spaces import Discrete, membership, random_action, same
from esbas.errors import InvalidValueError, SpaceError
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor


def test_a_portfolio_keeps_order():
    learners = [Faulty("b"), Faulty("a")]
    portfolio = Portfolio(iter(learners))
    assert portfolio.names == ("b", "a")
    assert list(portfolio) == learners
    assert (len(portfolio), portfolio[1]) == (2, learners[1])


def test_an_empty_portfolio_is_refused():
    with pytest.raises(InvalidValueError, match=r"`learners` must not be empty"):
        Portfolio([])


def test_two_learners_with_the_same_name_are_refused():
    with pytest.raises(
        InvalidValueError,
        match="Learners must have different names, but two are named 'a': rename one",
    ):
        Portfolio([Faulty("a"), Faulty("b"), Faulty("a")])


class Nameless:
    stationary = True

    def policy(self):
        return Always(0)


class Idle:
    name = "idle"
    stationary = False

    def policy(self):
        return Always(0)


def test_what_is_not_a_learner_is_refused():
    with pytest.raises(
        InvalidValueError, match="A learner must have `name`, `stationary` and `policy"
    ):
        Portfolio([Nameless()])
    with pytest.raises(
        InvalidValueError, match="Learner 'idle' must have `learn` or `step`, but has neither"
    ):
        Portfolio([Idle()])


def test_spaces_that_differ_are_refused():
    fits = TabularQ("fits", states=5, actions=2)
    Portfolio([fits, Constant("no spaces", lambda seen: 0)]).check_spaces(Corridor(5))
    with pytest.raises(
        SpaceError,
        match=r"The observation_space of learner 'fits' must be the environment's"
        ".*build the learner for",
    ):
        Portfolio([fits]).check_spaces(Corridor(6))
    with pytest.raises(SpaceError, match="The action_space of learner 'odd'"):
        Portfolio([TabularQ("odd", states=5, actions=3)]).check_spaces(Corridor(5))


def test_spaces_equal_those_of_gymnasium():
    assert same(Discrete(3), gymnasium.spaces.Discrete(3))
    assert same(gymnasium.spaces.Discrete(3, start=1), Discrete(3, start=1))
    assert not same(Discrete(3), gymnasium.spaces.Discrete(3, start=1))
    assert not same(Discrete(3), gymnasium.spaces.Box(0, 1))
    assert same(gymnasium.spaces.Box(0, 1), gymnasium.spaces.Box(0, 1))


@pytest.mark.parametrize("space", [Discrete(3, start=-1), gymnasium.spaces.Discrete(3, start=-1)])
def test_membership_in_a_range_of_integers(space):
    contains = membership(space)
    assert all(contains(action) for action in (-1, 0, 1, np.int64(1), np.array(0)))
    assert not any(
        contains(action) for action in (-2, 2, 0.0, float("nan"), None, "0", [0], np.array([0, 1]))
    )


def test_random_actions_lie_in_the_space_and_follow_the_generator():
    for space in (
        Discrete(3, start=-1),
        gymnasium.spaces.Discrete(4),
        gymnasium.spaces.Box(-1, 1, (2,)),
    ):
        draws = [
            [random_action(space, rng) for _ in range(30)]
            for rng in map(np.random.default_rng, (0, 0, 1))
        ]
        assert all(space.contains(action) for action in draws[0])
        assert np.array_equal(draws[0], draws[1])
        assert not np.array_equal(draws[0], draws[2])
    assert {Discrete(3, start=-1).sample(np.random.default_rng(seed)) for seed in range(30)} == {
        -1,
        0,
        1,
    }
