"""Tables, figures and the report."""

from collections.abc import Collection

from esbas.experiments.control import statistics
from esbas.experiments.control.analysis import EFFECT, ControlAnalysis
from esbas.experiments.control.figures import aggregate_figure, cost_figure, curve_figure, passive_figure
from esbas.experiments.control.protocol import ABLATION, CONFIRMATORY, DEVELOPMENT
from esbas.experiments.control.scores import TaskScores
from esbas.experiments.control.statistics import Interval
from esbas.reporting import Results, Section, terminal

Rows = list[list[object]]
SCORE_HEADER = ["task", "kind", "counts", "method", "family", "score", "low", "high", "final", "final low", "final high"]
SCORE_HEADER += ["mean return", "environment steps", "seeds"]
TASK_HEADER = ["task", "counts", "random actions", "best member alone", "its return", "in its last fifth", "threshold"]
TASK_HEADER += ["above chance by", "adjusted p", f"seeds for {EFFECT}"]
AGGREGATE_HEADER = ["method", "score", "final score", "recommended is better: probability", "difference", "CPU time / chance"]
PARTIAL_HEADER = ["method", "tasks", "score", "recommended: score", "final score", "recommended: final score"]
_KINDS = {CONFIRMATORY: "Confirmatory tasks", DEVELOPMENT: "Development tasks", ABLATION: "Ablations"}


def publish(results: Results, analysis: ControlAnalysis) -> None:
    """Write tables, figures, summary and report, and print the main tables."""
    with terminal.status("computing intervals"):
        aggregate, tasks = aggregate_rows(analysis), task_rows(analysis)
        results.table("scores", SCORE_HEADER, score_rows(analysis))
        results.table("tasks", TASK_HEADER, tasks)
        results.table("aggregate", *_flat(AGGREGATE_HEADER, aggregate))
        results.table("partial", *_flat(PARTIAL_HEADER, partial_rows(analysis)))
        results.table("cost", *cost_table(analysis))
        results.table("members", *member_table(analysis))
        results.summary(analysis.summary())
    with terminal.status("drawing the figures"):
        figures = {"aggregate": aggregate_figure(analysis), "cost": cost_figure(analysis), "passive": passive_figure(analysis)}
        figures |= {f"curves-{kind}": curve_figure(analysis, kind) for kind in _KINDS}
        drawn = {name: figure for name, figure in figures.items() if figure is not None}
        for name, figure in drawn.items():
            results.figure(name, figure)
    results.report("Does selection pay?", _sections(analysis, aggregate, tasks, drawn))
    for kind, title in _KINDS.items():
        if analysis.of_kind(kind):
            terminal.print_table(title, *matrix(analysis, kind))
    terminal.print_text(*verdict_texts(analysis), f"Report: {results.folder / 'report.html'}")


def verdict_texts(analysis: ControlAnalysis) -> list[str]:
    """One line for each claim about the recommended selector; none without confirmatory tasks."""
    if not analysis.of_kind(CONFIRMATORY):
        return []
    words = {True: "holds", False: "does not hold", None: "open"}
    return [f"{analysis.recommended}, {each.claim}: {words[each.holds]} ({each.measured})." for each in analysis.verdicts()]


def score_rows(analysis: ControlAnalysis) -> Rows:
    """Every method on every task, at full precision."""
    rows: Rows = []
    for name, each in analysis.tasks.items():
        for method in (method for method in each.methods if each.has(method)):
            score, final = analysis.interval([each], method), analysis.interval([each], method, final=True)
            cells: list[object] = []
            for found in (score, final):
                cells += [None] * 3 if found is None else [found.value, found.low, found.high]
            mean = None if score is None else float(each.raw(method).mean())
            start = [name, each.task.kind, each.counts, method, each.methods[method].family]
            rows.append([*start, *cells, mean, each.steps(method), analysis.seeds[name]])
    return rows


def task_rows(analysis: ControlAnalysis) -> Rows:
    """What the scale of each task is, whether it counts, and the comparison with chance."""
    rows: Rows = []
    for name, each in analysis.tasks.items():
        difference, p = analysis.against_chance.get(name, (None, None))
        level: list[object] = [each.random, each.reference.partition(":")[2], each.level, each.reached, each.task.threshold]
        rows.append([name, "yes" if each.counts else "no", *level, difference, p, analysis.seeds_needed(each)])
    return rows


def aggregate_rows(analysis: ControlAnalysis) -> Rows:
    """Every method over the confirmatory tasks that count, the best first."""
    found: list[tuple[float, list[object]]] = []
    for name in analysis.methods_on(analysis.counted):
        score, final = (analysis.interval(analysis.counted, name, final=final) for final in (False, True))
        if score is None and final is None:
            continue
        comparisons: list[object] = [None, None]
        if name != analysis.recommended:
            kinds = statistics.improvement_interval, statistics.difference_interval
            comparisons = [analysis.compared(kind, name) for kind in kinds]
        row = [name, score, final, *comparisons, analysis.relative_cost(name)]
        found.append((float("-inf") if score is None else score.value, row))
    return [row for _, row in sorted(found, key=lambda pair: -pair[0])]


def partial_rows(analysis: ControlAnalysis) -> Rows:
    """The methods that exist on some tasks only, beside the recommended selector on the same tasks."""
    rows: Rows = []
    for name, tasks in analysis.partial.items():
        pairs = [analysis.interval(tasks, each, final=final) for final in (False, True) for each in (name, analysis.recommended)]
        rows.append([name, ", ".join(each.task.name for each in tasks), *pairs])
    return rows


def _flat(header: list[str], rows: Rows) -> tuple[list[str], Rows]:
    """The same table with three columns for each column of intervals."""
    wide = [any(isinstance(row[place], Interval) for row in rows) for place in range(len(header))]
    ends = ("", ": low", ": high")
    names = [name + end for name, three in zip(header, wide, strict=True) for end in (ends if three else ends[:1])]
    flat: Rows = []
    for row in rows:
        cells: list[object] = []
        for cell, three in zip(row, wide, strict=True):
            cells += [cell.value, cell.low, cell.high] if isinstance(cell, Interval) else [cell, *[None] * (2 * three)]
        flat.append(cells)
    return names, flat


def matrix(analysis: ControlAnalysis, kind: str) -> tuple[list[str], Rows]:
    """Scores by method and task."""
    tasks = analysis.of_kind(kind)
    rows: Rows = []
    for method in analysis.methods_on(tasks):
        scores = [analysis.interval([each], method) if each.has(method) else None for each in tasks]
        if any(score is not None for score in scores):
            rows.append([method, *scores])
    return ["method", *(each.task.name + ("" if each.counts else " (does not count)") for each in tasks)], rows


def member_table(analysis: ControlAnalysis) -> tuple[list[str], Rows]:
    """Each member alone, and how much control selectors gave it; where all members are evaluated, their greedy scores."""
    header = ["task", "member", "alone", "method", "share of control", "greedy score at the end"]
    rows: Rows = []
    for name, each in analysis.tasks.items():
        for method, spec in each.methods.items():
            if len(spec.recipe.names) < 2 or not each.runs(method):
                continue
            shares, greedy = each.shares(method), each.greedy(method)
            for k, member in enumerate(spec.recipe.names):
                alone = analysis.interval([each], f"alone:{member}") if each.has(f"alone:{member}") else None
                rows.append([name, member, None if alone is None else alone.value, method, float(shares[k]), float(greedy[k])])
    return header, rows


def cost_table(analysis: ControlAnalysis) -> tuple[list[str], Rows]:
    """CPU seconds of a run, by task and method. These differ from run to run; nothing else does."""
    rows: Rows = []
    for name, each in analysis.tasks.items():
        for method in each.methods:
            if each.runs(method):
                seconds = each.seconds(method)
                rows.append([name, method, seconds, 1e6 * seconds / each.steps(method)])
    return ["task", "method", "CPU seconds", "microseconds per step"], rows


def _seeds(analysis: ControlAnalysis) -> str:
    fewest, most = min(analysis.seeds.values()), max(analysis.seeds.values())
    return str(fewest) if fewest == most else f"{fewest} to {most}"


def _sections(analysis: ControlAnalysis, aggregate: Rows, tasks: Rows, drawn: Collection[str]) -> list[Section]:
    counted = f"{len(analysis.counted)} of {len(analysis.of_kind(CONFIRMATORY))}"
    sections = [
        Section(
            "Verdicts",
            "\n\n".join(verdict_texts(analysis))
            + f"""\n\nScores: the budget is cut into {analysis.protocol.bins} equal parts; the mean returns of the episodes that
            start in each part are averaged and put on a scale with 0 for random actions and 1 for the best member alone.
            Numbers are interquartile means over {_seeds(analysis)} seeds with 95 % intervals of the stratified bootstrap. They
            do not include the uncertainty of the scale. {counted} confirmatory tasks count: on these the best member alone passes
            its threshold.""",
        )
    ]
    if aggregate:
        figure = "aggregate" if "aggregate" in drawn else None
        caption = "Interquartile means over tasks and seeds, with 95 % intervals." if figure else ""
        text = "Over the confirmatory tasks that count. Ensembles are the members that chance has trained, evaluated together."
        sections.append(Section("All tasks together", text, table=(AGGREGATE_HEADER, aggregate), figure=figure, caption=caption))
    if analysis.partial:
        text = "Methods that do not exist on all of these tasks, beside the recommended selector on the same tasks."
        sections.append(Section("On some of these tasks", text, table=(PARTIAL_HEADER, partial_rows(analysis))))
    if "cost" in drawn:
        text = "CPU time of training, relative to chance, which trains all members: the geometric mean over tasks."
        sections.append(Section("Score and CPU time", text, figure="cost", caption="95 % intervals of the score."))
    sections.append(Section("Scales", "Returns of random actions and of the best member alone.", table=(TASK_HEADER, tasks)))
    for kind, title in _KINDS.items():
        own: list[TaskScores] = analysis.of_kind(kind)
        if own:
            about = "\n\n".join(f"{each.task.name}: {each.task.about}" for each in own if each.task.about)
            name = f"curves-{kind}"
            caption = "Interquartile means of the returns over seeds." if name in drawn else ""
            figure = name if name in drawn else None
            sections.append(Section(title, about, table=matrix(analysis, kind), figure=figure, caption=caption))
    figure = "passive" if "passive" in drawn else None
    caption = "One dot for each method; members without control learn from the episodes of others." if figure else ""
    text = "Shares of control in environment steps."
    sections.append(Section("Members", text, table=member_table(analysis), figure=figure, caption=caption))
    return sections
