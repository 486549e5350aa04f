"""What is compared: meta-algorithms on pairs of synthetic learners.

The expected return of a synthetic learner's policy is a given function of the number of
trajectories that it was learnt from.
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
# The initial gap: wide where the bandit should distinguish the arms, narrow where it cannot.
WIDE = 0.6
NARROW = 0.1
# Trajectories before a wide gap starts to close, so that it is still larger than the noise at the
# horizon.
DELAY = 4096


@dataclass(frozen=True)
class SyntheticLearner:
    """A learner whose expected return is known; its returns are 0 or 1.

    After n trajectories the expectation is limit - Σ amplitude (1 + n / delay)^-exponent.
    """

    limit: float
    terms: tuple[tuple[float, float, float], ...]  # amplitude, delay, exponent

    def __call__(self, trajectories: ArrayLike) -> Floats:
        n = np.asarray(trajectories, np.float64)
        shortfall = sum(
            amplitude * (1.0 + n / delay) ** -exponent for amplitude, delay, exponent in self.terms
        )
        return np.asarray(self.limit - shortfall, np.float64)


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
        """Return expectations if learners learn after every trajectory, (T, K).

        At meta-time τ they have learnt from τ - 1 trajectories.
        """
        return self._after(np.arange(horizon))

    def frozen(self, horizon: int) -> Floats:
        """Return expectations with ESBAS, (T, K).

        In epoch β, which starts at meta-time 2^β, learners have learnt from the 2^β - 1
        trajectories before it.
        """
        epochs = epochs_of(np.arange(1, horizon + 1))
        return self._after((1 << epochs) - 1)

    def _after(self, trajectories: Integers) -> Floats:
        return np.stack([learner(trajectories) for learner in self.learners], axis=1)


def epochs_of(times: Integers) -> Integers:
    """Return the epoch of each meta-time: ⌊log2 τ⌋, exactly."""
    _, exponents = np.frexp(times.astype(np.float64))
    return exponents.astype(np.int64) - 1


def two_learners(gap: float, own: float, *, compared: bool = False) -> Regime:
    """Return a regime: the best learner is T^-own below the limit, the other T^-gap more.

    The better learner comes second: ties go to the worse one.
    """
    shortfall = (SHORTFALL, 1.0, own)
    best = SyntheticLearner(LIMIT, (shortfall,))
    if gap == 0:
        other = SyntheticLearner(LIMIT - WIDE, (shortfall,))
    elif gap < 0.5:
        other = SyntheticLearner(LIMIT, (shortfall, (WIDE, DELAY, gap)))
    else:
        other = SyntheticLearner(LIMIT, (shortfall, (NARROW, 1.0, gap)))
    return Regime(f"gap-{gap:g}-own-{own:g}", (other, best), gap, own, compared)


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
    two_learners(0.0, 1.0, compared=True),
    two_learners(0.2, 1.0, compared=True),
    two_learners(0.35, 1.0, compared=True),
    two_learners(0.5, 1.0, compared=True),
    two_learners(0.6, 1.0, compared=True),
    two_learners(0.8, 1.0, compared=True),
    two_learners(1.0, 1.0, compared=True),
    two_learners(0.0, 0.5),
    two_learners(0.2, 0.5),  # c† < 1 - c*
    two_learners(0.35, 0.8),  # c† >= 1 - c*
    two_learners(0.6, 0.8),
    two_learners(0.8, 0.9),
)
"""Every cell of the paper's table.

In the last column the gap closes no faster than the best learner converges: c* >= c†.
"""

BEYOND = (two_learners(0.8, 0.5), two_learners(1.0, 0.5))
"""The gap closes faster than the learners converge, c* < c†.

The table assumes that this does not happen.
"""

REGIMES = {regime.name: regime for regime in (*TABLE_1, *BEYOND, CROSSING)}


def checkpoints(horizon: int) -> Integers:
    """Return the meta-times at which regrets are recorded.

    These are four per doubling, the end of each epoch, and the horizon.
    """
    power_of_two = horizon & (horizon - 1) == 0
    require(
        horizon >= 256 and power_of_two,
        f"`horizon` must be a power of two and at least 256, but got {horizon!r}.",
    )
    doublings = horizon.bit_length() - 1
    spread = np.floor(2.0 ** (np.arange(4 * doublings + 1) / 4)).astype(np.int64)
    ends = (1 << np.arange(1, doublings + 1)) - 1
    return np.unique(np.concatenate([spread, ends]))


@dataclass(frozen=True)
class MetaAlgorithm:
    """A meta-algorithm with its parameters.

    Attributes:
        name: its name in tables.
        algorithm: its key in `META_ALGORITHMS`.
        xi: its ξ.
        runs: the number of its runs in a regime.
    """

    name: str
    algorithm: str
    xi: float
    runs: int

    @property
    def frozen(self) -> bool:
        """Whether learners learn only when an epoch starts."""
        return self.algorithm == "ESBAS"

    def plays(self, regime: Regime) -> bool:
        """Return whether it plays in this regime.

        ESBAS plays in every regime, a rival only in those in which rivals are compared.
        """
        return self.frozen or regime.compared


def compared_methods(
    *, runs: int, rival_runs: int, xi: float, safe_xi: float
) -> list[MetaAlgorithm]:
    """Return ESBAS with both values of ξ, then the rivals."""
    values = [xi] if xi == safe_xi else [xi, safe_xi]
    own = [MetaAlgorithm(f"ESBAS, ξ = {value:g}", "ESBAS", value, runs) for value in values]
    rivals = [name for name in META_ALGORITHMS if name != "ESBAS"]
    return own + [MetaAlgorithm(name, name, xi, rival_runs) for name in rivals]
