"""Targets of deep Q-learning by hand: where returns end, what they bootstrap from, their traces."""

import math
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import Transition
from esbas.learners import DQN, SharedReplay
from esbas.learners.dqn.group import UpdateOptions
from esbas.learners.dqn.overlapped.excerpts import excerpt_of, fill, following_at, layouts
from esbas.learners.dqn.targets import targets_of
from learners.memories import filled, task

LABELS = gym.spaces.Discrete(6)
HALF = math.log(0.5)
STARTS = [1, 5]  # where the second episode begins: elsewhere, or where the first one was truncated
# With γ = 0.5 and the values Q(s, .) = (4 s, 4 s + 1), of which the second one is the best. Every
# action after the first one is the best, so corrected and uncorrected returns are the same:
# 1 + 2 / 2 + Q(5) / 4 = 7.25; 2 + Q(5) / 2 = 12.5; 10 + 20 / 2 = 20; 20.
TARGETS = [7.25, 12.5, 20.0, 20.0]


def memory_of_two_episodes(start: int) -> SharedReplay:
    """The first episode is truncated at 5, the second one terminates at 3."""
    steps = [
        Transition(0, 0, 1.0, 1, False, False, HALF),
        Transition(1, 1, 2.0, 5, False, True, HALF),
        Transition(start, 1, 10.0, 2, False, False, HALF),
        Transition(2, 1, 20.0, 3, True, False, HALF),
    ]
    return filled(steps, LABELS)


def options_with(**changes: Any) -> UpdateOptions:
    usual = {"rate": 0.1, "gamma": 0.5, "double": False, "n_steps": 3, "corrected": True}
    return UpdateOptions(**usual | {"trace_decay": 1.0} | changes)


def rising_values(name: str, observations: Any) -> Any:
    del name
    return np.stack([4 * observations, 4 * observations + 1], axis=-1).astype(np.float32)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("corrected", [True, False])
def test_returns_end_at_a_truncation(corrected: bool, start: int) -> None:
    replay = memory_of_two_episodes(start)
    options = [options_with(corrected=corrected)]
    rows = np.arange(4)[None]
    found = targets_of(replay.arrays(), rows, options, replay.next_observations, rising_values)
    assert found.tolist() == [TARGETS]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("corrected", [True, False])
def test_returns_of_an_excerpt_end_at_a_truncation(corrected: bool, start: int) -> None:
    """Overlapped training copies steps into an excerpt first."""
    replay = memory_of_two_episodes(start)
    arrays = {}
    for name, (shape, dtype) in layouts(4, 3, corrected, (), np.int64).items():
        arrays[name] = np.empty(shape, dtype)
    excerpt = excerpt_of(arrays)
    fill(excerpt, replay, np.arange(4), 3)
    rows = np.arange(4)[None] * 3
    options = [options_with(corrected=corrected)]
    following = partial(following_at, excerpt)
    found = targets_of(excerpt.steps, rows, options, following, rising_values)
    assert found.tolist() == [TARGETS]


@pytest.mark.parametrize("start", STARTS)
def test_returns_of_a_batch_end_at_a_truncation(start: int) -> None:
    batch = memory_of_two_episodes(start).batch(np.arange(4), steps=3, gamma=0.5)
    assert batch.returns.tolist() == [2.0, 2.0, 20.0, 20.0]
    assert batch.discounts.tolist() == [0.25, 0.5, 0.25, 0.5]
    assert batch.next_observations.tolist() == [5, 5, 3, 3]
    assert batch.terminated.tolist() == [False, False, True, True]


def test_tied_actions_share_their_probability() -> None:
    """At 1, both actions are the best: π = 1/2, so c = 0.5 / 0.8 if the behavior had 0.8."""
    steps = [
        Transition(0, 0, 1.0, 1, False, False, HALF),
        Transition(1, 1, 3.0, 2, True, False, math.log(0.8)),
    ]
    replay = filled(steps, LABELS)

    def tied_values(name: str, observations: Any) -> Any:
        del name
        return np.full((*observations.shape, 2), 2.0, np.float32)

    options = [options_with(gamma=1.0)]
    rows = np.arange(2)[None]
    found = targets_of(replay.arrays(), rows, options, replay.next_observations, tied_values)
    # 1 + 2 + c (3 - 2)
    assert found[0].tolist() == pytest.approx([3.625, 3.0], rel=1e-6)


def test_each_epoch_trains_for_new_transitions_only() -> None:
    """`learn` trains after every second of the transitions 5 to 10, then 11 to 16."""
    learner = DQN(
        "it",
        replay=SharedReplay(task(LABELS), buffer_size=100),
        hidden=(),
        batch_size=2,
        learning_starts=4,
        train_freq=2,
        gradient_steps=3,
    )
    data = esbas.TrajectorySet()
    updates = []
    for length in (10, 6):
        actions = np.zeros(length, np.int64)
        seen = np.arange(length + 1) % 6
        data.append(esbas.Trajectory(seen, actions, np.ones(length), False, True))
        learner.learn(data)
        updates.append(learner.state_dict()["network"]["updates"])
    learner.learn(data)  # nothing is new
    updates.append(learner.state_dict()["network"]["updates"])
    assert updates == [9, 18, 18]


@pytest.mark.parametrize("start", [3, -(10**9)])
def test_rows_that_were_never_written_have_a_valid_label(start: int) -> None:
    """Compiled functions use labels as indices of weights, without a check."""
    space = gym.spaces.Discrete(4, start=start)
    replay = filled([Transition(start + 1, 0, 1.0, start + 2, True, False)], space)
    labels = replay.arrays().frames[:, 0] - start
    assert labels.tolist() == [1] + [0] * 99
