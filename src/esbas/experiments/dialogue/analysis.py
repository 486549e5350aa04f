"""The paper's table from the outcomes, compared with the paper.

It has relative pseudo-regrets with paired intervals.
"""

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

# How a selector compares with another one or with a learner.
WORSE = "worse"
BETTER = "better"
AS_GOOD = "as good"

# Whether the paper's number and ours agree.
YES = "yes"
READING = "reading only"
NO = "no"


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """A row of the table."""

    row: TableRow
    outcome: EpochSums
    best: str  # the learner with the largest mean return alone, over all runs
    worst: str
    against_best: Floats  # (R, epochs): return of the best learner alone minus that of ESBAS
    against_worst: Floats  # (R, epochs)
    shared: EpochSums | None = None  # the same runs with shared evidence

    @property
    def difference(self) -> Estimate | None:
        """The return of ESBAS minus that with shared evidence, summed over a run.

        It is negative if shared evidence is better.
        """
        if self.shared is None:
            return None
        return estimate(self.outcome.totals - self.shared.totals)

    @property
    def shared_reading(self) -> str | None:
        """Whether shared evidence is better or worse than ESBAS, or as good."""
        difference = self.difference
        if difference is None:
            return None
        return _reading(difference.mean, difference.ci95)

    @property
    def paper(self) -> Paper | None:
        """The numbers in the paper; None if it does not have the row."""
        return TABLE.get(self.row.name)

    @property
    def w_best(self) -> Estimate:
        """The relative pseudo-regret: positive if the best learner alone has a larger return."""
        return estimate(self.against_best.sum(axis=1))

    @property
    def w_worst(self) -> Estimate:
        """The regret relative to the worst learner alone: negative if ESBAS has a larger return."""
        return estimate(self.against_worst.sum(axis=1))

    @property
    def reading(self) -> str:
        """The color in the paper.

        It is red if ESBAS is worse than the best learner alone, green if better, otherwise none.
        """
        return _reading(self.w_best.mean, self.w_best.ci95)

    def agrees(self) -> str | None:
        """Return whether the paper's "w. best" and ours agree.

        They agree within the interval of their difference (YES), or at least have the same color
        (READING).
        """
        if self.paper is None:
            return None
        if _within_intervals(self.w_best, self.paper.w_best):
            return YES
        return READING if self.reading == _reading(self.paper.w_best, PAPER_INTERVAL) else NO

    def worst_agrees(self) -> str | None:
        """Return whether the paper's "w. worst" and ours agree.

        They agree within the interval of their difference (YES), or at least up to a factor of two
        (READING).
        """
        if self.paper is None:
            return None
        if _within_intervals(self.w_worst, self.paper.w_worst):
            return YES
        return READING if 0.5 <= self.w_worst.mean / self.paper.w_worst <= 2 else NO

    def shares(self, *, shared: bool = False) -> tuple[Floats, Floats]:
        """Return the selection ratio of each learner: mean and interval, (epochs, K) each."""
        outcome = self.shared if shared and self.shared is not None else self.outcome
        return estimates(outcome.selections / np.array(EPOCHS)[:, None])

    def by_policy(
        self, policies: Policies
    ) -> Iterator[tuple[constants.ConstantPolicy, Estimate, Estimate]]:
        """Yield each policy of the first constant, with the regrets in the runs that used it.

        There are none in a row without a constant.
        """
        if not self.row.constants:
            return
        constant = self.row.constants[0]
        own = constants.find(constant.mu, policies, second=self.row.second)
        for p, policy in enumerate(own[: len(self.against_best)]):
            best = self.against_best[p :: len(own)].sum(axis=1)
            worst = self.against_worst[p :: len(own)].sum(axis=1)
            yield policy, estimate(best), estimate(worst)


@dataclass(frozen=True)
class DialogueAnalysis:
    """The whole table."""

    rows: list[RowResult]
    canonical: Mapping[str, EpochSums]

    def summary(self) -> dict[str, Any]:
        """Return the content of summary.json."""
        canonical = {}
        for name, outcome in self.canonical.items():
            dialogues = len(outcome.acts) * sum(EPOCHS)
            canonical[name] = {
                "mean_return": estimate(outcome.totals / sum(EPOCHS)),
                "by_epoch": _by_epoch(outcome.returns / np.array(EPOCHS)),
                "acts_per_dialogue": outcome.acts.sum() / dialogues,
            }
        summary: dict[str, Any] = {
            "rows": {result.row.name: _summary_row(result) for result in self.rows},
            "canonical": canonical,
            "agreement": self.agreement(),
        }
        if self.has_shared:
            summary["shared_evidence"] = self.shared_readings()
        return summary

    def agreement(self) -> dict[str, int]:
        """Return how many rows agree with the paper, agree in their color only, and do not."""
        verdicts = [row.agrees() for row in self.rows]
        return {verdict: verdicts.count(verdict) for verdict in (YES, READING, NO)}

    @property
    def has_shared(self) -> bool:
        """Whether the runs with shared evidence are there."""
        return all(row.shared is not None for row in self.rows)

    def shared_readings(self) -> dict[str, int]:
        """Return in how many rows shared evidence is better than ESBAS, as good, and worse.

        The interval of the difference decides.
        """
        readings = [row.shared_reading for row in self.rows]
        return {reading: readings.count(reading) for reading in (BETTER, AS_GOOD, WORSE)}


def analyze(rows: Mapping[str, TableRow], outcomes: Outcomes) -> DialogueAnalysis:
    """Compare each row, run by run, with its learners alone, and with shared evidence if run."""
    results = [_row_result(name, row, outcomes) for name, row in rows.items()]
    return DialogueAnalysis(results, outcomes.canonical)


def _row_result(name: str, row: TableRow, outcomes: Outcomes) -> RowResult:
    outcome = outcomes.rows[name]
    canonical = {one.name: outcomes.canonical[one.name] for one in alone(row)}
    means = {name: float(sums.totals.mean()) for name, sums in canonical.items()}
    by_mean = sorted(means, key=means.__getitem__)
    best = by_mean[-1]
    worst = by_mean[0]
    return RowResult(
        row=row,
        outcome=outcome,
        best=best,
        worst=worst,
        against_best=canonical[best].returns - outcome.returns,
        against_worst=canonical[worst].returns - outcome.returns,
        shared=outcomes.shared.get(name),
    )


def _within_intervals(ours: Estimate, theirs: float) -> bool:
    """Return whether two numbers agree within the interval of their difference.

    The two are independent, so the half widths of their intervals are combined in quadrature.
    """
    return abs(ours.mean - theirs) <= math.hypot(ours.ci95, PAPER_INTERVAL)


def _reading(mean: float, ci95: float) -> str:
    if mean - ci95 > 0:
        return WORSE
    return BETTER if mean + ci95 < 0 else AS_GOOD


def _summary_row(result: RowResult) -> dict[str, Any]:
    shares, _ = result.shares()
    summary: dict[str, Any] = {
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
        "algorithms": [learner.name for learner in result.row.learners],
        "selection_ratios": shares,  # (epochs, K)
    }
    if result.shared is not None:
        summary |= _summary_shared(result, result.shared)
    return summary


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
    """Return means over runs and their intervals, (R, epochs) -> (epochs,) each."""
    mean, ci95 = estimates(samples)
    return {"mean": mean, "ci95": ci95}
