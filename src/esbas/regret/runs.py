"""Pseudo-regrets estimated from the values of runs, with 95 % Student-t intervals.

`values`, (R, T), holds the value of every episode of R runs of a meta-algorithm; larger is better. Canonical runs are runs of one
learner alone. Runs are paired when run r met the same random stream everywhere (common random numbers): that narrows intervals.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import require, unknown

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A cumulated regret: at `times`, (C,), `mean` plus or minus `ci95`, (C,), from so many runs."""

    times: NDArray[np.int64]
    mean: Floats
    ci95: Floats
    runs: int


def estimate_absolute(values: ArrayLike, *, optimum: float) -> Curve:
    """T · optimum - Σ value."""
    table = _values(values)
    return _curve(np.arange(1, table.shape[1] + 1), np.cumsum(optimum - table, axis=1))


def estimate_relative(
    values: ArrayLike, *, canonical: Mapping[str, ArrayLike], against: str | None = None, paired: bool = True
) -> Curve:
    """Σ value of a canonical meta-algorithm - Σ value.

    Args:
        values: (R, T) of the meta-algorithm.
        canonical: (R, T) of each learner alone, by name.
        against: whom to compare with; by default the best, the one with the largest sum of values.
        paired: whether run r met the same random stream in all of them.
    """
    rivals = {name: _values(table) for name, table in canonical.items()}
    require(len(rivals) > 0, "there is a canonical run", canonical=canonical)
    if against is None:
        against = max(rivals, key=lambda name: float(rivals[name].mean()))
    elif against not in rivals:
        raise unknown("canonical run", against, rivals)
    table = _values(values)
    return _difference(np.arange(1, table.shape[1] + 1), _cumulated(rivals[against]), _cumulated(table), paired)


def estimate_short_sighted(
    values: ArrayLike, *, canonical: Mapping[str, ArrayLike], epochs: Sequence[int], paired: bool = True
) -> Curve:
    """Σ over epochs (value of the canonical meta-algorithm that is best in the epoch - value), at the ends of the epochs.

    Canonical runs stand for what an arm would have got at the time: that is so where learners learn as well from anybody's
    trajectories as from their own (the paper's fairness). The best is told from means over all runs; with few runs or short
    epochs chance picks it, and the estimate is too high.

    Args:
        values: (R, T) of the meta-algorithm.
        canonical: (R, T) of each learner alone, by name.
        epochs: the lengths of the epochs, which add up to T.
        paired: whether run r met the same random stream in all of them.
    """
    table, rivals = _values(values), [_values(rival) for rival in canonical.values()]
    require(len(rivals) > 0, "there is a canonical run", canonical=canonical)
    lengths = np.asarray(epochs, np.int64)
    whole = lengths.ndim == 1 and bool((lengths > 0).all()) and lengths.sum() == table.shape[1]
    require(whole, "epochs are positive lengths that add up to T", epochs=epochs, T=table.shape[1])
    shapes = {rival.shape for rival in rivals}
    require(len(shapes) == 1, "canonical runs have one shape", shapes=shapes)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    sums = np.stack([np.add.reduceat(rival, starts, axis=1) for rival in rivals])  # (K, R, B)
    best = sums.mean(axis=1).argmax(axis=0)  # (B,)
    leading = np.take_along_axis(sums, best[np.newaxis, np.newaxis], axis=0)[0]  # (R, B)
    own = np.add.reduceat(table, starts, axis=1)
    return _difference(np.cumsum(lengths), _cumulated(leading), _cumulated(own), paired)


@lru_cache(maxsize=64)
def student_factor(runs: int) -> float:
    """How many standard errors of the mean of so many runs the 95 % interval reaches to each side.

    The distribution function with ν = runs - 1 degrees of freedom is a finite sum (Abramowitz & Stegun 26.7.3-4); by bisection.
    """
    require(runs >= 2, "an interval needs two runs", runs=runs)
    degrees = runs - 1
    odd = degrees % 2
    j = np.arange(1 + odd, degrees - 1, 2)  # the terms' ratios: j / (j + 1) cos²θ
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        terms = np.cumprod(j / (j + 1) * math.cos(angle) ** 2)
        series = 1.0 + float(terms.sum())
        if odd:
            series = (angle + (math.sin(angle) * math.cos(angle) * series if degrees > 1 else 0.0)) * 2 / math.pi
        else:
            series *= math.sin(angle)
        low, high = (angle, high) if series < 0.95 else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def _values(values: ArrayLike) -> Floats:
    table = np.asarray(values, np.float64)
    require(table.ndim == 2 and table.size > 0, "values are (R, T), a row per run", shape=table.shape)
    require(bool(np.isfinite(table).all()), "values are finite", values=values)
    return table


def _cumulated(values: Floats) -> Floats:
    return np.cumsum(values, axis=1)


def _curve(times: NDArray[np.int64], samples: Floats) -> Curve:
    return Curve(times, samples.mean(axis=0), _half_width([samples]), len(samples))


def _difference(times: NDArray[np.int64], larger: Floats, smaller: Floats, paired: bool) -> Curve:
    require(larger.shape[1] == smaller.shape[1], "runs are equally long", T=(smaller.shape[1], larger.shape[1]))
    if paired:
        same = len(larger) == len(smaller)
        require(same, "paired runs are equally many", "give paired=False", runs=(len(smaller), len(larger)))
        return _curve(times, larger - smaller)
    mean = larger.mean(axis=0) - smaller.mean(axis=0)
    return Curve(times, mean, _half_width([larger, smaller]), min(len(larger), len(smaller)))


def _half_width(groups: list[Floats]) -> Floats:
    """Of the mean, or of the difference of two groups' means; with the degrees of freedom of the smaller group, to be safe."""
    runs = min(len(samples) for samples in groups)
    if runs < 2:
        return np.full(groups[0].shape[1], np.nan)
    error = np.sqrt(sum(samples.var(axis=0, ddof=1) / len(samples) for samples in groups))
    return np.asarray(student_factor(runs) * error, np.float64)
