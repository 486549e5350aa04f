"""Environments that break Gymnasium's API or their own spaces, or never end an episode."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np

LENGTH = 5  # steps of an episode


class Sound(gym.Env[Any, Any]):
    """Breaks nothing."""

    observation_space: Any = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space: Any = gym.spaces.Discrete(2)
    reward: Any = 1.0
    seen = 0  # observations so far

    def first(self) -> Any:
        return self.observation()

    def observation(self) -> Any:
        self.seen += 1
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return self.first(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        return self.observation(), self.reward, self.time == LENGTH, False, {}


class OtherShape(Sound):
    def observation(self) -> Any:
        return np.zeros(3, np.float32)


class OtherShapeInStep(OtherShape):
    def first(self) -> Any:
        return np.zeros(2, np.float32)


class OtherType(Sound):
    observation_space = gym.spaces.Box(0, 255, (2,), np.uint8)

    def observation(self) -> Any:
        return np.full(2, 0.5)


class Outside(Sound):
    observation_space = gym.spaces.Discrete(5)

    def observation(self) -> Any:
        return 7


class WithoutPart(Sound):
    observation_space = gym.spaces.Dict(a=gym.spaces.Discrete(2), b=gym.spaces.Discrete(2))

    def observation(self) -> Any:
        return {"a": 0}


class NotFinite(Sound):
    def observation(self) -> Any:
        return np.array([0, np.nan], np.float32)


class NotFiniteLate(Sound):
    """Returns infinity once, long after the steps that are checked one by one."""

    def observation(self) -> Any:
        found = super().observation()
        if self.seen == 1500:
            found[1] = np.inf
        return found


class OtherShapeLate(Sound):
    def observation(self) -> Any:
        found = super().observation()
        return found[:1] if self.seen == 1500 else found


class RewardNotFinite(Sound):
    reward = np.nan


class RewardOfText(Sound):
    reward = "high"


class OldStep(Sound):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, info


class OldStepLate(OldStep):
    """Returns four values after the steps that are checked one by one."""

    def step(self, action: Any) -> Any:
        result = super().step(action)
        if self.seen > 1500:
            return result
        observation, reward, terminated, info = result
        return observation, reward, terminated, False, info


class RewardOfNoneLate(Sound):
    def step(self, action: Any) -> Any:
        self.reward = None if self.seen > 1500 else 1.0
        return super().step(action)


class OldReset(Sound):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0]


class OldSeed(Sound):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class OddFlag(Sound):
    def step(self, action: Any) -> Any:
        return self.observation(), 1.0, None, None, {}


class WithoutActions(gym.Env[Any, Any]):
    observation_space = gym.spaces.Discrete(2)


class WithoutObservations(gym.Env[Any, Any]):
    action_space = gym.spaces.Discrete(2)


class Leaving(Sound):
    """Ends the program, as if it had succeeded."""

    def step(self, action: Any) -> Any:
        sys.exit(0)


class Endless(Sound):
    """Ends no episode after the first ones.

    Args:
        ends: how many episodes end.
    """

    def __init__(self, ends: int = 0) -> None:
        self._left = ends

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._left -= 1
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        observation, reward, over, *_ = super().step(action)
        return observation, reward, over and self._left >= 0, False, {}


class EndlessByChance(Endless):
    """Does not end one of a hundred episodes. Which one depends on their seeds alone."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        result = super().reset(seed=seed)
        self._left = 0 if self.np_random.random() > 0.01 else -1
        return result


gym.register("tests/OldStep-v0", OldStep, max_episode_steps=50)
gym.register("tests/WithoutActions-v0", WithoutActions)
