"""Kalman Thompson sampling on a budget: for arms whose rounds take different amounts of it, such as environment steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from esbas.bandits.bandit import BANDITS, Floats
from esbas.bandits.kalman_thompson import KalmanThompson
from esbas.bandits.memory_bandit import PULLS, Arm
from esbas.errors import require
from esbas.schema import Number

WIDTH = 0.5
RECENT = 0.2  # the weight of the newest round in the mean cost, once an arm has had five
LARGEST_COST = 1e100


def mean_cost(cost: float, count: float, spent: float) -> float:
    """The mean cost of an arm's recent rounds after one that took `spent`, the arm's round number `count`."""
    return cost + (spent - cost) * max(1.0 / count, RECENT)


def acceptance(leading: float, cost: float) -> float:
    """The probability that an arm of this mean cost is pulled instead of the leader. 0 stands for a cost that is not known."""
    return leading / cost if 0.0 < leading < cost else 1.0


def leader(means: Any, arms: Any) -> int:
    """The one of `arms` with the largest mean; -1 if several have it."""
    best = -1
    tied = False
    for k in arms:
        if best < 0 or means[k] > means[best]:
            best, tied = k, False
        elif means[k] == means[best]:
            tied = True
    return -1 if tied else best


@dataclass(slots=True)
class CostedArm(Arm):
    """The statistics of an arm, with what its rounds cost."""

    cost: Annotated[float, Number(min=0, max=LARGEST_COST)] = 0.0  # mean of recent rounds; 0 without any
    costs: Annotated[float, PULLS] = 0  # rounds whose cost is known


@BANDITS.register("budgeted-thompson")
class BudgetedThompson(KalmanThompson):
    """Kalman Thompson sampling with samples of half the width, which tries expensive arms more rarely.

    Draw one of the filters of `KalmanThompson` by its weight, then all values from N(m, r P / 4). Arm k has the largest; arm l
    has the largest mean, averaged over the filters. If the recent rounds of k cost more than those of l, c_k > c_l, pull k with
    probability c_l / c_k, and otherwise l: what is spent on an arm that looks worse does not grow with its cost. The mean cost
    follows recent rounds: c_k ← c_k + (cost - c_k) max(1/n, 1/5) in the n-th round of arm k. Rounds of unknown cost, and
    several arms with the largest mean, leave the choice to the samples.

    Chapelle & Li (2011), "An Empirical Evaluation of Thompson Sampling", for narrower samples; Xia et al. (2015), "Thompson
    Sampling for Budgeted Multi-Armed Bandits", for costs. Rewards y and a + b y (b > 0) give the same choices, up to rounding,
    and so do costs c and b c.
    """

    arm_type = CostedArm
    uses_costs = True
    width = WIDTH
    use = "as `KalmanThompson`, in short trainings where episodes of bad learners are long"

    def spend(self, arm: int, cost: float) -> None:
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        require(0 < cost <= LARGEST_COST, "a cost is positive and at most 1e100", cost=cost)
        record: Any = self.memory.arms[arm]
        record.costs += 1
        record.cost = mean_cost(record.cost, record.costs, float(cost))

    def _settle(self, k: int, arms: Sequence[int]) -> int:
        records: Any = self.memory.arms
        cost = records[k].cost
        if not any(0.0 < record.cost < cost for record in records):  # the usual case
            return k
        leading = leader(self._filters.average().tolist(), arms)
        share = acceptance(records[leading].cost, cost) if leading >= 0 else 1.0
        return k if share == 1.0 or self.rng.random() < share else leading

    def _settled(self, largest: Floats) -> Floats:
        leading = leader(self._filters.average().tolist(), range(self.n_arms))
        if leading < 0:
            return largest
        shares = np.array([acceptance(self._costs[leading], cost) for cost in self._costs])
        found = largest * shares
        found[leading] += largest.sum() - found.sum()
        return np.asarray(found)

    @property
    def _costs(self) -> list[float]:
        records: Any = self.memory.arms
        return [record.cost for record in records]

    def explain(self) -> dict[str, Floats]:
        """As `KalmanThompson.explain`, with the mean cost of recent rounds; 0 where it is not known."""
        return {"cost": np.array(self._costs)} | super().explain()
