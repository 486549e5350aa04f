"""A tiny task for the tests of training: walk right along a lane.

Variants differ in how they render.
"""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import DependencyNotInstalled

CELLS = 5


class Lane(gym.Env[int, int]):
    """Action 1 goes right, action 0 left; the last cell gives reward 1 and ends the episode."""

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 10,
    }

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = gym.spaces.Discrete(CELLS)
        self.action_space = gym.spaces.Discrete(2)
        self.render_mode = render_mode
        self._cell = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._cell = 0
        return self._cell, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._cell = min(max(self._cell + (1 if action else -1), 0), CELLS - 1)
        over = self._cell == CELLS - 1
        return self._cell, float(over), over, False, {}

    def render(self) -> Any:
        if self.render_mode == "ansi":
            return "".join("A" if cell == self._cell else "." for cell in range(CELLS))
        picture = np.zeros((40, 100 * CELLS, 3), np.uint8)
        picture[:, 100 * self._cell : 100 * (self._cell + 1)] = 255
        return picture


class TextLane(Lane):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}


class DarkLane(Lane):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}


class LaneWithoutPygame(Lane):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["human", "rgb_array"], "render_fps": 10}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        if self.render_mode == "human":
            self.render()
        return super().reset(seed=seed)

    def render(self) -> Any:
        raise DependencyNotInstalled(
            'pygame is not installed, run `pip install "gymnasium[classic-control]"`'
        )


class CrashingLane(Lane):
    def render(self) -> Any:
        raise OSError("no display\nat all")


for kind in (Lane, TextLane, DarkLane, LaneWithoutPygame, CrashingLane):
    gym.register(f"tests/{kind.__name__}-v0", entry_point=kind)
