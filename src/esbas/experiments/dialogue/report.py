"""Tables and the report."""

import numpy as np

from esbas.experiments.dialogue.analysis import (
    AS_GOOD,
    BETTER,
    NO,
    READING,
    WORSE,
    YES,
    DialogueAnalysis,
    RowResult,
)
from esbas.experiments.dialogue.constants import POLICIES, Policies
from esbas.experiments.dialogue.figures import difference_figure, performance_figure, table_figure
from esbas.experiments.dialogue.setup import EPOCHS, TRAJECTORIES
from esbas.reporting import Results, Section, estimate, estimates, terminal

Rows = tuple[list[str], list[list[object]]]


def publish(results: Results, analysis: DialogueAnalysis, constants: Policies) -> None:
    """Write tables, figures, summary and report, and print the table."""
    table = main_table(analysis)
    alone = canonical_table(analysis)
    policies = policy_table(analysis, constants)
    results.table("table", *_full(analysis))
    results.table("canonical", *alone)
    results.table("policies", *policies)
    results.table("selections", *_selections(analysis))
    results.figure("figure2", performance_figure(analysis))
    results.figure("table", table_figure(analysis))
    results.summary(analysis.summary())
    sections = [
        Section(
            "Table 2",
            _about_table(analysis),
            table,
            "table",
            caption="The numbers of the paper (×) and ours with 95 % intervals (●).",
        ),
        Section(
            "Figure 2",
            figure="figure2",
            caption="Performance by epoch (top) and selection ratios (bottom): "
            "means with 95 % bands within the range of runs.",
        ),
    ]
    if analysis.has_shared:
        sections += _shared_sections(results, analysis)
    sections.append(Section("Each algorithm alone", table=alone))
    _, policy_rows = policies
    if policy_rows:
        sections.append(Section("By constant policy", _ABOUT_POLICIES, table=policies))
    results.report("Negotiation dialogue: ESBAS over fitted Q iteration", sections)
    terminal.print_table("Table 2", *table)
    if sum(analysis.agreement().values()) > 0:
        terminal.print_text(_agreement(analysis))
    if analysis.has_shared:
        terminal.print_text(_shared_verdict(analysis))
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


_ABOUT_POLICIES = f"""A constant policy is any policy of that mean return; runs use {POLICIES} of
    them in turn. The intervals above are for these policies. This table shows how much the regret
    depends on the policy."""


def _about_table(analysis: DialogueAnalysis) -> str:
    runs = len(analysis.rows[0].against_best)
    return f"""{runs:,} runs of {TRAJECTORIES:,} dialogues for each portfolio and for each algorithm
        alone (rows share the latter). Dialogue τ of run r has the same costs, the same user and
        the same channel in all of them, so differences are paired; intervals are 95 %. "w. best" is
        the return of the best algorithm alone minus the return of ESBAS, summed over the run:
        negative is good. {_agreement(analysis)}"""


def _agreement(analysis: DialogueAnalysis) -> str:
    verdicts = analysis.agreement()
    return (
        f"Of {sum(verdicts.values())} rows of the paper, {verdicts[YES]} agree within the two "
        f"intervals combined, {verdicts[READING]} more have the same color but another size, and "
        f"{verdicts[NO]} have another color."
    )


def _shared_sections(results: Results, analysis: DialogueAnalysis) -> list[Section]:
    """Draw the figures of shared evidence, and return the sections that compare it with ESBAS."""
    results.figure("difference", difference_figure(analysis))
    results.figure("figure2-shared-evidence", performance_figure(analysis, shared=True))
    about = f"""The same runs with the selector shared-evidence. The difference is the return of
        ESBAS minus the return with shared evidence, summed over a run and paired by run: negative
        means that shared evidence is better. {_shared_verdict(analysis)}"""
    return [
        Section(
            "Shared evidence",
            about,
            figure="difference",
            caption="Differences to ESBAS with 95 % intervals.",
        ),
        Section(
            "Figure 2 with shared evidence",
            figure="figure2-shared-evidence",
            caption="Performance by epoch (top) and selection ratios of shared evidence (bottom).",
        ),
    ]


def _shared_verdict(analysis: DialogueAnalysis) -> str:
    counts = analysis.shared_readings()
    return (
        f"Of {len(analysis.rows)} rows, shared evidence is better than ESBAS in {counts[BETTER]}, "
        f"worse in {counts[WORSE]}, and the interval contains 0 in {counts[AS_GOOD]}."
    )


def main_table(analysis: DialogueAnalysis) -> Rows:
    """Return the paper's table and ours, with the difference to shared evidence if it was run."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        paper_best, paper_worst = _numbers_of_paper(result)
        row: list[object] = [
            result.row.name,
            paper_best,
            result.w_best,
            result.reading,
            result.agrees(),
            paper_worst,
            result.w_worst,
            result.worst_agrees(),
            result.best,
        ]
        if analysis.has_shared:
            row.append(result.difference)
        rows.append(row)
    header = [
        "portfolio",
        "w. best: paper",
        "measured",
        "ESBAS is",
        "agrees?",
        "w. worst: paper",
        "measured",
        "agrees?",
        "best",
    ]
    if analysis.has_shared:
        header.append("ESBAS - shared evidence")
    return header, rows


def _numbers_of_paper(result: RowResult) -> tuple[int | None, int | None]:
    if result.paper is None:
        return None, None
    return result.paper.w_best, result.paper.w_worst


def _full(analysis: DialogueAnalysis) -> Rows:
    """Return the same at full precision, for table.csv."""
    header = [
        "portfolio",
        "paper w. best",
        "paper w. worst",
        "w. best",
        "w. best ci95",
        "w. worst",
        "w. worst ci95",
        "runs",
        "best",
        "worst",
        "ESBAS is",
        "w. best agrees",
        "w. worst agrees",
    ]
    if analysis.has_shared:
        header += ["difference", "difference ci95", "shared evidence is"]
    rows: list[list[object]] = []
    for result in analysis.rows:
        row: list[object] = [
            result.row.name,
            *_numbers_of_paper(result),
            result.w_best.mean,
            result.w_best.ci95,
            result.w_worst.mean,
            result.w_worst.ci95,
            result.w_best.runs,
            result.best,
            result.worst,
            result.reading,
            result.agrees(),
            result.worst_agrees(),
        ]
        if result.difference is not None:
            row += [result.difference.mean, result.difference.ci95, result.shared_reading]
        rows.append(row)
    return header, rows


def canonical_table(analysis: DialogueAnalysis) -> Rows:
    """Return the mean return of each learner alone, over the whole run and by epoch."""
    rows: list[list[object]] = []
    for name, outcome in analysis.canonical.items():
        by_epoch, _ = estimates(outcome.returns / np.array(EPOCHS))
        rows.append([name, estimate(outcome.totals / TRAJECTORIES), *by_epoch.round(4).tolist()])
    epochs = [f"epoch {epoch}" for epoch in range(len(EPOCHS))]
    return ["algorithm", "mean return", *epochs], rows


def policy_table(analysis: DialogueAnalysis, constants: Policies) -> Rows:
    """Return the regrets of rows with a constant, for each of its policies."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        for policy, best, worst in result.by_policy(constants):
            rows.append([result.row.name, policy.candidate, policy.batch, policy.mean, best, worst])
    return ["portfolio", "policy", "learnt from", "mean return", "w. best", "w. worst"], rows


def _selections(analysis: DialogueAnalysis) -> Rows:
    """Return all selection ratios."""
    selectors = ["ESBAS"]
    if analysis.has_shared:
        selectors.append("shared evidence")
    rows: list[list[object]] = []
    for result in analysis.rows:
        for selector in selectors:
            shares, ci95 = result.shares(shared=selector != "ESBAS")
            for k, learner in enumerate(result.row.learners):
                for epoch in range(len(EPOCHS)):
                    ratio = shares[epoch, k]
                    width = ci95[epoch, k]
                    rows.append([result.row.name, k, learner.name, epoch, ratio, width, selector])
    return ["portfolio", "arm", "algorithm", "epoch", "ratio", "ci95", "selector"], rows
