import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas import Trajectory, TrajectorySet
from esbas.errors import InvalidValueError


def episode(first, steps, *, terminated=True, truncated=False):
    """Observations first, first + 1, .

    Actions 10 * observation; rewards 0.5 more than the observation.
    """
    seen = np.arange(first, first + steps + 1)
    return Trajectory(
        seen, 10 * seen[:-1], seen[:-1] + 0.5, terminated, truncated, np.full(steps, 0.25)
    )


def test_only_the_last_step_is_marked_as_the_end():
    steps = list(episode(3, 2, terminated=False, truncated=True).transitions())
    assert steps == [(3, 30, 3.5, 4, False, False, 0.25, 0), (4, 40, 4.5, 5, False, True, 0.25, 0)]


def test_log_probs_are_nan_by_default():
    trajectory = Trajectory(np.arange(3), np.arange(2), np.ones(2), True, False)
    assert np.isnan(trajectory.log_probs).all()
    assert trajectory.log_probs.shape == (2,)


def test_the_arrays_of_a_trajectory_cannot_be_written_to():
    rewards = np.ones(2)
    trajectory = Trajectory(np.arange(3), np.arange(2), rewards, True, False)
    rewards[0] = 7
    assert trajectory.rewards[0] == 1
    for array in (
        trajectory.observations,
        trajectory.actions,
        trajectory.rewards,
        trajectory.log_probs,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        trajectory.terminated = False


@pytest.mark.parametrize(
    ("seen", "actions", "rewards"), [(3, 2, 3), (2, 2, 2), (3, 1, 2), (1, 0, 0), (4, 2, 2)]
)
def test_lengths_that_do_not_fit_are_refused(seen, actions, rewards):
    with pytest.raises(
        InvalidValueError, match=r"A trajectory must have (at least one step|one action)"
    ):
        Trajectory(np.arange(seen), np.arange(actions), np.ones(rewards), True, False)


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_rewards_that_are_not_finite_are_refused(reward):
    with pytest.raises(
        InvalidValueError, match=r"Rewards must be finite, but got .*: fix the environment"
    ):
        Trajectory(np.arange(3), np.arange(2), np.array([1.0, reward]), True, False)


def filled(lengths):
    data = TrajectorySet()
    for number, length in enumerate(lengths):
        data.append(
            episode(100 * number, length, terminated=number % 2 == 0, truncated=number % 2 == 1),
            arm="ab"[number % 2],
        )
    return data


@given(st.lists(st.integers(1, 90), min_size=1, max_size=12))
def test_a_set_holds_what_was_appended(lengths):
    data = filled(lengths)
    assert len(data) == len(lengths)
    for number, length in enumerate(lengths):
        kept = data[number]
        given_ = episode(100 * number, length)
        assert np.array_equal(kept.observations, given_.observations)
        assert np.array_equal(kept.actions, given_.actions)
        assert np.array_equal(kept.rewards, given_.rewards)
        assert np.array_equal(kept.log_probs, given_.log_probs)
        assert (kept.terminated, kept.truncated) == (number % 2 == 0, number % 2 == 1)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=12), st.data())
def test_columns_equal_the_steps_of_the_trajectories(lengths, draw):
    data = filled(lengths)
    since = draw.draw(st.integers(0, len(lengths) - 1))
    steps = [
        (number, step) for number in range(since, len(data)) for step in data[number].transitions()
    ]
    columns = data.transitions(since)
    assert columns.observations.tolist() == [step.observation for _, step in steps]
    assert columns.actions.tolist() == [step.action for _, step in steps]
    assert columns.rewards.tolist() == [step.reward for _, step in steps]
    assert columns.next_observations.tolist() == [step.next_observation for _, step in steps]
    assert columns.terminated.tolist() == [step.terminated for _, step in steps]
    assert columns.log_probs.tolist() == [step.log_prob for _, step in steps]
    assert columns.trajectory.tolist() == [number for number, _ in steps]


def test_a_set_returns_new_trajectories_and_those_of_an_arm():
    data = filled([2, 3, 4])
    assert [len(trajectory) for trajectory in data.since(1)] == [3, 4]
    assert data.since(3) == []
    assert [len(trajectory) for trajectory in data.by("a")] == [2, 4]
    assert data.by("unknown") == []
    assert len(data[-1]) == 4
    with pytest.raises(IndexError):
        data[3]


def test_returned_data_do_not_change_when_the_set_grows():
    data = filled([5])
    early = data[0]
    columns = data.transitions()
    for number in range(1, 50):
        data.append(episode(100 * number, 20))
    assert early.observations.tolist() == [0, 1, 2, 3, 4, 5]
    assert columns.observations.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        early.rewards[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        columns.rewards[0] = 1.0


def test_trajectories_of_another_shape_are_refused_and_nothing_is_lost():
    data = filled([2, 3])
    odd = Trajectory(np.zeros((3, 4)), np.arange(2), np.ones(2), True, False)
    with pytest.raises(InvalidValueError, match=r"observations must all be alike.*flatten or pad"):
        data.append(odd)
    fractional = Trajectory(np.arange(3), np.array([0.5, 0.5]), np.ones(2), True, False)
    with pytest.raises(InvalidValueError, match="actions must all be alike"):
        data.append(fractional)
    assert len(data) == 2
    data.append(episode(200, 1), arm="a")
    assert [len(data[number]) for number in range(3)] == [2, 3, 1]
    assert data.transitions().rewards.shape == (6,)


def test_an_empty_set_has_no_columns():
    with pytest.raises(
        InvalidValueError, match="`since` must be at least 0 and less than the number"
    ):
        TrajectorySet().transitions()


def test_a_loaded_set_is_equal_and_can_grow():
    data = filled([2, 3])
    twin = filled([9])
    twin.load_state_dict(data.state_dict())
    for each in (data, twin):
        each.append(episode(200, 4), arm="c")
    assert len(twin) == 3
    for one, other in zip(data.transitions(), twin.transitions(), strict=True):
        assert np.array_equal(one, other)
        assert one.dtype == other.dtype
    assert [len(trajectory) for trajectory in twin.by("c")] == [4]
