"""Interquartile means, stratified bootstrap intervals, probabilities of improvement, and adjusted tests.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021). Scores are lists with one
array for each task, (seeds,). The bootstrap is stratified: seeds are drawn with replacement within each task.
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
    """The interquartile mean: the mean without the lowest and the highest quarter, ⌊n / 4⌋ values each."""
    return stats.trim_mean(np.asarray(values, np.float64), 0.25, axis=axis)


def resampled(scores: Sequence[ArrayLike], *, resamples: int, rng: np.random.Generator) -> list[Floats]:
    """For each task, (resamples, seeds): scores of seeds that are drawn with replacement."""
    arrays = [np.asarray(each, np.float64) for each in scores]
    return [each[rng.integers(len(each), size=(resamples, len(each)))] for each in arrays]


def iqm_interval(scores: Sequence[ArrayLike], *, resamples: int, rng: np.random.Generator) -> Interval:
    """The interquartile mean over all tasks and seeds, with a percentile interval of the stratified bootstrap."""
    value = float(iqm(np.concatenate([np.asarray(each, np.float64) for each in scores])))
    samples = iqm(np.concatenate(resampled(scores, resamples=resamples, rng=rng), axis=1))
    return Interval(value, *percentiles(samples), min(len(np.asarray(each)) for each in scores))


def difference_interval(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], *, resamples: int, rng: np.random.Generator
) -> Interval:
    """IQM(first) - IQM(second), where seed i of both is one pair: the bootstrap draws pairs."""
    pairs = [
        np.stack([np.asarray(a, np.float64), np.asarray(b, np.float64)], axis=-1) for a, b in zip(first, second, strict=True)
    ]
    drawn = [each[rng.integers(len(each), size=(resamples, len(each)))] for each in pairs]  # (resamples, seeds, 2)
    both, samples = iqm(np.concatenate(pairs), axis=0), iqm(np.concatenate(drawn, axis=1), axis=1)
    return Interval(float(both[0] - both[1]), *percentiles(samples[:, 0] - samples[:, 1]), min(map(len, pairs)))


def iqm_band(curves: ArrayLike, *, resamples: int, rng: np.random.Generator) -> Floats:
    """(2, bins): the ends of the interval of the interquartile mean in each bin, for curves, (seeds, bins)."""
    values = np.asarray(curves, np.float64)
    samples = iqm(values[rng.integers(len(values), size=(resamples, len(values)))], axis=1)
    return np.asarray(np.quantile(samples, TAILS, axis=0))


def percentiles(samples: Floats) -> tuple[float, float]:
    """The ends of the 95 % interval."""
    low, high = np.quantile(samples, TAILS)
    return float(low), float(high)


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """P(X > Y) + P(X = Y) / 2 for a random seed of each: the statistic of Mann & Whitney (1947), divided by the pairs."""
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    return float((np.greater.outer(x, y) + 0.5 * np.equal.outer(x, y)).mean())


def improvement_interval(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], *, resamples: int, rng: np.random.Generator
) -> Interval:
    """The probability of improvement, averaged over tasks, with an interval of the stratified bootstrap."""
    value = float(np.mean([probability_of_improvement(a, b) for a, b in zip(first, second, strict=True)]))
    drawn = zip(resampled(first, resamples=resamples, rng=rng), resampled(second, resamples=resamples, rng=rng), strict=True)
    samples = np.mean([_improvements(a, b) for a, b in drawn], axis=0)
    return Interval(value, *percentiles(samples), min(len(np.asarray(each)) for each in first))


def _improvements(first: Floats, second: Floats) -> Floats:
    """For each resample, (resamples, n) and (resamples, m), the probability of improvement, by ranks: (resamples,)."""
    n, m = first.shape[1], second.shape[1]
    ranks = stats.rankdata(np.concatenate([first, second], axis=1), axis=1)
    return np.asarray((ranks[:, :n].sum(axis=1) - n * (n + 1) / 2) / (n * m))


def paired_test(first: ArrayLike, second: ArrayLike) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test (1945) for paired seeds; 1 if all pairs are equal."""
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if len(difference) < 2 or not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm, 1979): the i-th smallest of n is multiplied by n - i + 1, and they never decrease."""
    order = np.argsort(p_values, kind="stable")
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def seeds_for_power(differences: ArrayLike, effect: float, *, level: float = 0.05, power: float = 0.8) -> int:
    """The seeds with which a paired test finds a mean difference of `effect`, from the differences of a pilot.

    n = ((z_(1 - level / 2) + z_power) s / effect)², with the normal approximation and the standard deviation s of the pilot,
    divided by 0.955, the efficiency of Wilcoxon's test for normal differences.
    """
    require(effect > 0, "effect > 0", effect=effect)
    spread = float(np.std(np.asarray(differences, np.float64), ddof=1))
    z = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)
    return max(2, math.ceil((z * spread / effect) ** 2 / 0.955))
