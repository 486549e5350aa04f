"""A shop that orders goods for the next day."""

import math

from esbas.errors import require
from esbas.experiments.envs.tables.table_env import TableEnv, TableOutcome

PRICE = 1.0  # of a unit sold
UNIT_COST = 0.5  # of a unit ordered
ORDER_COST = 1.0  # of an order
STORAGE_COST = 0.05  # of a unit that stays overnight


class Inventory(TableEnv):
    """Order goods that arrive the next morning. The demand of a day has a Poisson distribution.

    The state is the stock in the morning, from 0 to `capacity`. Action a orders up to 2 a units, as
    far as they fit after the sales of the day. Profits are noisy, and an agent that does not look
    ahead never orders.

    Args:
        capacity: the maximum stock.
        demand: the mean demand of a day.
        max_episode_steps: the length of an episode in days, which starts with an empty shop.
    """

    def __init__(
        self, *, capacity: int = 20, demand: float = 5.0, max_episode_steps: int = 40
    ) -> None:
        require(capacity >= 2, f"`capacity` must be at least 2, but got {capacity!r}.")
        require(demand > 0, f"`demand` must be greater than 0, but got {demand!r}.")
        orders = range(0, capacity + 1, 2)
        rows = []
        for stock in range(capacity + 1):
            row = [_outcomes(stock, order, capacity, demand) for order in orders]
            rows.append(row)
        super().__init__(rows, starts=(0,), max_episode_steps=max_episode_steps)


def _outcomes(stock: int, order: int, capacity: int, demand: float) -> list[TableOutcome]:
    """Return an outcome for each number of units sold; a demand above the stock sells the stock."""
    below = [math.exp(-demand) * demand**units / math.factorial(units) for units in range(stock)]
    found = []
    for sold, probability in enumerate([*below, 1 - sum(below)]):
        left = stock - sold
        arriving = min(order, capacity - left)
        cost = UNIT_COST * arriving + ORDER_COST * (arriving > 0) + STORAGE_COST * left
        found.append(TableOutcome(probability, left + arriving, PRICE * sold - cost))
    return found
