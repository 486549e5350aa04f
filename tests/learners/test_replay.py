"""The shared memory against a plain list of transitions."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esbas import Trajectory, TrajectorySet, Transition
from esbas.errors import InvalidValueError, SpaceError
from esbas.learners.dqn.replay import storage as replay_storage
from esbas.learners.dqn.replay.memory import SharedReplay
from learners.memories import TWO, VECTORS, everything, expect, filled, stacked_walk, task, walk


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=12), st.integers(2, 20), st.booleans())
def test_holds_the_last_transitions_exactly(
    lengths: list[int], buffer_size: int, truncated: bool
) -> None:
    steps = walk(lengths, truncated=truncated)
    replay = filled(steps, buffer_size=buffer_size)
    assert len(replay) == min(len(steps), buffer_size)
    assert replay.episodes == len(lengths)
    expect(everything(replay), steps[-buffer_size:])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(2, 20))
def test_rebuilds_stacks_of_frames_exactly(lengths: list[int], buffer_size: int) -> None:
    steps = stacked_walk(lengths)
    replay = filled(
        steps, gym.spaces.Box(0, 255, (4, 3, 3), np.uint8), buffer_size=buffer_size, stack=4
    )
    expect(everything(replay), steps[-buffer_size:])


def test_single_frames_take_a_quarter_of_the_memory() -> None:
    space = gym.spaces.Box(0, 255, (4, 3, 3), np.uint8)
    sizes = {}
    for stack in (1, 4):
        state = filled(stacked_walk([100]), space, buffer_size=100, stack=stack).state_dict()
        sizes[stack] = sum(
            value.nbytes
            for name, value in state.items()
            if name in ("frames", "tail_items", "head_items")
        )
    assert sizes[4] < 0.27 * sizes[1]


def test_discrete_observations() -> None:
    steps = [Transition(s, s % 2, 1.0, s + 1, s == 4, False) for s in range(5)]
    expect(everything(filled(steps, gym.spaces.Discrete(6))), steps)


def test_stores_each_transition_once() -> None:
    steps = walk([3, 4])
    replay = SharedReplay(task(), buffer_size=100)
    for step in steps:
        for _ in range(3):
            replay.add(step)
    assert replay.added == 7
    expect(everything(replay), steps)


def test_equal_transitions_that_really_happened_twice_are_two() -> None:
    replay = SharedReplay(task(gym.spaces.Discrete(3)), buffer_size=10)
    for _ in range(2):
        replay.add(Transition(1, 0, 0.5, 1, False, False))
    assert replay.added == 2


def test_a_gap_starts_a_new_piece() -> None:
    steps = walk([10])
    kept = steps[:3] + steps[6:]  # three steps were not added
    replay = filled(kept)
    expect(everything(replay), kept)
    ahead = replay.batch(replay.rows(np.array([1])), steps=5)
    np.testing.assert_array_equal(ahead.next_observations[0], steps[2].next_observation)


def test_reads_growing_data_once() -> None:
    data = TrajectorySet()
    replay = SharedReplay(task(), buffer_size=100)
    everyone: list[Transition] = []
    for seed in range(3):
        steps = walk([4], seed=seed)
        everyone += steps
        seen = np.array([step.observation for step in steps] + [steps[-1].next_observation])
        actions = np.array([step.action for step in steps])
        rewards = np.array([step.reward for step in steps])
        data.append(Trajectory(seen, actions, rewards, True, False))
        for _ in range(2):  # two learners
            replay.take(data)
    assert replay.added == 12
    expect(everything(replay), everyone)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.integers(2, 15),
    st.integers(1, 5),
    st.booleans(),
)
def test_n_step_returns_end_with_the_episode(
    lengths: list[int], buffer_size: int, n: int, truncated: bool
) -> None:
    steps = walk(lengths, truncated=truncated)
    gamma = 0.9
    replay = filled(steps, buffer_size=buffer_size)
    numbers = np.arange(replay.added - len(replay), replay.added)
    batch = replay.batch(replay.rows(numbers % buffer_size), steps=n, gamma=gamma)
    for position, number in enumerate(numbers):
        piece = []
        for step in steps[number : number + n]:
            piece.append(step)
            if step.terminated or step.truncated:
                break
        value = sum(gamma**j * step.reward for j, step in enumerate(piece))
        assert batch.returns[position] == pytest.approx(value, abs=1e-5)
        assert batch.discounts[position] == pytest.approx(gamma ** len(piece))
        assert batch.terminated[position] == piece[-1].terminated
        np.testing.assert_array_equal(batch.next_observations[position], piece[-1].next_observation)


def test_each_row_of_a_batch_has_its_own_horizon_and_discount() -> None:
    steps = walk([6])
    replay = filled(steps)
    batch = replay.batch(
        np.array([[0], [0]]), steps=np.array([[1], [3]]), gamma=np.array([[0.5], [0.9]])
    )
    rewards = [step.reward for step in steps]
    three = rewards[0] + 0.9 * rewards[1] + 0.81 * rewards[2]
    np.testing.assert_allclose(batch.returns, [[rewards[0]], [three]], rtol=1e-6)
    np.testing.assert_allclose(batch.discounts, [[0.5], [0.9**3]], rtol=1e-6)


def test_draws_follow_the_generator_alone_and_are_uniform() -> None:
    replay = filled(walk([50, 50]), buffer_size=40)
    first, again, other = (replay.draw(np.random.default_rng(seed), 4000) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    counts = np.bincount(first, minlength=40)
    assert len(counts) == 40
    assert 60 < counts.min() <= counts.max() < 145


def test_box_actions_are_stored_scaled() -> None:
    space = gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))
    replay = SharedReplay(task(action_space=space), buffer_size=10)
    seen = np.zeros(2, np.float32)
    first = np.array([1.0, 5.0], np.float32)
    second = np.array([-2.0, 10.0], np.float32)
    exact = np.array([0.1, 0.2], np.float32)
    replay.add(Transition(seen, first, 0.0, seen, False, False))
    replay.note(second, exact)
    replay.add(Transition(seen, second, 0.0, seen, False, False))
    np.testing.assert_array_equal(everything(replay).actions, [[0.5, 0.0], exact])


@pytest.mark.parametrize("stack", [1, 4])
def test_a_restored_memory_continues_identically(stack: int) -> None:
    space = VECTORS if stack == 1 else gym.spaces.Box(0, 255, (4, 3, 3), np.uint8)
    steps = walk([5, 9, 2, 30]) if stack == 1 else stacked_walk([5, 9, 2, 30])
    replay = filled(steps[:20], space, buffer_size=13, stack=stack)  # within an episode
    state = replay.state_dict()
    copy = SharedReplay(task(space), buffer_size=13, stack=stack)
    for step in steps[20:25]:
        replay.add(step)  # must not change the saved state
    copy.load_state_dict(state)
    expect(everything(copy), steps[7:20])
    for step in steps[20:]:
        copy.add(step)
    expect(everything(copy), steps[-13:])
    assert (copy.added, copy.episodes) == (46, 4)


def test_states_saved_at_the_same_time_share_their_arrays() -> None:
    replay = filled(walk([5]))
    one = replay.state_dict()
    other = replay.state_dict()
    assert one["frames"] is other["frames"]
    replay.add(walk([1], seed=3)[0])
    assert len(replay.state_dict()["frames"]) == len(one["frames"]) + 1


def test_too_little_memory_raises_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_storage, "available_memory", lambda: 1e9)
    images = task(gym.spaces.Box(0, 255, (4, 84, 84), np.uint8))
    with pytest.raises(
        InvalidValueError, match=r"1,000,000 transitions need 28\.2 GB and 1\.0 GB are free"
    ):
        SharedReplay(images, buffer_size=1_000_000)
    with pytest.raises(InvalidValueError, match=r"need 7\.1 GB .*: lower its `buffer_size`"):
        SharedReplay(images, buffer_size=1_000_000, stack=4)
    SharedReplay(images, buffer_size=1_000, stack=4)


def test_available_memory_comes_from_the_system() -> None:
    assert replay_storage.available_memory() > 1e6


def jumping_frames() -> SharedReplay:
    step = stacked_walk([9])[0]._replace(next_observation=np.zeros((4, 3, 3), np.uint8))
    return filled([step], gym.spaces.Box(0, 255, (4, 3, 3), np.uint8), stack=4)


def smaller_memory() -> None:
    SharedReplay(task(), buffer_size=9).load_state_dict(filled(walk([3])).state_dict())


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (
            lambda: SharedReplay(task(), buffer_size=1),
            InvalidValueError,
            "`buffer_size` must be at least 2, but got 1",
        ),
        (
            lambda: SharedReplay(task(), stack=3),
            InvalidValueError,
            "`stack` must be 1 or the length",
        ),
        (
            lambda: SharedReplay(task(gym.spaces.Dict(a=TWO))),
            SpaceError,
            "observation space of a replay memory must be",
        ),
        (
            lambda: SharedReplay(task(action_space=gym.spaces.MultiDiscrete([2, 2]))),
            SpaceError,
            "must be Discrete or Box",
        ),
        (
            lambda: SharedReplay(task(action_space=VECTORS)),
            SpaceError,
            "Actions must have bounds",
        ),
        (
            lambda: filled([Transition(np.zeros(3), 0, 0.0, np.zeros(3), False, False)]),
            InvalidValueError,
            "must have the shape",
        ),
        (jumping_frames, InvalidValueError, "Frames must shift by one"),
        (
            smaller_memory,
            InvalidValueError,
            "the `buffer_size` with which it was saved, 100, but got 9",
        ),
    ],
)
def test_bad_input_raises_a_clear_error(make: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        make()


def test_nothing_is_stored_of_a_bad_transition() -> None:
    steps = walk([4])
    replay = filled(steps[:2])
    with pytest.raises(InvalidValueError):
        replay.add(steps[2]._replace(next_observation=np.zeros(5)))
    replay.add(steps[2])
    expect(everything(replay), steps[:3])
