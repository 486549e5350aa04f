"""Tables and the report."""

from typing import Any

from esbas.experiments.bounds.analysis import FIT_EPOCHS, TOLERANCE, BoundsAnalysis, Cell
from esbas.experiments.bounds.figures import (
    best_figure,
    brief,
    exponents_figure,
    gap_text,
    growth_figure,
    own_text,
    rivals_figure,
    theorem_3_figure,
)
from esbas.reporting import Results, Section, terminal

Rows = list[list[object]]
_CUT = " (within the range of the single runs)"
CELL_HEADER = [
    "gap",
    "own regret of the best",
    "regret",
    "Table 1",
    "meta-algorithm",
    "exponent",
    "low",
    "high",
    "worst run / mean",
    "verdict",
]
THEOREM_HEADER = [
    "gap",
    "own regret of the best",
    "meta-algorithm",
    "Theorem 1: max ρ_abs / worst",
    "Theorem 2: ρ_ss / Σ β/Δ† at T",
    "Theorem 2: its maximum",
    "Theorem 3: κ needed",
    "at T",
]


def publish(results: Results, analysis: BoundsAnalysis) -> None:
    """Write tables, figures, summary and report, and print the main tables."""
    regimes = _regime_header(analysis)
    results.table("table_1", CELL_HEADER, cell_rows(analysis))
    results.table("theorems", THEOREM_HEADER, theorem_rows(analysis))
    for quantity in ("absolute", "oracle"):
        results.table(f"rivals_{quantity}", regimes, rival_rows(analysis, quantity))
    results.table("rivals_growth", regimes, rival_growth_rows(analysis))
    curve_header = ["regime", "meta-algorithm", "T", "ρ_ss", "ρ_abs"]
    results.table("curves", curve_header, curve_rows(analysis))
    logarithmic = [regime for regime in analysis.fitted if regime.own == 1]
    slower = [regime for regime in analysis.fitted if regime.own != 1]
    results.figure("exponents", exponents_figure(analysis))
    results.figure("short_sighted", growth_figure(analysis, logarithmic, quantity="short_sighted"))
    results.figure("absolute", growth_figure(analysis, slower, quantity="absolute"))
    results.figure("theorem_3", theorem_3_figure(analysis))
    results.figure("rivals", rivals_figure(analysis))
    results.figure("best", best_figure(analysis))
    results.summary(summary(analysis))
    results.report("Regret bounds: Table 1 and Theorems 1-3", sections(analysis))
    print_tables(analysis)
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def _regime_header(analysis: BoundsAnalysis) -> list[str]:
    return ["meta-algorithm", *(gap_text(regime) for regime in analysis.compared)]


def print_tables(analysis: BoundsAnalysis) -> None:
    """Print the main tables in short form."""
    first = analysis.esbas[0]
    rows: Rows = []
    for cell in ordered(analysis.cells[first]):
        gap = gap_text(cell.regime).removeprefix("gap ")
        own = own_text(cell.regime).removeprefix("own ")
        sign = "ρ_ss" if cell.quantity == "short-sighted" else "ρ_abs"
        rows.append([gap, own, sign, cell.printed or "none", cell.fit, cell.verdict])
    header = ["gap", "own", "regret", "bound", "exponent and 95 % interval", "verdict"]
    terminal.print_table(f"Table 1, {first}", header, rows)
    means: Rows = []
    for name in analysis.methods:
        finals = [analysis.final(regime, name, "oracle") for regime in analysis.compared]
        means.append([name, *(brief(final.mean) for final in finals)])
    header = ["gap", *(gap_text(regime).removeprefix("gap ") for regime in analysis.compared)]
    terminal.print_table(f"Regret against the oracle at T = {analysis.horizon:,}", header, means)
    terminal.print_text(*(verdict_text(analysis, name) for name in analysis.esbas))


def beyond(cell: Cell) -> bool:
    """Return whether Table 1 does not cover the regime.

    This is so if the gap closes faster than the learners converge, c* < c†, and c† >= 1/2.
    """
    return cell.regime.gap >= 0.5 and cell.regime.own < cell.regime.gap


def ordered(cells: list[Cell]) -> list[Cell]:
    """Return cells in the order of Table 1.

    The column of ρ_ss, then those of ρ_abs, then the cells that the table does not cover.
    """

    def column(cell: Cell) -> tuple[bool, bool, bool]:
        return beyond(cell), cell.quantity == "absolute", cell.regime.own != 1

    return sorted(cells, key=column)


def verdict_text(analysis: BoundsAnalysis, name: str) -> str:
    """Return how many bounds hold, and which do not hold."""
    cells = [cell for cell in analysis.cells[name] if not beyond(cell)]
    above = [cell for cell in cells if cell.verdict == "above"]
    kept = f"{len(cells) - len(above)} of {len(cells)}"
    text = (
        f"{name}: over the last {FIT_EPOCHS} doublings of T, {kept} measured regrets keep to the"
        " bounds of Table 1."
    )
    for cell in above:
        text += f" Above its bound: {_describe(cell)}."
    return text


def _describe(cell: Cell) -> str:
    return (
        f"the {cell.quantity} regret with {gap_text(cell.regime)}, {own_text(cell.regime)} grows"
        f" with exponent {cell.fit}, the bound is {cell.printed}"
    )


def cell_rows(analysis: BoundsAnalysis) -> Rows:
    """Return Table 1 with the measured growth."""
    rows: Rows = []
    for name in analysis.esbas:
        for cell in ordered(analysis.cells[name]):
            verdict: str = cell.verdict
            if cell.printed != cell.proven:
                verdict += f" (Theorem 3, {cell.proven}: {cell.verdict_proven})"
            rows.append(
                [
                    gap_text(cell.regime),
                    own_text(cell.regime),
                    cell.quantity,
                    str(cell.printed or "no bound"),
                    name,
                    round(cell.fit.exponent, 4),
                    round(cell.fit.low, 4),
                    round(cell.fit.high, 4),
                    round(cell.worst, 4),
                    verdict,
                ]
            )
    return rows


def theorem_rows(analysis: BoundsAnalysis) -> Rows:
    """Return the inequalities of the theorems."""
    rows: Rows = []
    for name in analysis.esbas:
        for regime in analysis.fitted:
            found = analysis.theorems[regime.name, name]
            peak = int(found.kappa_3.argmax())
            rows.append(
                [
                    gap_text(regime),
                    own_text(regime),
                    name,
                    found.ratio_1,
                    float(found.ratio_2[-1]),
                    float(found.ratio_2.max()),
                    float(found.kappa_3[peak]),
                    int(found.times_3[peak]),
                ]
            )
    return rows


def rival_rows(analysis: BoundsAnalysis, quantity: str) -> Rows:
    """Return a regret at the horizon, by method and regime."""
    rows: Rows = []
    for name in analysis.methods:
        finals = [analysis.final(regime, name, quantity) for regime in analysis.compared]
        rows.append([name, *finals])
    return rows


def rival_growth_rows(analysis: BoundsAnalysis) -> Rows:
    """Return the exponents of the absolute regret, by method and regime."""
    rows: Rows = []
    for name in analysis.methods:
        exponents = [str(analysis.exponent(regime, name)) for regime in analysis.compared]
        rows.append([name, *exponents])
    return rows


def curve_rows(analysis: BoundsAnalysis) -> Rows:
    """Return the means that the figures show."""
    rows: Rows = []
    for (regime, name), runs in analysis.runs.items():
        short_sighted = runs.short_sighted.mean(axis=0)
        absolute = runs.absolute.mean(axis=0)
        for k, time in enumerate(runs.times):
            rows.append([regime, name, int(time), float(short_sighted[k]), float(absolute[k])])
    return rows


def summary(analysis: BoundsAnalysis) -> dict[str, Any]:
    """Return the numbers of the tables, by name."""
    rivals = {}
    for regime in analysis.compared:
        names = list(analysis.methods)
        rivals[regime.name] = {
            "best": analysis.leaders(regime),
            "absolute": {name: analysis.final(regime, name, "absolute") for name in names},
            "oracle": {name: analysis.final(regime, name, "oracle") for name in names},
            "relative": {name: analysis.relative(regime, name) for name in names},
            "exponent": {name: vars(analysis.exponent(regime, name)) for name in names},
        }
    return {
        "horizon": analysis.horizon,
        "verdicts": {name: verdict_text(analysis, name) for name in analysis.esbas},
        "cells": [dict(zip(CELL_HEADER, row, strict=True)) for row in cell_rows(analysis)],
        "theorems": [dict(zip(THEOREM_HEADER, row, strict=True)) for row in theorem_rows(analysis)],
        "rivals": rivals,
    }


def sections(analysis: BoundsAnalysis) -> list[Section]:
    """Return the sections of the report."""
    verdicts = "\n\n".join(verdict_text(analysis, name) for name in analysis.esbas)
    kappa = max(float(found.kappa_3.max()) for found in analysis.theorems.values())
    kappa_text = "the inequality holds without κ" if kappa <= 0 else "it is finite"
    ratio_2 = max(float(found.ratio_2.max()) for found in analysis.theorems.values())
    ratio_1 = max(found.ratio_1 for found in analysis.theorems.values())
    regimes = _regime_header(analysis)
    best = "\n\n".join(
        f"Best with {gap_text(regime)}: {', '.join(analysis.leaders(regime))}."
        for regime in analysis.compared
    )
    ours = analysis.methods[analysis.esbas[0]].runs
    theirs = min(method.runs for method in analysis.methods.values())
    return [
        Section(
            "What was measured",
            f"""There are two synthetic learners. The expected return of a policy is a given
            function of the number of trajectories that it was learnt from; returns are 0 or 1 with
            this expectation. Since expectations are known, only the choices make pseudo-regrets
            random. Means are over {ours:,} runs of ESBAS and {theirs:,} of each rival, up to T =
            {analysis.horizon:,}.

            {verdicts}""",
        ),
        Section(
            "Table 1",
            f"""The exponent is the slope of log(regret of an epoch / growth of the bound in that
            epoch) against log T over the last {FIT_EPOCHS} epochs, plus the exponent of the bound.
            A regret that grows like the bound, logarithms included, has the exponent of the bound.
            Intervals are 95 % bootstrap intervals over runs. "Below" means that the whole interval
            is below the exponent of the bound; "at", that the interval starts below it or at most
            {TOLERANCE} above it; "above", that the bound does not hold as measured. With a short
            horizon the reason may be that the regret of UCB1 approaches its asymptotic law from
            below, and so grows faster at first.

            Theorem 2 assumes a bandit with logarithmic regret. UCB1 guarantees it for ξ > 1/2, but
            not for the paper's ξ = 1/4: with a small ξ, some runs stay with the worse arm for a
            long time. The column "worst run / mean" shows this.

            Table 1 does not cover the last rows of each meta-algorithm: there the gap closes faster
            than the learners converge (c* < c†). The printed bound and the gray cell assume the
            opposite; Theorem 3 covers both cases.""",
            table=(CELL_HEADER, cell_rows(analysis)),
            figure="exponents",
            caption="Dots: measured, with 95 % intervals. Bars: exponents of the bounds.",
        ),
        Section(
            "Short-sighted regret",
            figure="short_sighted",
            caption=f"Mean with 95 % band{_CUT}; dashed: shape of the bound.",
        ),
        Section(
            "Absolute regret",
            figure="absolute",
            caption="Regimes in which the regret of the best learner alone is T^(1-c*).",
        ),
        Section(
            "Theorems 1-3",
            f"""Theorem 1: at any T, ρ_abs is at most {ratio_1:.2f} times that of the worst learner
            alone.

            Theorem 2: ρ_ss / Σ β/Δ_β† is at most {ratio_2:.2f} at the end of every epoch
            from the second on. Where UCB1 distinguishes the arms, it approaches ξ ln 2 for large
            T.

            Theorem 3: at T >= 9K² = 36 the largest κ that is needed is {kappa:.3f}: {kappa_text}.
            This is not random: learners that share all trajectories learn equally fast whichever
            arm is played, so ρ_abs - ρ_ss is the shortfall of the currently best arm.""",
            table=(THEOREM_HEADER, theorem_rows(analysis)),
            figure="theorem_3",
            caption="Below 1 Theorem 3 holds with any κ > 0.",
        ),
        Section(
            "Comparison of meta-algorithms",
            f"""Regret at T = {analysis.horizon:,} against an oracle that always plays the currently
            best arm, with learners that learn after every trajectory; it equals ρ_abs up to a
            constant. For ESBAS it includes the cost of learning only when an epoch starts. All
            other meta-algorithms choose among arms that learn all the time, with the parameters
            that their papers recommend for this horizon. In the crossing regime a slow learner
            overtakes a fast one.

            {best}""",
            table=(regimes, rival_rows(analysis, "oracle")),
            figure="best",
            caption="Colors: ratio to the smallest regret in the regime, on a logarithmic scale.",
        ),
        Section(
            "Comparison over time",
            figure="rivals",
            caption=f"Mean regret against the oracle with 95 % bands{_CUT}.",
        ),
        Section("Absolute pseudo-regret", table=(regimes, rival_rows(analysis, "absolute"))),
        Section(
            "Growth of the absolute pseudo-regret",
            """Exponents over the last doublings as pure powers of T, with 95 % intervals. The
            parameters of SW-UCB, D-UCB, Exp3, Exp3.S and Rexp3 depend on the horizon: within a run
            their regret may grow linearly, although it grows with the horizon as their bounds
            state.""",
            table=(regimes, rival_growth_rows(analysis)),
        ),
    ]
