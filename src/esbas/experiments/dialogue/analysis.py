"""The paper's table from the outcomes: relative pseudo-regrets with paired intervals, compared with the paper."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.experiments.dialogue import constants
from esbas.experiments.dialogue.constants import Policies
from esbas.experiments.dialogue.notation import TableRow
from esbas.experiments.dialogue.setup import EPOCHS, PAPER_INTERVAL, TABLE, Paper
from esbas.experiments.dialogue.sweep import EpochSums, Outcomes, alone
from esbas.reporting import Estimate, estimate, estimates

Floats = NDArray[np.float64]
WORSE, BETTER, AS_GOOD = "worse", "better", "as good"
YES, READING, NO = "yes", "reading only", "no"


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """A row of the table."""

    row: TableRow
    outcome: EpochSums
    best: str  # the algorithm with the largest mean return alone, over all runs
    worst: str
    against_best: Floats  # (R, epochs): return of the best algorithm alone minus return of ESBAS, run by run
    against_worst: Floats  # (R, epochs)
    shared: EpochSums | None = None  # the same runs with shared evidence

    @property
    def difference(self) -> Estimate | None:
        """The return of ESBAS minus that with shared evidence, summed over a run: negative if shared evidence is better."""
        return None if self.shared is None else estimate(self.outcome.totals - self.shared.totals)

    @property
    def shared_reading(self) -> str | None:
        """Whether shared evidence is better or worse than ESBAS, or as good."""
        difference = self.difference
        return None if difference is None else _reading(difference.mean, difference.ci95)

    @property
    def paper(self) -> Paper | None:
        """The numbers in the paper; None if it does not have the row."""
        return TABLE.get(self.row.name)

    @property
    def w_best(self) -> Estimate:
        """The relative pseudo-regret: positive if the best algorithm alone has a larger return."""
        return estimate(self.against_best.sum(axis=1))

    @property
    def w_worst(self) -> Estimate:
        """The regret relative to the worst algorithm alone: negative if ESBAS has a larger return."""
        return estimate(self.against_worst.sum(axis=1))

    @property
    def reading(self) -> str:
        """The colour in the paper: red if ESBAS is worse than the best algorithm alone, green if better, otherwise none."""
        return _reading(self.w_best.mean, self.w_best.ci95)

    def agrees(self) -> str | None:
        """Whether the paper's "w. best" and ours agree within the interval of their difference, or at least have the same colour.

        The two results are independent, so the half widths of their intervals are combined in quadrature.
        """
        if self.paper is None:
            return None
        if abs(self.w_best.mean - self.paper.w_best) <= math.hypot(self.w_best.ci95, PAPER_INTERVAL):
            return YES
        return READING if self.reading == _reading(self.paper.w_best, PAPER_INTERVAL) else NO

    def worst_agrees(self) -> str | None:
        """Whether "w. worst" agrees within the interval of the difference, or at least up to a factor of two."""
        if self.paper is None:
            return None
        if abs(self.w_worst.mean - self.paper.w_worst) <= math.hypot(self.w_worst.ci95, PAPER_INTERVAL):
            return YES
        return READING if 0.5 <= self.w_worst.mean / self.paper.w_worst <= 2 else NO

    def shares(self, *, shared: bool = False) -> tuple[Floats, Floats]:
        """The selection ratio of each algorithm: mean over runs and interval, (epochs, K) each."""
        outcome = self.shared if shared and self.shared is not None else self.outcome
        return estimates(outcome.selections / np.array(EPOCHS)[:, None])

    def by_policy(self, policies: Policies) -> Iterator[tuple[constants.ConstantPolicy, Estimate, Estimate]]:
        """For rows with a constant: each of its policies, with the regrets in the runs that used it."""
        for constant in self.row.constants[:1]:
            own = constants.find(constant.mu, policies, second=self.row.second)
            for p, policy in enumerate(own[: len(self.against_best)]):
                best, worst = (against[p :: len(own)].sum(axis=1) for against in (self.against_best, self.against_worst))
                yield policy, estimate(best), estimate(worst)


@dataclass(frozen=True)
class DialogueAnalysis:
    """The whole table."""

    rows: list[RowResult]
    canonical: Mapping[str, EpochSums]

    def summary(self) -> dict[str, Any]:
        """The content of summary.json."""
        return {
            "rows": {result.row.name: _summary_row(result) for result in self.rows},
            "canonical": {
                name: {
                    "mean_return": estimate(outcome.totals / sum(EPOCHS)),
                    "by_epoch": _by_epoch(outcome.returns / np.array(EPOCHS)),
                    "acts_per_dialogue": outcome.acts.sum() / (len(outcome.acts) * sum(EPOCHS)),
                }
                for name, outcome in self.canonical.items()
            },
            "agreement": {verdict: sum(row.agrees() == verdict for row in self.rows) for verdict in (YES, READING, NO)},
        } | ({"shared_evidence": self.shared_readings()} if self.has_shared else {})

    @property
    def has_shared(self) -> bool:
        """Whether the runs with shared evidence are there."""
        return all(row.shared is not None for row in self.rows)

    def shared_readings(self) -> dict[str, int]:
        """In how many rows shared evidence is better than ESBAS, as good, and worse, by the interval of the difference."""
        return {reading: sum(row.shared_reading == reading for row in self.rows) for reading in (BETTER, AS_GOOD, WORSE)}


def analyse(rows: Mapping[str, TableRow], outcomes: Outcomes) -> DialogueAnalysis:
    """Compare each row, run by run, with its algorithms alone, and with shared evidence if it was run."""
    return DialogueAnalysis([_row_result(name, row, outcomes) for name, row in rows.items()], outcomes.canonical)


def _row_result(name: str, row: TableRow, outcomes: Outcomes) -> RowResult:
    outcome, canonical = outcomes.rows[name], outcomes.canonical
    returns = {one.name: canonical[one.name].returns for one in alone(row)}  # (R, epochs) each
    by_mean = sorted(returns, key=lambda name: float(returns[name].sum(axis=1).mean()))
    best, worst = by_mean[-1], by_mean[0]
    differences = {"against_best": returns[best] - outcome.returns, "against_worst": returns[worst] - outcome.returns}
    return RowResult(row=row, outcome=outcome, best=best, worst=worst, **differences, shared=outcomes.shared.get(name))


def _reading(mean: float, ci95: float) -> str:
    if mean - ci95 > 0:
        return WORSE
    return BETTER if mean + ci95 < 0 else AS_GOOD


def _summary_row(result: RowResult) -> dict[str, Any]:
    shares, _ = result.shares()
    return {
        "w_best": result.w_best,
        "w_worst": result.w_worst,
        "best": result.best,
        "worst": result.worst,
        "w_best_by_epoch": _by_epoch(result.against_best),  # sums over the dialogues of each epoch
        "paper": result.paper and result.paper._asdict(),
        "reading": result.reading,
        "agrees": result.agrees(),
        "worst_agrees": result.worst_agrees(),
        "mean_return": estimate(result.outcome.totals / sum(EPOCHS)),
        "by_epoch": _by_epoch(result.outcome.returns / np.array(EPOCHS)),
        "algorithms": [algorithm.name for algorithm in result.row.algorithms],
        "selection_ratios": shares,  # (epochs, K)
    } | ({} if result.shared is None else _summary_shared(result, result.shared))


def _summary_shared(result: RowResult, shared: EpochSums) -> dict[str, Any]:
    shares, _ = result.shares(shared=True)
    return {
        "difference": result.difference,
        "difference_by_epoch": _by_epoch(result.outcome.returns - shared.returns),
        "shared_evidence": {
            "reading": result.shared_reading,
            "mean_return": estimate(shared.totals / sum(EPOCHS)),
            "by_epoch": _by_epoch(shared.returns / np.array(EPOCHS)),
            "selection_ratios": shares,
        },
    }


def _by_epoch(samples: Floats) -> dict[str, Floats]:
    """Means over runs and their intervals, (R, epochs) -> (epochs,) each."""
    return dict(zip(("mean", "ci95"), estimates(samples), strict=True))
