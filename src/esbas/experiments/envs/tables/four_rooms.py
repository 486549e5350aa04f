"""Four rooms with narrow doors and slippery floors."""

from esbas.envs.tables.table_task import Outcome, TableTask
from esbas.errors import require

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


class FourRooms(TableTask):
    """Walk to the goal in the south-east room (the grid of Sutton, Precup & Singh, 1999).

    A move succeeds with probability 2/3 and otherwise goes in one of the other three directions; a move into a wall stays. Each
    step costs 0.01, and the goal gives 1. An episode starts anywhere, and is truncated after `max_steps`.

    Args:
        slip: the probability that a move goes elsewhere.
        max_steps: the maximum number of steps of an episode.
    """

    def __init__(self, *, slip: float = 1 / 3, max_steps: int = 200) -> None:
        require(0 <= slip < 1, "0 <= slip < 1", slip=slip)
        rows = ROOMS.splitlines()
        self.cells = [(r, c) for r, row in enumerate(rows) for c, sign in enumerate(row) if sign == " "]
        number = {cell: state for state, cell in enumerate(self.cells)}
        self.goal = number[9, 9]

        def outcome(cell: tuple[int, int], move: tuple[int, int], probability: float) -> Outcome:
            state = number.get((cell[0] + move[0], cell[1] + move[1]), number[cell])
            return Outcome(probability, state, 0.99 if state == self.goal else -0.01, state == self.goal)

        chances = [[1 - slip if move == action else slip / 3 for move in MOVES] for action in MOVES]
        outcomes = [
            [[outcome(cell, move, chance) for move, chance in zip(MOVES, row, strict=True) if chance > 0] for row in chances]
            for cell in self.cells
        ]
        super().__init__(outcomes, starts=[state for state in range(len(self.cells)) if state != self.goal], max_steps=max_steps)
