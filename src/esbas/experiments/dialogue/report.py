"""Tables and the report."""

import numpy as np

from esbas.experiments.dialogue.analysis import AS_GOOD, BETTER, NO, READING, WORSE, YES, DialogueAnalysis
from esbas.experiments.dialogue.constants import POLICIES, Policies
from esbas.experiments.dialogue.figures import difference_figure, performance_figure, table_figure
from esbas.experiments.dialogue.setup import EPOCHS, TRAJECTORIES
from esbas.reporting import Results, Section, estimate, estimates, terminal

Rows = tuple[list[str], list[list[object]]]


def publish(results: Results, analysis: DialogueAnalysis, constants: Policies) -> None:
    """Write tables, figures, summary and report, and print the table."""
    runs = len(analysis.rows[0].against_best)
    table, alone, policies = main_table(analysis), canonical_table(analysis), policy_table(analysis, constants)
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
        f"Of {compared} rows of the paper, {verdicts[YES]} agree within the two intervals combined, {verdicts[READING]} "
        f"more have the same colour but another size, and {verdicts[NO]} have another colour."
    )
    about = f"""{runs:,} runs of {TRAJECTORIES:,} dialogues for each portfolio and for each algorithm alone (rows share the
        latter). Dialogue τ of run r has the same costs, the same user and the same channel in all of them, so differences are
        paired; intervals are 95 %. "w. best" is the return of the best algorithm alone minus the return of ESBAS, summed over the
        run: negative is good. {agreement}"""
    by_policy = f"""A constant policy is any policy of that mean return; runs use {POLICIES} of them in turn. The intervals above
        are for these policies. This table shows how much the regret depends on the policy."""
    sections = [
        Section("Table 2", about, table, "table", caption="The numbers of the paper (×) and ours with 95 % intervals (●)."),
        Section(
            "Figure 2",
            figure="figure2",
            caption="Performance by epoch (top) and selection ratios (bottom): means with 95 % bands within the range of runs.",
        ),
        Section("Each algorithm alone", table=alone),
    ]
    if analysis.has_shared:
        sections[2:2] = _shared_sections(results, analysis)
    if policies[1]:
        sections.append(Section("By constant policy", by_policy, table=policies))
    results.report("Negotiation dialogue: ESBAS over fitted Q iteration", sections)
    terminal.print_table("Table 2", *table)
    if compared:
        terminal.print_text(agreement)
    if analysis.has_shared:
        terminal.print_text(_shared_verdict(analysis))
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def _shared_sections(results: Results, analysis: DialogueAnalysis) -> list[Section]:
    """Shared evidence compared with ESBAS."""
    results.figure("difference", difference_figure(analysis))
    results.figure("figure2-shared-evidence", performance_figure(analysis, shared=True))
    about = f"""The same runs with the selector shared-evidence. The difference is the return of ESBAS minus the return
        with shared evidence, summed over a run and paired by run: negative means that shared evidence is better.
        {_shared_verdict(analysis)}"""
    return [
        Section("Shared evidence", about, figure="difference", caption="Differences to ESBAS with 95 % intervals."),
        Section(
            "Figure 2 with shared evidence",
            figure="figure2-shared-evidence",
            caption="Performance by epoch (top) and selection ratios of shared evidence (bottom).",
        ),
    ]


def _shared_verdict(analysis: DialogueAnalysis) -> str:
    counts = analysis.shared_readings()
    return (
        f"Of {len(analysis.rows)} rows, shared evidence is better than ESBAS in {counts[BETTER]}, worse in {counts[WORSE]}, and "
        f"the interval contains 0 in {counts[AS_GOOD]}."
    )


def main_table(analysis: DialogueAnalysis) -> Rows:
    """The paper's table and ours, side by side, and the difference to shared evidence if it was run."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        paper = result.paper
        best = [paper and paper.w_best, result.w_best, result.reading, result.agrees()]
        difference = [result.difference] if analysis.has_shared else []
        worst = [paper and paper.w_worst, result.w_worst, result.worst_agrees()]
        rows.append([result.row.name, *best, *worst, result.best, *difference])
    header = ["portfolio", "w. best: paper", "measured", "ESBAS is", "agrees?", "w. worst: paper", "measured", "agrees?", "best"]
    return [*header, *(["ESBAS - shared evidence"] if analysis.has_shared else [])], rows


def _full(analysis: DialogueAnalysis) -> Rows:
    """The same at full precision, for table.csv."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        best, worst, paper = result.w_best, result.w_worst, result.paper
        ours = [best.mean, best.ci95, worst.mean, worst.ci95, best.runs, result.best, result.worst, result.reading]
        difference = result.difference
        shared = [difference.mean, difference.ci95, result.shared_reading] if difference else []
        rows.append([result.row.name, *(paper or (None, None)), *ours, result.agrees(), result.worst_agrees(), *shared])
    header = "portfolio,paper w. best,paper w. worst,w. best,w. best ci95,w. worst,w. worst ci95,runs,best,worst,ESBAS is"
    shared_header = ["difference", "difference ci95", "shared evidence is"] if analysis.has_shared else []
    return [*header.split(","), "w. best agrees", "w. worst agrees", *shared_header], rows


def canonical_table(analysis: DialogueAnalysis) -> Rows:
    """Each algorithm alone: mean return over the whole run and by epoch."""
    rows: list[list[object]] = []
    for name, outcome in analysis.canonical.items():
        by_epoch, _ = estimates(outcome.returns / np.array(EPOCHS))
        rows.append([name, estimate(outcome.totals / TRAJECTORIES), *by_epoch.round(4).tolist()])
    return ["algorithm", "mean return", *(f"epoch {epoch}" for epoch in range(len(EPOCHS)))], rows


def policy_table(analysis: DialogueAnalysis, constants: Policies) -> Rows:
    """The regrets of rows with a constant, for each of its policies."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        for policy, best, worst in result.by_policy(constants):
            rows.append([result.row.name, policy.candidate, policy.batch, policy.mean, best, worst])
    return ["portfolio", "policy", "learnt from", "mean return", "w. best", "w. worst"], rows


def _selections(analysis: DialogueAnalysis) -> Rows:
    """All selection ratios."""
    rows: list[list[object]] = []
    for result in analysis.rows:
        for selector in ("ESBAS", "shared evidence") if analysis.has_shared else ("ESBAS",):
            shares, ci95 = result.shares(shared=selector != "ESBAS")
            for k, algorithm in enumerate(result.row.algorithms):
                points = zip(shares[:, k], ci95[:, k], strict=True)
                rows += [[result.row.name, k, algorithm.name, epoch, *point, selector] for epoch, point in enumerate(points)]
    return ["portfolio", "arm", "algorithm", "epoch", "ratio", "ci95", "selector"], rows
