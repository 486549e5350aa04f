"""Replay memories with known content."""

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np

from esbas import Transition
from esbas.learners.dqn.replay.memory import Batch, SharedReplay

VECTORS = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
TWO = gym.spaces.Discrete(2)


def task(observation_space: Any = VECTORS, action_space: Any = TWO) -> Any:
    return SimpleNamespace(observation_space=observation_space, action_space=action_space)


def walk(lengths: list[int], *, truncated: bool = False, seed: int = 0) -> list[Transition]:
    """Episodes of vectors. As in the loop, `next_observation` is the next `observation` itself."""
    rng = np.random.default_rng(seed)
    steps = []
    for length in lengths:
        seen = rng.normal(size=2).astype(np.float32)
        for t in range(length):
            following = rng.normal(size=2).astype(np.float32)
            last = t == length - 1
            ends = last and not truncated, last and truncated
            steps.append(
                Transition(
                    seen, int(rng.integers(2)), float(np.float32(rng.normal())), following, *ends
                )
            )
            seen = following
    return steps


def stacked_walk(lengths: list[int], *, stack: int = 4, seed: int = 0) -> list[Transition]:
    """Episodes of stacks of 3 x 3 frames whose first stack has `stack` different frames."""
    rng = np.random.default_rng(seed)
    steps = []
    for length in lengths:
        frames = rng.integers(256, size=(length + stack, 3, 3)).astype(np.uint8)
        for t in range(length):
            seen = frames[t : t + stack]
            following = frames[t + 1 : t + stack + 1]
            steps.append(
                Transition(seen, int(rng.integers(2)), float(t), following, t == length - 1, False)
            )
    return steps


def filled(
    steps: list[Transition], space: Any = VECTORS, *, buffer_size: int = 100, stack: int = 1
) -> SharedReplay:
    replay = SharedReplay(task(space), buffer_size=buffer_size, stack=stack)
    for step in steps:
        replay.add(step)
    return replay


def expect(batch: Batch, steps: list[Transition]) -> None:
    np.testing.assert_array_equal(batch.observations, [step.observation for step in steps])
    np.testing.assert_array_equal(batch.actions, [step.action for step in steps])
    np.testing.assert_array_equal(batch.returns, [step.reward for step in steps])
    np.testing.assert_array_equal(
        batch.next_observations, [step.next_observation for step in steps]
    )
    np.testing.assert_array_equal(batch.terminated, [step.terminated for step in steps])


def everything(replay: SharedReplay) -> Batch:
    """All transitions, the oldest first."""
    return replay.batch(
        replay.rows(np.arange(replay.added - len(replay), replay.added) % replay.buffer_size)
    )
