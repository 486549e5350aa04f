import math

import numpy as np
import pytest

from esbas import (
    Objective,
    Trajectory,
    discounted_return,
    episode_length,
    success_time,
    total_return,
)
from esbas.errors import InvalidValueError
from esbas.objective import as_objective


def episode(rewards, *, terminated=True):
    steps = len(rewards)
    return Trajectory(
        np.arange(steps + 1),
        np.zeros(steps, int),
        np.array(rewards, float),
        terminated,
        not terminated,
    )


def test_discounted_return_by_hand():
    # 1 + 0.5 * 2 + 0.25 * 4 = 3
    assert discounted_return(0.5)(episode([1, 2, 4])) == 3.0
    assert discounted_return(1)(episode([1, 2, 4])) == 7.0
    assert discounted_return(0)(episode([1, 2, 4])) == 1.0


def test_the_default_is_the_discounted_return():
    # 0.99 ** 2
    assert as_objective(None)(episode([0, 0, 1])) == pytest.approx(0.9801)


def test_return_and_length_by_hand():
    assert total_return()(episode([1, -2, 4])) == 3.0
    assert episode_length()(episode([1, -2, 4])) == 3.0


def test_success_time_is_the_length_or_the_failure_value():
    objective = success_time(failure=200)
    assert objective(episode([0] * 7)) == 7.0
    assert objective(episode([0] * 7, terminated=False)) == 200.0


@pytest.mark.parametrize(
    ("objective", "maximize"),
    [
        (discounted_return(), True),
        (total_return(), True),
        (episode_length(), False),
        (episode_length(maximize=True), True),
    ],
)
def test_selectors_see_larger_as_better(objective, maximize):
    assert objective.maximize is maximize
    assert objective.score(3.0) == (3.0 if maximize else -3.0)
    assert success_time(failure=9).score(3.0) == -3.0


def test_any_function_of_a_trajectory_is_accepted():
    def worst(trajectory):
        return trajectory.rewards.min()

    objective = as_objective(worst)
    assert (objective.name, objective.maximize) == ("worst", True)
    assert objective(episode([1, -2, 4])) == -2.0
    assert as_objective(objective) is objective


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused(value):
    with pytest.raises(
        InvalidValueError,
        match=r"The values of objective 'odd' must be finite, but got .*: fix its function",
    ):
        Objective(name="odd", function=lambda trajectory: value)(episode([1]))


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_gamma_lies_between_0_and_1(gamma):
    with pytest.raises(InvalidValueError, match="`gamma` must be between 0 and 1, but got"):
        discounted_return(gamma)


def test_a_function_that_makes_an_objective_is_called():
    assert as_objective(total_return).name == "return"
    assert as_objective(lambda *parts: 1.0).name == "<lambda>"  # a function of a trajectory
    with pytest.raises(InvalidValueError, match="`objective` must be an objective"):
        as_objective(lambda: 1.0)


@pytest.mark.parametrize("value", [None, "much", [1.0, 2.0]])
def test_a_value_is_a_number(value):
    objective = Objective(name="odd", function=lambda trajectory: value)
    with pytest.raises(InvalidValueError, match="The values of objective 'odd' must be numbers"):
        objective(None)
