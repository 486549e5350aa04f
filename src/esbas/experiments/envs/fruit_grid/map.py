"""Maps of the fruit collection task: states, moves, and the minimum number of steps."""

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
    """A validated map: `F` is a cell with a fruit, `.` a free cell on which episodes start, `#` a wall.

    A state is a cell and the set of the fruits that are left; its number is cell * (2^F - 1) + (bits of the set) - 1. The last
    state is the end, where no fruit is left. The default map has 18 cells and 4 fruits: 270 states and the end.
    """

    text: str = DEFAULT_MAP
    rows: tuple[str, ...] = field(init=False)
    cells: tuple[Cell, ...] = field(init=False)  # (row, column) of all cells that are not walls, row by row
    fruits: tuple[Cell, ...] = field(init=False)  # cells with fruits
    starts: NDArray[np.int32] = field(init=False)  # (starts,): the states in which episodes start, with all fruits
    following: NDArray[np.int32] = field(init=False)  # (S + 1, 4): the next state for each state and action
    eaten: NDArray[np.bool_] = field(init=False)  # (S + 1, 4): whether that move eats a fruit

    def __post_init__(self) -> None:
        rows = tuple(line.strip() for line in self.text.strip().splitlines())
        _check_shape(rows)
        found = [((r, c), kind) for r, row in enumerate(rows) for c, kind in enumerate(row) if kind != "#"]
        self._set(rows=rows, cells=tuple(cell for cell, _ in found), fruits=tuple(cell for cell, kind in found if kind == "F"))
        self._check_cells()
        full = self._sets - 1
        starts = [cell * self._sets + full for cell, (_, kind) in enumerate(found) if kind == "."]
        self._set(starts=np.array(starts, np.int32), **self._moves())

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def _sets(self) -> int:
        """The number of non-empty sets of fruits."""
        return (1 << len(self.fruits)) - 1

    @property
    def end(self) -> int:
        """The number of the last state, which is also the number of the other states."""
        return len(self.cells) * self._sets

    def place(self, state: int) -> tuple[Cell | None, tuple[Cell, ...]]:
        """The cell of the agent (None at the end) and the fruits that are left."""
        if state == self.end:
            return None, ()
        cell, bits = state // self._sets, state % self._sets + 1
        return self.cells[cell], tuple(fruit for i, fruit in enumerate(self.fruits) if bits >> i & 1)

    def steps_to_end(self) -> NDArray[np.int32]:
        """(S + 1,): the minimum number of steps from each state to the end, by breadth-first search from the end."""
        steps = np.where(np.arange(self.end + 1) == self.end, 0, -1).astype(np.int32)
        for depth in range(1, self.end + 1):
            reached = (steps < 0) & (steps[self.following] == depth - 1).any(axis=1)
            if not reached.any():
                break
            steps[reached] = depth
        return steps

    def optimal_steps(self) -> dict[Cell, int]:
        """The minimum number of steps from each start."""
        steps = self.steps_to_end()
        return {self.cells[start // self._sets]: int(steps[start]) for start in self.starts.tolist()}

    def optimum(self) -> float:
        """The minimum number of steps, averaged over the starts."""
        return float(self.steps_to_end()[self.starts].mean())

    def _moves(self) -> dict[str, NDArray[Any]]:
        """The tables of moves. A step into a wall or out of the map does not move the agent; a fruit is eaten on arrival."""
        number = {cell: i for i, cell in enumerate(self.cells)}
        following = np.full((self.end + 1, len(ACTIONS)), self.end, np.int32)
        eaten = np.zeros((self.end + 1, len(ACTIONS)), np.bool_)
        for i, (row, column) in enumerate(self.cells):
            for action, (down, right) in enumerate(_STEPS):
                target = (row + down, column + right)
                j = number.get(target, i)
                fruit = 1 << self.fruits.index(self.cells[j]) if self.cells[j] in self.fruits else 0
                for bits in range(1, self._sets + 1):
                    left, state = bits & ~fruit, i * self._sets + bits - 1
                    eaten[state, action] = left != bits
                    if left:
                        following[state, action] = j * self._sets + left - 1
        return {"following": following, "eaten": eaten}

    def _check_cells(self) -> None:
        fruits, starts = len(self.fruits), len(self.cells) - len(self.fruits)
        require(1 <= fruits <= _MOST_FRUITS, f"a map has 1 to {_MOST_FRUITS} fruits", "mark them with F", fruits=fruits)
        require(starts >= 1, "a map has a free cell to start on", "mark it with a dot", starts=starts)
        everywhere = set(self.cells)
        inside = _connected(self.cells[0], everywhere)
        if inside != everywhere:
            regions = [inside, everywhere - inside]
            apart = min((len(region), min(region)) for region in regions)[1]
            rule = "a map must let the agent walk from every cell to every fruit"
            raise InvalidValueError(
                f"{rule}, but row {apart[0] + 1}, column {apart[1] + 1} is cut off: open a wall or close the cell"
            )


def _check_shape(rows: tuple[str, ...]) -> None:
    require(len(rows) >= 1, "a map has at least one line", "write one line of F, # and . per row", map="")
    for r, row in enumerate(rows):
        if len(row) != len(rows[0]):
            lengths = f"row {r + 1} has {len(row)} cells and row 1 has {len(rows[0])}"
            raise InvalidValueError(f"the lines of a map must be equally long, but {lengths}: fill them up with #")
        for c, kind in enumerate(row):
            if kind not in "F#.":
                where = f"{kind!r} is in row {r + 1}, column {c + 1}"
                raise InvalidValueError(f"a map must consist of F (fruit), # (wall) and . (free), but {where}: replace it")


def _connected(first: Cell, cells: set[Cell]) -> set[Cell]:
    """All cells that can be reached from the first one."""
    found, edge = {first}, [first]
    while edge:
        row, column = edge.pop()
        near = {(row + down, column + right) for down, right in _STEPS} & cells - found
        found |= near
        edge.extend(near)
    return found
