"""A shop that orders goods for the next day."""

import math

from esbas.envs.tables.table_task import Outcome, TableTask
from esbas.errors import require

PRICE, UNIT_COST, ORDER_COST, STORAGE_COST = 1.0, 0.5, 1.0, 0.05
"""Of a unit sold, of a unit ordered, of an order, and of a unit that stays overnight."""


class Inventory(TableTask):
    """Order goods that arrive the next morning. The demand of a day has a Poisson distribution.

    The state is the stock in the morning, from 0 to `capacity`. Action a orders up to 2 a units, as far as they fit after the
    sales of the day. Profits are noisy, and those who do not look ahead never order.

    Args:
        capacity: the maximum stock.
        demand: the mean demand of a day.
        max_steps: the length of an episode in days, which starts with an empty shop.
    """

    def __init__(self, *, capacity: int = 20, demand: float = 5.0, max_steps: int = 40) -> None:
        require(capacity >= 2, "capacity >= 2", capacity=capacity)
        require(demand > 0, "demand > 0", demand=demand)
        actions = range(0, capacity + 1, 2)
        rows = [[_outcomes(stock, order, capacity, demand) for order in actions] for stock in range(capacity + 1)]
        super().__init__(rows, starts=(0,), max_steps=max_steps)


def _outcomes(stock: int, order: int, capacity: int, demand: float) -> list[Outcome]:
    """One outcome for each number of units sold; a demand above the stock sells the stock."""
    below = [math.exp(-demand) * demand**units / math.factorial(units) for units in range(stock)]
    found = []
    for sold, probability in enumerate([*below, 1 - sum(below)]):
        left = stock - sold
        arriving = min(order, capacity - left)
        cost = UNIT_COST * arriving + ORDER_COST * (arriving > 0) + STORAGE_COST * left
        found.append(Outcome(probability, left + arriving, PRICE * sold - cost))
    return found
