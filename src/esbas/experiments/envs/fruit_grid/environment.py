"""The fruit collection task (Section 5.1 of the paper) as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from esbas.envs.fruit_grid.map import ACTIONS, DEFAULT_MAP, Cell, FruitMap
from esbas.envs.fruit_grid.picture import picture
from esbas.errors import require, unknown


class FruitGrid(gymnasium.Env[Any, Any]):
    """Walk (N, E, S, W) and eat all fruits as fast as possible. Rewards are so noisy that the learning rate matters.

    The reward is 1 for a fruit, otherwise 0, plus Gaussian noise. An episode starts on a free cell without a fruit, drawn
    uniformly. It terminates when all fruits are eaten and is truncated after `max_steps`. A step into a wall does not move the
    agent, but counts as a step.

    Args:
        map: the map as text, see `FruitMap`; by default the 5 x 5 map of our reproduction of the paper's experiment.
        noise: standard deviation of the noise on each reward.
        max_steps: the maximum number of steps of an episode.
        render_mode: "ansi" (text), "rgb_array" (a picture) or None.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012  # required by Gymnasium

    def __init__(
        self,
        map: str = DEFAULT_MAP,  # noqa: A002  # the name that users expect
        *,
        noise: float = 1.0,
        max_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        self.map = FruitMap(map)
        require(noise >= 0, "noise >= 0", noise=noise)
        longest = max(self.map.optimal_steps().values())
        require(max_steps >= longest, f"max_steps >= {longest}, the minimum for this map", max_steps=max_steps)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        self.noise, self.max_steps, self.render_mode = noise, max_steps, render_mode
        self.observation_space = spaces.Discrete(self.map.end + 1)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._following, self._eaten = (
            self.map.following.tolist(),
            self.map.eaten.tolist(),
        )  # lists are faster to index than arrays
        self._starts = self.map.starts.tolist()
        self._end = self._state = self._before = self.map.end
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start on a free cell, or on the one in `options={"start": (row, column)}`."""
        super().reset(seed=seed, options=options)
        start = (options or {}).get("start")
        if start is None:
            self._state = self._starts[self.np_random.integers(len(self._starts))]
        else:
            cells = list(self.map.optimal_steps())
            require(tuple(start) in cells, "a start is a free cell without a fruit", start=start)
            self._state = self._starts[cells.index(tuple(start))]
        self._steps = 0
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move, eat the fruit on the new cell if there is one, and return a noisy reward."""
        self._before, eaten = self._state, self._eaten[self._state][action]
        self._state = self._following[self._state][action]
        self._steps += 1
        reward = eaten + self.noise * self.np_random.normal()
        terminated = self._state == self._end
        return self._state, reward, terminated, not terminated and self._steps >= self.max_steps, {}

    def optimal_steps(self) -> dict[Cell, int]:
        """The minimum number of steps from each start (row, column)."""
        return self.map.optimal_steps()

    def optimum(self) -> float:
        """The minimum number of steps, averaged over the starts."""
        return self.map.optimum()

    def render(self) -> str | NDArray[np.uint8] | None:
        """The current map as text (`A` is the agent) or as a picture; None without a render mode."""
        agent, fruits = self.map.place(self._state)
        if self._before != self._end == self._state:
            agent = self.map.place(self._before)[1][0]  # the agent is where the last fruit was
        if self.render_mode == "rgb_array":
            return picture(self.map, agent, fruits)
        if self.render_mode == "ansi":
            signs = dict.fromkeys(self.map.cells, ".") | dict.fromkeys(fruits, "F") | {agent: "A"}
            lines = ["".join(signs.get((r, c), "#") for c in range(len(row))) for r, row in enumerate(self.map.rows)]
            return "\n".join(lines) + "\n"
        return None
