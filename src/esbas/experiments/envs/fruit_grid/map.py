"""Maps of fruit collection: states, moves, and the minimum number of steps."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.errors import InvalidValueError, require

DEFAULT_MAP = """\
F#.#F
.....
#.#.#
.....
F#.#F"""

ACTIONS = "N", "E", "S", "W"
_STEPS = (-1, 0), (0, 1), (1, 0), (0, -1)  # (row, column) by action
_MOST_FRUITS = 8

Cell = tuple[int, int]


@dataclass(frozen=True, eq=False)
class FruitMap:
    """A validated map: `F` is a cell with a fruit, `.` a free cell, `#` a wall.

    Episodes start on free cells. A state is a cell and the set of the fruits that are left; its
    number is cell * (2^F - 1) + (bits of the set) - 1. The last state is the end, where no fruit is
    left. The default map has 18 cells and 4 fruits: 270 states and the end.
    """

    text: str = DEFAULT_MAP
    rows: tuple[str, ...] = field(init=False)
    cells: tuple[Cell, ...] = field(init=False)  # all that are not walls, row by row
    fruits: tuple[Cell, ...] = field(init=False)  # cells with fruits
    starts: NDArray[np.int32] = field(
        init=False
    )  # (starts,): states of free cells, all fruits left
    following: NDArray[np.int32] = field(init=False)  # (S + 1, 4): next state by state and action
    eaten: NDArray[np.bool_] = field(init=False)  # (S + 1, 4): whether that move eats a fruit

    def __post_init__(self) -> None:
        rows = tuple(line.strip() for line in self.text.strip().splitlines())
        _check_shape(rows)
        cells = []
        fruits = []
        for r, row in enumerate(rows):
            for c, kind in enumerate(row):
                if kind != "#":
                    cells.append((r, c))
                if kind == "F":
                    fruits.append((r, c))
        self._set(rows=rows, cells=tuple(cells), fruits=tuple(fruits))
        self._check_cells()
        starts = []
        for i, cell in enumerate(cells):
            if cell not in fruits:
                starts.append(self._state(i, self._sets))
        following, eaten = self._moves()
        self._set(starts=np.array(starts, np.int32), following=following, eaten=eaten)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def _sets(self) -> int:
        """The number of non-empty sets of fruits, which is also the set of all fruits as bits."""
        return (1 << len(self.fruits)) - 1

    def _state(self, cell: int, bits: int) -> int:
        """Return the number of the state with the agent on this cell and this set of fruits."""
        return cell * self._sets + bits - 1

    @property
    def end(self) -> int:
        """The number of the last state, which is also the number of the other states."""
        return len(self.cells) * self._sets

    def decode(self, state: int) -> tuple[Cell | None, tuple[Cell, ...]]:
        """Return the cell of the agent (None at the end) and the fruits that are left."""
        if state == self.end:
            return None, ()
        cell = state // self._sets
        bits = state % self._sets + 1
        left = tuple(fruit for i, fruit in enumerate(self.fruits) if bits >> i & 1)
        return self.cells[cell], left

    def steps_to_end(self) -> NDArray[np.int32]:
        """Return the minimum number of steps from each state to the end, (S + 1,).

        This is a breadth-first search from the end.
        """
        steps = np.full(self.end + 1, -1, np.int32)  # -1: not reached so far
        steps[self.end] = 0
        for depth in range(1, self.end + 1):
            reached = (steps < 0) & (steps[self.following] == depth - 1).any(axis=1)
            if not reached.any():
                break
            steps[reached] = depth
        return steps

    def optimal_steps(self) -> dict[Cell, int]:
        """Return the minimum number of steps from each start."""
        steps = self.steps_to_end()
        by_cell = {}
        for start in self.starts.tolist():
            by_cell[self.cells[start // self._sets]] = int(steps[start])
        return by_cell

    def optimum(self) -> float:
        """Return the minimum number of steps, averaged over the starts."""
        return float(self.steps_to_end()[self.starts].mean())

    def _moves(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the tables `following` and `eaten`.

        A step into a wall or out of the map does not move the agent. A fruit is eaten on arrival.
        """
        number = {cell: i for i, cell in enumerate(self.cells)}
        following = np.full((self.end + 1, len(ACTIONS)), self.end, np.int32)
        eaten = np.zeros((self.end + 1, len(ACTIONS)), np.bool_)
        for i, (row, column) in enumerate(self.cells):
            for action, (down, right) in enumerate(_STEPS):
                target = (row + down, column + right)
                j = number.get(target, i)
                fruit = 0  # the bit of the fruit on cell j
                if self.cells[j] in self.fruits:
                    fruit = 1 << self.fruits.index(self.cells[j])
                for bits in range(1, self._sets + 1):
                    left = bits & ~fruit
                    state = self._state(i, bits)
                    eaten[state, action] = left != bits
                    if left:
                        following[state, action] = self._state(j, left)
        return following, eaten

    def _check_cells(self) -> None:
        fruits = len(self.fruits)
        free = len(self.cells) - fruits
        require(
            1 <= fruits <= _MOST_FRUITS,
            f"A map must have 1 to {_MOST_FRUITS} fruits, but got {fruits}: mark them with F.",
        )
        require(free >= 1, "A map must have a free cell to start on: mark it with a dot.")
        everywhere = set(self.cells)
        inside = _connected(self.cells[0], everywhere)
        outside = everywhere - inside
        if outside:
            smaller = min([inside, outside], key=lambda region: (len(region), min(region)))
            row, column = min(smaller)
            raise InvalidValueError(
                f"A map must let the agent walk from every cell to every fruit, but row {row + 1}, "
                f"column {column + 1} is cut off: open a wall or close the cell."
            )


def _check_shape(rows: tuple[str, ...]) -> None:
    require(len(rows) >= 1, "A map must not be empty: write one line of F, # and . per row.")
    for r, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidValueError(
                f"The lines of a map must be equally long, but row {r + 1} has {len(row)} cells "
                f"and row 1 has {len(rows[0])}: fill them up with #."
            )
        for c, kind in enumerate(row):
            if kind not in "F#.":
                raise InvalidValueError(
                    f"A map must consist of F (fruit), # (wall) and . (free), but {kind!r} is in "
                    f"row {r + 1}, column {c + 1}: replace it."
                )


def _connected(first: Cell, cells: set[Cell]) -> set[Cell]:
    """Return all cells that can be reached from the first one."""
    found = {first}
    edge = [first]
    while edge:
        row, column = edge.pop()
        neighbors = {(row + down, column + right) for down, right in _STEPS}
        near = (neighbors & cells) - found
        found |= near
        edge.extend(near)
    return found
