"""Pictures of fruit collection, drawn with NumPy alone."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from esbas.experiments.envs.fruit_grid.map import Cell, FruitMap

_CELL = 48  # pixels
_FINE = 4  # each pixel is the mean of 4 x 4 finer ones, for smooth edges

_FLOOR = (247, 244, 236)
_LINE = (222, 216, 203)
_WALL = (74, 85, 104)
_FRUIT = (214, 57, 57)
_SHINE = (240, 148, 140)
_STALK = (110, 84, 60)
_LEAF = (79, 153, 87)
_AGENT = (47, 111, 191)
_EYE = (255, 255, 255)

Canvas = NDArray[np.float64]


def picture(grid: FruitMap, agent: Cell | None, fruits: Collection[Cell]) -> NDArray[np.uint8]:
    """Return a picture of the map, the fruits that are left and the agent, (height, width, 3)."""
    size = _CELL * _FINE
    canvas = np.empty((len(grid.rows) * size, len(grid.rows[0]) * size, 3))
    for r, row in enumerate(grid.rows):
        for c, kind in enumerate(row):
            # A view of the canvas, on which the functions below draw.
            square = canvas[r * size : (r + 1) * size, c * size : (c + 1) * size]
            if kind == "#":
                square[:] = _WALL
            else:
                square[:] = _LINE
                square[_FINE:-_FINE, _FINE:-_FINE] = _FLOOR
            if (r, c) in fruits:
                _draw_fruit(square)
            if (r, c) == agent:
                _draw_agent(square)
    height = canvas.shape[0] // _FINE
    width = canvas.shape[1] // _FINE
    pixels: Canvas = canvas.reshape(height, _FINE, width, _FINE, 3).mean(axis=(1, 3))
    return pixels.round().astype(np.uint8)


def _draw_fruit(square: Canvas) -> None:
    _ellipse(square, 0.52, 0.26, 0.025, 0.11, _STALK)
    _ellipse(square, 0.62, 0.22, 0.10, 0.05, _LEAF)
    _ellipse(square, 0.42, 0.56, 0.17, 0.24, _FRUIT)
    _ellipse(square, 0.58, 0.56, 0.17, 0.24, _FRUIT)
    _ellipse(square, 0.38, 0.48, 0.05, 0.07, _SHINE)


def _draw_agent(square: Canvas) -> None:
    _ellipse(square, 0.5, 0.5, 0.32, 0.32, _AGENT)
    for x in (0.40, 0.60):
        _ellipse(square, x, 0.43, 0.07, 0.09, _EYE)
        _ellipse(square, x, 0.45, 0.035, 0.045, _WALL)


def _ellipse(
    square: Canvas, x: float, y: float, width: float, height: float, color: tuple[int, int, int]
) -> None:
    """Fill an ellipse. Center and half axes are fractions of the square."""
    at = (np.arange(len(square)) + 0.5) / len(square)  # centers of the pixels, on either axis
    inside = ((at - x) / width) ** 2 + ((at[:, None] - y) / height) ** 2 <= 1
    square[inside] = color
