"""Tables, figures and the report."""

import math
from collections.abc import Collection

from esbas.experiments.control import statistics
from esbas.experiments.control.analysis import EFFECT, ControlAnalysis
from esbas.experiments.control.figures import (
    aggregate_figure,
    cost_figure,
    curve_figure,
    passive_figure,
)
from esbas.experiments.control.protocol import ABLATION, CONFIRMATORY, DEVELOPMENT
from esbas.experiments.control.scores import TaskScores
from esbas.experiments.control.setup import ALONE
from esbas.experiments.control.statistics import Interval
from esbas.reporting import Results, Section, terminal

Rows = list[list[object]]
SCORE_HEADER = [
    "task",
    "kind",
    "counts",
    "method",
    "family",
    "score",
    "low",
    "high",
    "final",
    "final low",
    "final high",
    "mean return",
    "environment steps",
    "seeds",
]
TASK_HEADER = [
    "task",
    "counts",
    "random actions",
    "best learner alone",
    "its return",
    "in its last fifth",
    "threshold",
    "above chance by",
    "adjusted p",
    f"seeds for {EFFECT}",
]
AGGREGATE_HEADER = [
    "method",
    "score",
    "final score",
    "recommended is better: probability",
    "difference",
    "CPU time / chance",
]
PARTIAL_HEADER = [
    "method",
    "tasks",
    "score",
    "recommended: score",
    "final score",
    "recommended: final score",
]
_KINDS = {
    CONFIRMATORY: "Confirmatory tasks",
    DEVELOPMENT: "Development tasks",
    ABLATION: "Ablations",
}


def publish(results: Results, analysis: ControlAnalysis) -> None:
    """Write tables, figures, summary and report, and print the main tables."""
    with terminal.status("computing intervals"):
        aggregate = aggregate_rows(analysis)
        tasks = task_rows(analysis)
        results.table("scores", SCORE_HEADER, score_rows(analysis))
        results.table("tasks", TASK_HEADER, tasks)
        results.table("aggregate", *_flat(AGGREGATE_HEADER, aggregate))
        results.table("partial", *_flat(PARTIAL_HEADER, partial_rows(analysis)))
        results.table("cost", *cost_table(analysis))
        results.table("learners", *learner_table(analysis))
        results.summary(analysis.summary())
    with terminal.status("drawing the figures"):
        figures = {
            "aggregate": aggregate_figure(analysis),
            "cost": cost_figure(analysis),
            "passive": passive_figure(analysis),
        }
        for kind in _KINDS:
            figures[f"curves-{kind}"] = curve_figure(analysis, kind)
        drawn = {name: figure for name, figure in figures.items() if figure is not None}
        for name, figure in drawn.items():
            results.figure(name, figure)
    results.report("Does selection pay?", _sections(analysis, aggregate, tasks, drawn))
    for kind, title in _KINDS.items():
        if analysis.of_kind(kind):
            terminal.print_table(title, *matrix(analysis, kind))
    terminal.print_text(*verdict_texts(analysis), f"Report: {results.folder / 'report.html'}")


def verdict_texts(analysis: ControlAnalysis) -> list[str]:
    """Return one line for each claim about the recommended selector.

    There are none without confirmatory tasks.
    """
    if not analysis.of_kind(CONFIRMATORY):
        return []
    words = {True: "holds", False: "does not hold", None: "open"}
    lines = []
    for each in analysis.verdicts():
        word = words[each.holds]
        lines.append(f"{analysis.recommended}, {each.claim}: {word} ({each.measured}).")
    return lines


def score_rows(analysis: ControlAnalysis) -> Rows:
    """Return every method on every task, at full precision."""
    rows: Rows = []
    for name, each in analysis.tasks.items():
        for method, spec in each.methods.items():
            if not each.has(method):
                continue
            score = analysis.interval([each], method)
            final = analysis.interval([each], method, final=True)
            rows.append(
                [
                    name,
                    each.task.kind,
                    each.counts,
                    method,
                    spec.family,
                    *_three(score),
                    *_three(final),
                    None if score is None else float(each.raw(method).mean()),
                    each.steps(method),
                    analysis.seeds[name],
                ]
            )
    return rows


def task_rows(analysis: ControlAnalysis) -> Rows:
    """Return the scale of each task, whether it counts, and the comparison with chance."""
    rows: Rows = []
    for name, each in analysis.tasks.items():
        difference, p = analysis.against_chance.get(name, (None, None))
        rows.append(
            [
                name,
                "yes" if each.counts else "no",
                each.random,
                each.reference.partition(":")[2],
                each.level,
                each.reached,
                each.task.threshold,
                difference,
                p,
                analysis.seeds_needed(each),
            ]
        )
    return rows


def aggregate_rows(analysis: ControlAnalysis) -> Rows:
    """Return every method over the confirmatory tasks that count, the best first."""
    rows: Rows = []
    for name in analysis.methods_on(analysis.counted):
        score = analysis.interval(analysis.counted, name)
        final = analysis.interval(analysis.counted, name, final=True)
        if score is None and final is None:
            continue
        better = None
        difference = None
        if name != analysis.recommended:
            better = analysis.compared(statistics.improvement_interval, name)
            difference = analysis.compared(statistics.difference_interval, name)
        rows.append([name, score, final, better, difference, analysis.relative_cost(name)])

    def value(row: list[object]) -> float:
        score = row[1]
        return score.value if isinstance(score, Interval) else -math.inf

    return sorted(rows, key=value, reverse=True)


def partial_rows(analysis: ControlAnalysis) -> Rows:
    """Return the methods that exist on some tasks only.

    The recommended selector on the same tasks is beside them.
    """
    rows: Rows = []
    for name, tasks in analysis.partial.items():
        rows.append(
            [
                name,
                ", ".join(each.task.name for each in tasks),
                analysis.interval(tasks, name),
                analysis.interval(tasks, analysis.recommended),
                analysis.interval(tasks, name, final=True),
                analysis.interval(tasks, analysis.recommended, final=True),
            ]
        )
    return rows


def _flat(header: list[str], rows: Rows) -> tuple[list[str], Rows]:
    """Return the same table with three columns for each column of intervals."""
    names: list[str] = []
    flat: Rows = [[] for _ in rows]
    for column, name in enumerate(header):
        cells = [row[column] for row in rows]
        wide = any(isinstance(cell, Interval) for cell in cells)
        names += [name, f"{name}: low", f"{name}: high"] if wide else [name]
        for row, cell in zip(flat, cells, strict=True):
            if isinstance(cell, Interval):
                row += _three(cell)
            elif wide:
                row += [cell, None, None]
            else:
                row.append(cell)
    return names, flat


def _three(interval: Interval | None) -> list[object]:
    if interval is None:
        return [None, None, None]
    return [interval.value, interval.low, interval.high]


def matrix(analysis: ControlAnalysis, kind: str) -> tuple[list[str], Rows]:
    """Return scores by method and task."""
    tasks = analysis.of_kind(kind)
    header = ["method", *(_task_title(each) for each in tasks)]
    rows: Rows = []
    for method in analysis.methods_on(tasks):
        scores = [analysis.interval([each], method) for each in tasks]
        if any(score is not None for score in scores):
            rows.append([method, *scores])
    return header, rows


def _task_title(each: TaskScores) -> str:
    return each.task.name if each.counts else f"{each.task.name} (does not count)"


def learner_table(analysis: ControlAnalysis) -> tuple[list[str], Rows]:
    """Return each learner alone, and how much control selectors gave it.

    Where all learners are evaluated, the table has their greedy scores.
    """
    header = ["task", "learner", "alone", "method", "share of control", "greedy score at the end"]
    rows: Rows = []
    for name, each in analysis.tasks.items():
        for method, spec in each.methods.items():
            learners = spec.recipe.names
            if len(learners) < 2 or not each.runs(method):
                continue
            shares = each.shares(method)
            greedy = each.greedy(method)
            for k, learner in enumerate(learners):
                alone = analysis.interval([each], f"{ALONE}:{learner}")
                score = None if alone is None else alone.value
                rows.append([name, learner, score, method, float(shares[k]), float(greedy[k])])
    return header, rows


def cost_table(analysis: ControlAnalysis) -> tuple[list[str], Rows]:
    """Return CPU seconds of a run, by task and method.

    These differ from run to run; nothing else does.
    """
    header = ["task", "method", "CPU seconds", "microseconds per step"]
    rows: Rows = []
    for name, each in analysis.tasks.items():
        for method in each.methods:
            if each.runs(method):
                seconds = each.seconds(method)
                rows.append([name, method, seconds, 1e6 * seconds / each.steps(method)])
    return header, rows


def _sections(
    analysis: ControlAnalysis, aggregate: Rows, tasks: Rows, drawn: Collection[str]
) -> list[Section]:
    sections = [_verdict_section(analysis)]
    if aggregate:
        sections.append(
            _section(
                "All tasks together",
                "Over the confirmatory tasks that count. Ensembles are the learners that chance has"
                " trained, evaluated together.",
                drawn,
                table=(AGGREGATE_HEADER, aggregate),
                figure="aggregate",
                caption="Interquartile means over tasks and seeds, with 95 % intervals.",
            )
        )
    if analysis.partial:
        sections.append(
            Section(
                "On some of these tasks",
                "Methods that do not exist on all of these tasks, beside the recommended selector"
                " on the same tasks.",
                table=(PARTIAL_HEADER, partial_rows(analysis)),
            )
        )
    if "cost" in drawn:
        sections.append(
            Section(
                "Score and CPU time",
                "CPU time of training, relative to chance, which trains all learners: the geometric"
                " mean over tasks.",
                figure="cost",
                caption="95 % intervals of the score.",
            )
        )
    sections.append(
        Section(
            "Scales",
            "Returns of random actions and of the best learner alone.",
            table=(TASK_HEADER, tasks),
        )
    )
    for kind, title in _KINDS.items():
        own = analysis.of_kind(kind)
        if own:
            sections.append(
                _section(
                    title,
                    _questions(own),
                    drawn,
                    table=matrix(analysis, kind),
                    figure=f"curves-{kind}",
                    caption="Interquartile means of the returns over seeds.",
                )
            )
    sections.append(
        _section(
            "Learners",
            "Shares of control in environment steps.",
            drawn,
            table=learner_table(analysis),
            figure="passive",
            caption="One dot for each method; learners without control learn from the episodes of"
            " others.",
        )
    )
    return sections


def _section(
    title: str,
    text: str,
    drawn: Collection[str],
    *,
    table: tuple[list[str], Rows],
    figure: str,
    caption: str,
) -> Section:
    """Return a section whose figure and caption are left out if the figure was not drawn."""
    if figure not in drawn:
        return Section(title, text, table=table)
    return Section(title, text, table=table, figure=figure, caption=caption)


def _verdict_section(analysis: ControlAnalysis) -> Section:
    counted = f"{len(analysis.counted)} of {len(analysis.of_kind(CONFIRMATORY))}"
    verdicts = "\n\n".join(verdict_texts(analysis))
    scores = f"""Scores: the budget is cut into {analysis.protocol.bins} equal parts; the mean
            returns of the episodes that start in each part are averaged and put on a scale with 0
            for random actions and 1 for the best learner alone. Numbers are interquartile means
            over {_seeds(analysis)} seeds with 95 % intervals of the stratified bootstrap. They do
            not include the uncertainty of the scale. {counted} confirmatory tasks count: on these
            the best learner alone passes its threshold."""
    return Section("Verdicts", f"{verdicts}\n\n{scores}")


def _seeds(analysis: ControlAnalysis) -> str:
    fewest = min(analysis.seeds.values())
    most = max(analysis.seeds.values())
    return str(fewest) if fewest == most else f"{fewest} to {most}"


def _questions(tasks: list[TaskScores]) -> str:
    """Return what the tasks ask: ablations ask one question each."""
    asked = [f"{each.task.name}: {each.task.about}" for each in tasks if each.task.about]
    return "\n\n".join(asked)
