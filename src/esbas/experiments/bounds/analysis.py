"""How fast the regrets grow, compared with the bounds, and the inequalities of the theorems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from esbas import seeding
from esbas.experiments import regrets as regret
from esbas.experiments.bounds.setup import (
    REGIMES,
    Floats,
    Integers,
    MetaAlgorithm,
    Regime,
    checkpoints,
)
from esbas.experiments.regrets import Growth
from esbas.reporting import Estimate, estimate

FIT_EPOCHS = 6  # growth is fitted over this many doublings before the horizon
# An exponent this close to that of the bound is "at" the bound: 9 % more over six doublings.
TOLERANCE = 0.02
RESAMPLES = 2000

Verdict = Literal["below", "at", "above"]


@dataclass(frozen=True)
class Fit:
    """A measured exponent and the 95 % bootstrap interval over runs."""

    exponent: float
    low: float
    high: float

    def verdict(self, bound: Growth) -> Verdict:
        """Return whether the regret grows more slowly than the bound, as fast, or faster."""
        if self.high <= bound.exponent:
            return "below"
        if self.low <= bound.exponent + TOLERANCE:
            return "at"
        return "above"

    def __str__(self) -> str:
        return f"{self.exponent:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Measured:
    """The regrets of one meta-algorithm in one regime, (R, C) at `times`, (C,).

    `oracle` is the regret against an oracle that always plays the currently best arm, with learners
    that learn after every trajectory. It is the short-sighted regret plus, for ESBAS, the cost of
    learning only when an epoch starts.
    """

    regime: Regime
    times: Integers
    short_sighted: Floats
    absolute: Floats
    oracle: Floats

    @property
    def horizon(self) -> int:
        return int(self.times[-1])


def measured(regime: Regime, short_sighted: Floats, *, horizon: int, frozen: bool) -> Measured:
    """Return all regrets, given the short-sighted one.

    The absolute regret is the short-sighted regret plus the shortfall of the currently best arm,
    which is not random.
    """
    times = checkpoints(horizon)
    online = regime.online(horizon)
    expectations = regime.frozen(horizon) if frozen else online

    def shortfall_of_best(table: Floats) -> Floats:
        return np.cumsum(regime.optimum - table.max(axis=1))[times - 1]  # (C,)

    absolute = short_sighted + shortfall_of_best(expectations)
    oracle = absolute - shortfall_of_best(online)
    return Measured(regime, times, short_sighted, absolute, oracle)


def fit(times: Integers, regrets: Floats, bound: Growth, *, seed: int) -> Fit:
    """Return the exponent of growth of a regret, (R, C), over the last doublings.

    The logarithmic factor of the bound is assumed. The regret of an epoch is what is added from
    T = 2^β - 1 to 2^(β+1) - 1, so an early constant has no influence. It is divided by what the
    bound adds in the same epoch. The slope of the logarithm of this ratio against log T is the
    difference between the exponents. So a regret that grows like the bound, logarithms included,
    has the exponent of the bound.
    """
    horizon = int(times[-1])
    last = horizon.bit_length() - 1
    edges = np.arange(last - FIT_EPOCHS, last + 1)
    at = np.searchsorted(times, (1 << edges) - 1)
    gains = np.diff(regrets[:, at], axis=1)  # (R, E)
    expected = np.diff(bound(2.0**edges))  # (E,)
    lever = (edges[:-1] - edges[:-1].mean()) * np.log(2.0)
    lever /= (lever**2).sum()

    def exponent(means: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(bound.exponent + np.log(means / expected) @ lever, np.float64)

    rng = seeding.generator(seed, "bootstrap")
    runs = len(gains)
    weights = rng.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES) / runs  # (B, R)
    low, high = np.quantile(exponent(weights @ gains), (0.025, 0.975))
    return Fit(float(exponent(gains.mean(axis=0))), float(low), float(high))


@dataclass(frozen=True)
class Cell:
    """A cell of Table 1 with the measured growth.

    Attributes:
        regime: the two learners.
        quantity: which regret.
        printed: the bound in the table; None for the gray cell.
        proven: the bound that follows from Theorem 3.
        fit: the measured growth.
        worst: the largest regret of a run at the horizon, divided by the mean of all runs.
    """

    regime: Regime
    quantity: Literal["short-sighted", "absolute"]
    printed: Growth | None
    proven: Growth
    fit: Fit
    worst: float

    @property
    def verdict(self) -> Verdict | Literal["no bound"]:
        """Compared with the printed bound."""
        return "no bound" if self.printed is None else self.fit.verdict(self.printed)

    @property
    def verdict_proven(self) -> Verdict:
        """Compared with the bound that follows from Theorem 3."""
        return self.fit.verdict(self.proven)


def cells(runs: Measured, *, seed: int) -> list[Cell]:
    """Return the cells of both regrets of a regime."""
    regime = runs.regime
    growth = regret.short_sighted_growth(regime.gap)
    short_sighted = Cell(
        regime,
        "short-sighted",
        printed=growth,
        proven=growth,
        fit=fit(runs.times, runs.short_sighted, growth, seed=seed),
        worst=_worst_to_mean(runs.short_sighted),
    )
    proven = regret.absolute_growth(regime.gap, regime.own)
    absolute = Cell(
        regime,
        "absolute",
        printed=regret.table_1_absolute(regime.gap, regime.own),
        proven=proven,
        fit=fit(runs.times, runs.absolute, proven, seed=seed),
        worst=_worst_to_mean(runs.absolute),
    )
    return [short_sighted, absolute]


def _worst_to_mean(regrets: Floats) -> float:
    final = regrets[:, -1]
    return float(final.max() / final.mean())


@dataclass(frozen=True)
class Theorems:
    """The inequalities of the theorems along the mean run of ESBAS.

    Attributes:
        ratio_1: the largest ρ_abs(T) / max_α ρ_abs of σ^α, bounded according to Theorem 1.
        ratio_2: ρ_ss / Σ β/Δ_β† at the ends of the epochs from the second on, (B,); bounded
            according to Theorem 2.
        times_3: meta-times T >= 9K².
        kappa_3: the κ that Theorem 3 needs at these times.
        share_3: ρ_abs divided by the right side of Theorem 3 with κ = 0, at these times.
    """

    ratio_1: float
    ratio_2: Floats
    times_3: Integers
    kappa_3: Floats
    share_3: Floats


def theorems(runs: Measured) -> Theorems:
    """Return the inequalities for the means over runs."""
    regime = runs.regime
    times = runs.times
    short_sighted = runs.short_sighted.mean(axis=0)
    absolute = runs.absolute.mean(axis=0)
    online = regime.online(runs.horizon)
    canonical = regret.canonical_absolute(online, optimum=regime.optimum)  # (K, T)
    ratio_1 = absolute / canonical[:, times - 1].max(axis=0)

    epochs = np.arange(runs.horizon.bit_length() - 1)
    starts = (1 << epochs) - 1  # rows of the first meta-time of each epoch
    gaps = regret.smallest_gap(regime.frozen(runs.horizon)[starts])
    ends = np.searchsorted(times, (2 << epochs) - 1)
    ratio_2 = short_sighted[ends][1:] / regret.theorem_2(gaps)[1:]

    n_arms = len(canonical)
    best = canonical[canonical[:, -1].argmin()]
    later = times >= 9 * n_arms**2
    kappa_3 = regret.kappa_of_theorem_3(
        times[later],
        n_arms=n_arms,
        absolute=absolute[later],
        canonical=best,
        short_sighted=short_sighted[later],
    )
    right_side = regret.theorem_3(
        times[later], n_arms=n_arms, canonical=best, short_sighted=short_sighted[later]
    )
    return Theorems(
        ratio_1=float(ratio_1.max()),
        ratio_2=ratio_2,
        times_3=times[later],
        kappa_3=kappa_3,
        share_3=absolute[later] / right_side,
    )


class BoundsAnalysis:
    """All measurements, by regime and name of the method."""

    def __init__(
        self,
        regrets: Mapping[tuple[str, str], Floats],
        methods: Sequence[MetaAlgorithm],
        *,
        horizon: int,
        seed: int,
    ) -> None:
        self.horizon = horizon
        self.seed = seed
        self.methods = {method.name: method for method in methods}
        self.esbas = [method.name for method in methods if method.frozen]
        self.fitted = [regime for regime in REGIMES.values() if regime.fitted]
        self.compared = [regime for regime in REGIMES.values() if regime.compared]
        self.runs: dict[tuple[str, str], Measured] = {}
        for (regime_name, name), table in regrets.items():
            frozen = self.methods[name].frozen
            self.runs[regime_name, name] = measured(
                REGIMES[regime_name], table, horizon=horizon, frozen=frozen
            )
        self.cells: dict[str, list[Cell]] = {name: [] for name in self.esbas}
        self.theorems: dict[tuple[str, str], Theorems] = {}
        for regime in self.fitted:
            for name in self.esbas:
                runs = self.runs[regime.name, name]
                self.cells[name] += cells(runs, seed=seed)
                self.theorems[regime.name, name] = theorems(runs)

    def final(self, regime: Regime, name: str, quantity: str) -> Estimate:
        """Return a regret at the horizon."""
        return estimate(getattr(self.runs[regime.name, name], quantity)[:, -1])

    def relative(self, regime: Regime, name: str) -> Estimate:
        """Return the absolute regret at the horizon minus that of the best learner alone."""
        online = regime.online(self.horizon)
        canonical = regret.canonical_absolute(online, optimum=regime.optimum)  # (K, T)
        best = canonical[:, -1].min()
        return estimate(self.runs[regime.name, name].absolute[:, -1] - best)

    def exponent(self, regime: Regime, name: str) -> Fit:
        """Return the growth of the absolute regret as a pure power of T."""
        runs = self.runs[regime.name, name]
        return fit(runs.times, runs.absolute, Growth(1.0), seed=self.seed)

    def leaders(self, regime: Regime) -> list[str]:
        """Return the method with the smallest regret, and those with overlapping intervals.

        The best one comes first.
        """
        found = {name: self.final(regime, name, "oracle") for name in self.methods}
        best = min(found.values(), key=lambda value: value.mean)
        limit = best.mean + best.ci95
        near = [name for name, value in found.items() if value.mean - value.ci95 <= limit]
        return sorted(near, key=lambda name: found[name].mean)
