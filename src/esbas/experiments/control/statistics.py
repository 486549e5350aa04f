"""Interquartile means, bootstrap intervals, probabilities of improvement, and adjusted tests.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021).
Scores are lists with one array for each task, (seeds,). The bootstrap is stratified: seeds are
drawn with replacement within each task.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from esbas.errors import require

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
TAILS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def as_dict(self, name: str = "iqm") -> dict[str, Any]:
        """Plain data for summary.json."""
        return {name: self.value, "low": self.low, "high": self.high, "seeds": self.seeds}


def iqm(values: ArrayLike, axis: int = -1) -> Any:
    """Return the interquartile mean.

    It is the mean without the lowest and the highest quarter, ⌊n / 4⌋ values each.
    """
    return stats.trim_mean(np.asarray(values, np.float64), 0.25, axis=axis)


def resampled(
    scores: Sequence[ArrayLike], *, resamples: int, rng: np.random.Generator
) -> list[Floats]:
    """Return scores of seeds that are drawn with replacement, (resamples, seeds) for each task."""
    return [_resampled(np.asarray(each, np.float64), resamples, rng) for each in scores]


def _resampled(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw rows with replacement: (n, ...) becomes (resamples, n, ...)."""
    rows = rng.integers(len(values), size=(resamples, len(values)))
    return values[rows]


def iqm_interval(
    scores: Sequence[ArrayLike], *, resamples: int, rng: np.random.Generator
) -> Interval:
    """Return the interquartile mean over all tasks and seeds.

    The interval has the percentiles of the stratified bootstrap.
    """
    arrays = [np.asarray(each, np.float64) for each in scores]
    value = float(iqm(np.concatenate(arrays)))
    drawn = resampled(arrays, resamples=resamples, rng=rng)
    low, high = percentiles(iqm(np.concatenate(drawn, axis=1)))
    return Interval(value, low, high, _fewest(arrays))


def difference_interval(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """Return IQM(first) - IQM(second).

    Seed i of both is one pair, and the bootstrap draws pairs.
    """
    pairs = []
    for one, other in zip(first, second, strict=True):
        columns = [np.asarray(one, np.float64), np.asarray(other, np.float64)]
        pairs.append(np.stack(columns, axis=-1))  # (seeds, 2)
    drawn = [_resampled(each, resamples, rng) for each in pairs]  # (resamples, seeds, 2) each
    both = iqm(np.concatenate(pairs), axis=0)  # (2,)
    samples = iqm(np.concatenate(drawn, axis=1), axis=1)  # (resamples, 2)
    low, high = percentiles(samples[:, 0] - samples[:, 1])
    return Interval(float(both[0] - both[1]), low, high, _fewest(pairs))


def _fewest(arrays: Sequence[Floats]) -> int:
    return min(len(each) for each in arrays)


def iqm_band(curves: ArrayLike, *, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the ends of the interval of the interquartile mean in each bin, (2, bins).

    Args:
        curves: (seeds, bins).
        resamples: of the bootstrap.
        rng: draws the seeds.
    """
    samples = iqm(_resampled(np.asarray(curves, np.float64), resamples, rng), axis=1)
    return np.asarray(np.quantile(samples, TAILS, axis=0))


def percentiles(samples: Floats) -> tuple[float, float]:
    """Return the ends of the 95 % interval."""
    low, high = np.quantile(samples, TAILS)
    return float(low), float(high)


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """Return P(X > Y) + P(X = Y) / 2 for a random seed of each.

    This is the statistic of Mann & Whitney (1947), divided by the number of pairs.
    """
    x = np.asarray(first, np.float64)
    y = np.asarray(second, np.float64)
    wins = np.greater.outer(x, y) + 0.5 * np.equal.outer(x, y)
    return float(wins.mean())


def improvement_interval(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """Return the probability of improvement, averaged over tasks.

    The interval is that of the stratified bootstrap.
    """
    values = []
    for one, other in zip(first, second, strict=True):
        values.append(probability_of_improvement(one, other))
    drawn_first = resampled(first, resamples=resamples, rng=rng)
    drawn_second = resampled(second, resamples=resamples, rng=rng)
    samples = []
    for one_drawn, other_drawn in zip(drawn_first, drawn_second, strict=True):
        samples.append(_improvements(one_drawn, other_drawn))
    low, high = percentiles(np.mean(samples, axis=0))
    seeds = min(len(np.asarray(each)) for each in first)
    return Interval(float(np.mean(values)), low, high, seeds)


def _improvements(first: Floats, second: Floats) -> Floats:
    """Return the probability of improvement in each resample, by ranks, (resamples,).

    Args:
        first: (resamples, n).
        second: (resamples, m).
    """
    n = first.shape[1]
    m = second.shape[1]
    ranks = stats.rankdata(np.concatenate([first, second], axis=1), axis=1)
    wins = ranks[:, :n].sum(axis=1) - n * (n + 1) / 2
    return np.asarray(wins / (n * m))


def paired_test(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test (1945) for paired seeds.

    It is 1 if all pairs are equal.
    """
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if len(difference) < 2 or not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values (Holm, 1979).

    The i-th smallest of n is multiplied by n - i + 1, and they never decrease.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        product = (len(p_values) - rank) * p_values[index]
        largest = max(largest, min(1.0, product))
        adjusted[index] = largest
    return adjusted


def seeds_for_power(
    differences: ArrayLike, effect: float, *, level: float = 0.05, power: float = 0.8
) -> int:
    """Return the seeds with which a paired test finds a mean difference of `effect`.

    They are estimated from the differences of a pilot.

    n = ((z_(1 - level / 2) + z_power) s / effect)², with the normal approximation and the standard
    deviation s of the pilot, divided by 0.955, the efficiency of Wilcoxon's test for normal
    differences.
    """
    require(effect > 0, f"`effect` must be greater than 0, but got {effect!r}.")
    spread = float(np.std(np.asarray(differences, np.float64), ddof=1))
    z = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)
    return max(2, math.ceil((z * spread / effect) ** 2 / 0.955))
