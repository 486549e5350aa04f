"""Four rooms with narrow doors and slippery floors."""

from esbas.errors import require
from esbas.experiments.envs.tables.table_env import TableEnv, TableOutcome

ROOMS = """
#############
#     #     #
#     #     #
#           #
#     #     #
#     #     #
## ####     #
#     ### ###
#     #     #
#     #     #
#           #
#     #     #
#############
""".strip()
"""The map of Sutton, Precup & Singh (1999): `#` is a wall."""
MOVES = (-1, 0), (0, 1), (1, 0), (0, -1)
"""North, east, south, west: rows and columns."""

Cell = tuple[int, int]


class FourRooms(TableEnv):
    """Walk to the goal in the south-east room (the grid of Sutton, Precup & Singh, 1999).

    A move succeeds with probability 2/3 and otherwise goes in one of the other three directions; a
    move into a wall stays. Each step costs 0.01, and the goal gives 1. An episode starts anywhere,
    and is truncated after `max_episode_steps`.

    Args:
        slip: the probability that a move goes elsewhere.
        max_episode_steps: the maximum number of steps of an episode.
    """

    def __init__(self, *, slip: float = 1 / 3, max_episode_steps: int = 200) -> None:
        require(0 <= slip < 1, f"`slip` must be at least 0 and less than 1, but got {slip!r}.")
        self.cells = _free_cells()
        number = {cell: state for state, cell in enumerate(self.cells)}
        self.goal = number[9, 9]
        outcomes = []
        for cell in self.cells:
            row = [self._outcomes(cell, action, slip, number) for action in MOVES]
            outcomes.append(row)
        super().__init__(
            outcomes,
            starts=[state for state in range(len(self.cells)) if state != self.goal],
            max_episode_steps=max_episode_steps,
        )

    def _outcomes(
        self, cell: Cell, action: Cell, slip: float, number: dict[Cell, int]
    ) -> list[TableOutcome]:
        """Return where this action in this cell can lead to. `number` has the states of cells."""
        found = []
        for move in MOVES:
            probability = 1 - slip if move == action else slip / 3
            if probability == 0:
                continue
            target = (cell[0] + move[0], cell[1] + move[1])
            state = number.get(target, number[cell])
            at_goal = state == self.goal
            found.append(TableOutcome(probability, state, 0.99 if at_goal else -0.01, at_goal))
        return found


def _free_cells() -> list[Cell]:
    """Return the cells that are not walls, row by row."""
    cells = []
    for r, row in enumerate(ROOMS.splitlines()):
        for c, sign in enumerate(row):
            if sign == " ":
                cells.append((r, c))
    return cells
