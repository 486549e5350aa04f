"""What is compared: meta-algorithms on pairs of synthetic learners.

The expected return of a synthetic learner's policy is a given function of the number of trajectories that it was learnt from.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import require
from esbas.experiments.bounds.meta_algorithms import META_ALGORITHMS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LIMIT = 0.75  # expected return of the best learner in the limit
SHORTFALL = 0.1  # how far the best learner is below the limit before the first trajectory
WIDE, NARROW = 0.6, 0.1  # the initial gap: wide where the bandit should distinguish the arms, narrow where it cannot
DELAY = 4096  # trajectories before a wide gap starts to close, so that it is still larger than the noise at the horizon


@dataclass(frozen=True)
class SyntheticLearner:
    """Expected return after n trajectories: limit - Σ amplitude (1 + n / delay)^-exponent; returns are 0 or 1."""

    limit: float
    terms: tuple[tuple[float, float, float], ...]  # amplitude, delay, exponent

    def __call__(self, trajectories: ArrayLike) -> Floats:
        n = np.asarray(trajectories, np.float64)
        return np.asarray(self.limit - sum(a * (1.0 + n / delay) ** -c for a, delay, c in self.terms), np.float64)


@dataclass(frozen=True)
class Regime:
    """Two learners, and the cell of Table 1 that they represent.

    Attributes:
        name: identifies the regime in files and tables.
        learners: the arms; all learn from every trajectory.
        gap: c† of the gap, Θ(T^-c†); 0 is Θ(1).
        own: c* of the best learner's shortfall; 1 makes its own regret O(log T).
        compared: whether other meta-algorithms than ESBAS play it.
        fitted: whether its growth is fitted; its learners follow power laws from the start.
    """

    name: str
    learners: tuple[SyntheticLearner, ...]
    gap: float
    own: float
    compared: bool = False
    fitted: bool = True

    @property
    def optimum(self) -> float:
        """𝔼μ*_∞."""
        return max(learner.limit for learner in self.learners)

    def online(self, horizon: int) -> Floats:
        """(T, K): expectations if learners learn after every trajectory: at meta-time τ from τ - 1 trajectories."""
        return self._after(np.arange(horizon))

    def frozen(self, horizon: int) -> Floats:
        """(T, K): expectations with ESBAS: in epoch β, which starts at meta-time 2^β, from 2^β - 1 trajectories."""
        return self._after((1 << epochs_of(np.arange(1, horizon + 1))) - 1)

    def _after(self, trajectories: Integers) -> Floats:
        return np.stack([learner(trajectories) for learner in self.learners], axis=1)


def epochs_of(times: Integers) -> Integers:
    """The epoch of each meta-time: ⌊log2 τ⌋, exactly."""
    return np.frexp(times.astype(np.float64))[1].astype(np.int64) - 1


def two_learners(gap: float, own: float, *, compared: bool = False) -> Regime:
    """The best learner is T^-own below the limit, the other T^-gap more. The better arm comes second: ties go to the worse."""
    best = (SHORTFALL, 1.0, own)
    if gap == 0:
        other = SyntheticLearner(LIMIT - WIDE, (best,))
    else:
        other = SyntheticLearner(LIMIT, (best, (WIDE, DELAY, gap) if gap < 0.5 else (NARROW, 1.0, gap)))
    return Regime(f"gap-{gap:g}-own-{own:g}", (other, SyntheticLearner(LIMIT, (best,))), gap, own, compared)


CROSSING = Regime(
    "crossing",
    (SyntheticLearner(0.6, ((0.1, 1.0, 1.0),)), SyntheticLearner(LIMIT, ((0.65, 2048.0, 0.5),))),
    gap=0.0,
    own=0.5,
    compared=True,
    fitted=False,
)
"""A fast learner with a low limit is overtaken by a slow one after 36,000 trajectories."""

TABLE_1 = (
    *(two_learners(gap, 1.0, compared=True) for gap in (0.0, 0.2, 0.35, 0.5, 0.6, 0.8, 1.0)),
    two_learners(0.0, 0.5),
    two_learners(0.2, 0.5),  # c† < 1 - c*
    two_learners(0.35, 0.8),  # c† >= 1 - c*
    two_learners(0.6, 0.8),
    two_learners(0.8, 0.9),
)
"""Every cell of the paper's table. In the last column the gap closes no faster than the best learner converges: c* >= c†."""

BEYOND = (two_learners(0.8, 0.5), two_learners(1.0, 0.5))
"""The gap closes faster than the learners converge: c* < c†. The table assumes that this does not happen."""

REGIMES = {regime.name: regime for regime in (*TABLE_1, *BEYOND, CROSSING)}


def checkpoints(horizon: int) -> Integers:
    """Meta-times at which regrets are recorded: four per doubling, the end of each epoch, and the horizon."""
    require(horizon >= 256 and horizon & (horizon - 1) == 0, "horizon is a power of two from 256 on", horizon=horizon)
    doublings = horizon.bit_length() - 1
    spread = np.floor(2.0 ** (np.arange(4 * doublings + 1) / 4)).astype(np.int64)
    ends = (1 << np.arange(1, doublings + 1)) - 1
    return np.unique(np.concatenate([spread, ends]))


@dataclass(frozen=True)
class Method:
    """A meta-algorithm with its parameters: its name in tables, its key in META_ALGORITHMS, its ξ, and the number of runs."""

    name: str
    algorithm: str
    xi: float
    runs: int

    @property
    def frozen(self) -> bool:
        """Whether learners learn only when an epoch starts."""
        return self.algorithm == "ESBAS"

    def plays(self, regime: Regime) -> bool:
        """ESBAS plays in every regime, a rival only in those in which rivals are compared."""
        return self.frozen or regime.compared


def compared_methods(*, runs: int, rival_runs: int, xi: float, safe_xi: float) -> list[Method]:
    """ESBAS with both values of ξ, then the rivals."""
    own = [Method(f"ESBAS, ξ = {value:g}", "ESBAS", value, runs) for value in dict.fromkeys((xi, safe_xi))]
    return own + [Method(name, name, xi, rival_runs) for name in META_ALGORITHMS if name != "ESBAS"]
