"""The results folder: the table, the figures, the report."""

import numpy as np

from esbas.experiments.dialogue.analysis import NO, READING, YES, DialogueAnalysis
from esbas.experiments.dialogue.constants import POLICIES
from esbas.experiments.dialogue.figures import performance_figure, table_figure
from esbas.experiments.dialogue.setup import EPOCHS, TRAJECTORIES
from esbas.experiments.dialogue.sweep import Known
from esbas.reporting import Results, Section, estimate, estimates, terminal

Rows = tuple[list[str], list[list[object]]]


def publish(results: Results, analysis: DialogueAnalysis, known: Known) -> None:
    """Write everything, and print the table."""
    runs = len(analysis.rows[0].against_best)
    table, alone, policies = main_table(analysis), canonical_table(analysis), policy_table(analysis, known)
    results.table("table", *_full(analysis))
    results.table("canonical", *alone)
    results.table("policies", *policies)
    results.table("selections", *_selections(analysis))
    results.figure("figure2", performance_figure(analysis))
    results.figure("table", table_figure(analysis))
    results.summary(analysis.summary())
    verdicts = analysis.summary()["agreement"]
    compared = sum(verdicts.values())
    agreement = (
        f"Of {compared} rows that the paper has, {verdicts[YES]} agree within the two intervals combined, {verdicts[READING]} "
        f"more have the same reading but another size, {verdicts[NO]} read differently."
    )
    about = f"""{runs:,} runs of {TRAJECTORIES:,} dialogues for each portfolio and for each of its algorithms alone (rows share
        those). Dialogue τ of run r has the same costs, the same user and the same channel in all of them, so differences are
        taken run by run; intervals are 95 %. Against the best: what the best algorithm alone earns minus what ESBAS earns, in
        return summed over the run; negative is good. {agreement}"""
    constants = f"""A constant policy is any policy of that mean return: runs use {POLICIES} of them in turn. The intervals above
        hold for these policies; how much depends on which one the paper had is here."""
    sections = [
        Section("Table 2", about, table=table),
        Section("Table 2 as a picture", figure="table", caption="The paper's numbers (×) and ours with 95 % intervals (●)."),
        Section(
            "Figure 2",
            figure="figure2",
            caption="Performance by epoch (top) and how often ESBAS selected each algorithm (bottom): means, 95 % bands.",
        ),
        Section("Each algorithm alone", table=alone),
    ]
    if policies[1]:
        sections.append(Section("By constant policy", constants, table=policies))
    results.report("Negotiation dialogue: ESBAS over fitted Q iteration", sections)
    terminal.print_table("Table 2", *table)
    if compared:
        terminal.print_text(agreement)
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def main_table(analysis: DialogueAnalysis) -> Rows:
    """The paper's table beside ours."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        paper = result.paper
        best = [paper and paper.w_best, result.w_best, result.reading, result.agrees()]
        rows.append([result.row.name, *best, paper and paper.w_worst, result.w_worst, result.worst_agrees(), result.best])
    header = ["portfolio", "w. best: paper", "measured", "ESBAS is", "agrees?", "w. worst: paper", "measured", "agrees?", "best"]
    return header, rows


def _full(analysis: DialogueAnalysis) -> Rows:
    """The same with numbers in full, for table.csv."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        best, worst, paper = result.w_best, result.w_worst, result.paper
        ours = [best.mean, best.ci95, worst.mean, worst.ci95, best.runs, result.best, result.worst, result.reading]
        rows.append([result.row.name, *(paper or (None, None)), *ours, result.agrees(), result.worst_agrees()])
    header = "portfolio,paper w. best,paper w. worst,w. best,w. best ci95,w. worst,w. worst ci95,runs,best,worst,ESBAS is"
    return [*header.split(","), "w. best agrees", "w. worst agrees"], rows


def canonical_table(analysis: DialogueAnalysis) -> Rows:
    """Each algorithm alone: mean return over the whole run and by epoch."""
    rows: list[list[object]] = []
    for name, outcome in analysis.canonical.items():
        by_epoch, _ = estimates(outcome.returns / np.array(EPOCHS))
        rows.append([name, estimate(outcome.totals / TRAJECTORIES), *by_epoch.round(4).tolist()])
    return ["algorithm", "mean return", *(f"epoch {epoch}" for epoch in range(len(EPOCHS)))], rows


def policy_table(analysis: DialogueAnalysis, known: Known) -> Rows:
    """Rows with a constant, policy by policy."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        for policy, best, worst in result.by_policy(known):
            rows.append([result.row.name, policy.candidate, policy.batch, policy.mean, best, worst])
    return ["portfolio", "policy", "learnt from", "mean return", "w. best", "w. worst"], rows


def _selections(analysis: DialogueAnalysis) -> Rows:
    """Every point of every selection ratio."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        shares, ci95 = result.shares()
        for k, algorithm in enumerate(result.row.algorithms):
            points = zip(shares[:, k], ci95[:, k], strict=True)
            rows += [[result.row.name, k, algorithm.name, epoch, *point] for epoch, point in enumerate(points)]
    return ["portfolio", "arm", "algorithm", "epoch", "ratio", "ci95"], rows
