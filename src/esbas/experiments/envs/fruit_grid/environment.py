"""Fruit collection (Section 5.1 of the paper) as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from esbas.errors import require, unknown
from esbas.experiments.envs.fruit_grid.map import ACTIONS, DEFAULT_MAP, Cell, FruitMap
from esbas.experiments.envs.fruit_grid.picture import picture


class FruitGrid(gymnasium.Env[Any, Any]):
    """Walk (N, E, S, W) and eat all fruits as fast as possible.

    The reward is 1 for a fruit, otherwise 0, plus Gaussian noise, which is so large that the
    learning rate matters. An episode starts on a free cell without a fruit, drawn uniformly. It
    terminates when all fruits are eaten and is truncated after `max_episode_steps`. A step into a
    wall does not move the agent, but counts as a step.

    Args:
        map: the map as text, see `FruitMap`; by default the 5 x 5 map of our reproduction of the
            paper's experiment.
        noise: standard deviation of the noise on each reward.
        max_episode_steps: the maximum number of steps of an episode.
        render_mode: "ansi" (text), "rgb_array" (a picture) or None.
    """

    # Gymnasium requires a dictionary.
    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        map: str = DEFAULT_MAP,  # noqa: A002  # the name that users expect
        *,
        noise: float = 1.0,
        max_episode_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        self.map = FruitMap(map)
        require(noise >= 0, f"`noise` must be at least 0, but got {noise!r}.")
        longest = max(self.map.optimal_steps().values())
        require(
            max_episode_steps >= longest,
            f"`max_episode_steps` must be at least {longest} on this map, "
            f"but got {max_episode_steps!r}.",
        )
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        self.noise = noise
        self.max_episode_steps = max_episode_steps
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(self.map.end + 1)
        self.action_space = spaces.Discrete(len(ACTIONS))
        # Lists are faster to index than arrays.
        self._following = self.map.following.tolist()
        self._eaten = self.map.eaten.tolist()
        self._starts = self.map.starts.tolist()
        self._end = self.map.end
        self._state = self._end
        self._before = self._end
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start on a free cell, or on the one in `options={"start": (row, column)}`."""
        super().reset(seed=seed, options=options)
        start = (options or {}).get("start")
        if start is None:
            self._state = self._starts[self.np_random.integers(len(self._starts))]
        else:
            cells = list(self.map.optimal_steps())
            require(
                tuple(start) in cells,
                f"`start` must be a free cell without a fruit, but got {start!r}.",
            )
            self._state = self._starts[cells.index(tuple(start))]
        self._steps = 0
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move, eat the fruit on the new cell if there is one, and return a noisy reward."""
        self._before = self._state
        eaten = self._eaten[self._state][action]
        self._state = self._following[self._state][action]
        self._steps += 1
        reward = eaten + self.noise * self.np_random.normal()
        terminated = self._state == self._end
        truncated = not terminated and self._steps >= self.max_episode_steps
        return self._state, reward, terminated, truncated, {}

    def optimal_steps(self) -> dict[Cell, int]:
        """Return the minimum number of steps from each start (row, column)."""
        return self.map.optimal_steps()

    def optimum(self) -> float:
        """Return the minimum number of steps, averaged over the starts."""
        return self.map.optimum()

    def render(self) -> str | NDArray[np.uint8] | None:
        """Return the map as text (`A` is the agent) or as a picture; None without a render mode."""
        agent, fruits = self.map.decode(self._state)
        if self._state == self._end and self._before != self._end:
            # The agent is where it has just eaten the last fruit.
            _, left_before = self.map.decode(self._before)
            agent = left_before[0]
        if self.render_mode == "rgb_array":
            return picture(self.map, agent, fruits)
        if self.render_mode == "ansi":
            return self._text(agent, fruits)
        return None

    def _text(self, agent: Cell | None, fruits: tuple[Cell, ...]) -> str:
        lines = []
        for r, row in enumerate(self.map.rows):
            line = ""
            for c, kind in enumerate(row):
                if (r, c) == agent:
                    line += "A"
                elif (r, c) in fruits:
                    line += "F"
                else:
                    line += "#" if kind == "#" else "."
            lines.append(line)
        return "\n".join(lines) + "\n"
