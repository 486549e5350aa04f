"""The report of a comparison of trainings: a table, learning curves, a page."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.objective import Objective
from esbas.reporting import Results, Section, estimates, figures
from esbas.reporting.colours import COLOURS, QUIET
from esbas.reporting.results import read_config
from esbas.reporting.terminal import print_table, print_text
from esbas.training.folder import TrainingFolder
from esbas.training.reports import curves
from esbas.training.reports.training_report import TrainingSummary
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes
from esbas.training.runs.one_run import is_finished, run_folder


class ComparedTraining:
    """A training and the numbers that are compared."""

    def __init__(self, training: TrainingFolder, *, name: str) -> None:
        self.name, self.plan, self.folder, self.summary = name, training.plan, training.folder, TrainingSummary(training)
        self.runs = list(self.summary.runs.values())
        if not self.runs:
            message = f"a compared training must have an episode, but {str(training.folder)!r} has none"
            raise SaveFileError(f"{message}: wait for the first one, or `esbas resume {training.folder}`")
        self.seeds = len(training.seeds)
        directories = [run_folder(training.folder, seed) for seed in training.seeds]
        clocks = [clock for clock in map(read_clock, directories) if clock is not None and clock.seconds]
        self.speed = float(np.mean([clock.steps / clock.seconds for clock in clocks])) if clocks else math.nan
        self.steps = float(np.mean([run.steps[-1] for run in self.runs]))
        finished = all(is_finished(training.folder, seed) for seed in training.seeds)
        self.state = "finished" if finished else f"{sum(map(self._progress, self.runs)) / self.seeds:.0%} done"

    def _progress(self, run: Episodes) -> float:
        part = run.steps[-1] / self.plan.steps if self.plan.steps else len(run) / (self.plan.episodes or 1)
        return min(1.0, float(part))

    def curve(self, *, settled: bool = False) -> tuple[Array, Array]:
        """Steps, (X,), and the mean of the last episodes in each run, (R, X); see `curves.grid`."""
        at = curves.grid(self.runs, settled=settled)
        return at, np.array([curves.values(run, at) for run in self.runs])

    def reached(self, threshold: float, objective: Objective) -> tuple[float, int]:
        """The median number of steps until a run reached the threshold (infinite if most did not), and how many runs did."""
        found = []
        for run in self.runs:
            steps = run.steps[curves.enough(run) - 1 :]
            there = objective.score(1) * (curves.values(run, steps) - threshold) >= 0
            found.append(float(steps[there.argmax()]) if there.any() else math.inf)
        return float(np.median(found)), int(np.isfinite(found).sum())


def default_threshold(trainings: Sequence[ComparedTraining], objective: Objective) -> float:
    """90 % of the way from the worst point of all curves to the best, where means are of enough episodes."""
    means = np.concatenate([training.curve(settled=True)[1].mean(axis=0) for training in trainings])
    worst, best = sorted((float(means.min()), float(means.max())), key=objective.score)
    return worst + 0.9 * (best - worst)


def publish(results: Results, trainings: Sequence[ComparedTraining], objective: Objective, threshold: float) -> None:
    """Write the table, the figure, the summary and the page, and print the table."""
    lines = [_line(training, objective, threshold) for training in trainings]
    results.table("trainings", list(lines[0]), [list(line.values()) for line in lines])
    results.summary({"task": trainings[0].plan.env_id, "objective": objective.name, "threshold": threshold, "trainings": lines})
    results.figure("curves", draw(trainings, objective, threshold))
    header, rows = _readable(trainings, objective, threshold)
    title = f"Trainings on {trainings[0].plan.env_id}"
    notes = _notes(trainings, objective, threshold)
    runs = [run for each in trainings for run in each.runs]
    over = "mean over runs with its 95 % band (none for one run), to the end of the shortest run"
    caption = (
        f"Mean of the {curves.moving_text(runs)}: {over}. Bands are cut off at the smallest and the largest value of an episode."
    )
    made = [(each.name, f"`{_command(each.folder)}`", ", ".join(each.summary.names)) for each in trainings]
    sections = [
        Section("Results", "\n\n".join(notes), table=(header, rows), figure="curves", caption=caption),
        Section("Commands", table=(("training", "command", "learners"), made)),
    ]
    results.report(title, sections)
    print_table(title, header, rows)
    print_text(*notes, f"Report: {results.folder / 'report.html'}")


def _line(training: ComparedTraining, objective: Objective, threshold: float) -> dict[str, object]:
    """All numbers of a training, unrounded."""
    steps, runs = training.reached(threshold, objective)
    end, whole, plan = training.summary.end, training.summary.whole, training.plan
    about: dict[str, object] = {
        "training": training.name,
        "task": plan.env_id,
        "wrappers": " ".join(plan.wrappers),
        "selector": plan.selector,
    }
    numbers = {"learners": len(training.summary.names), "runs": len(training.runs), "runs_planned": training.seeds}
    values = {"end": end.mean, "end_ci95": end.ci95, "whole": whole.mean, "whole_ci95": whole.ci95}
    speed = {"steps_to_threshold": steps, "runs_reaching_it": runs, "steps_per_second": training.speed}
    return about | numbers | {"steps": training.steps} | values | speed | {"state": training.state}


def _readable(
    trainings: Sequence[ComparedTraining], objective: Objective, threshold: float
) -> tuple[list[str], list[list[object]]]:
    unit, some = objective.name, curves.window_text([run for each in trainings for run in each.runs])
    header = [
        "training",
        "selector",
        "learners",
        "runs",
        "steps",
        f"{unit}, {some.removeprefix('the ')}",
        f"{unit}, all episodes",
    ]
    rows: list[list[object]] = []
    for each in trainings:
        steps, runs = each.reached(threshold, objective)
        reached = f"{steps:,.0f}" if math.isfinite(steps) else "–"
        reached += "" if runs == len(each.runs) else f" ({runs} of {len(each.runs)} runs)"
        about = [each.name, each.plan.selector, len(each.summary.names), len(each.runs), round(each.steps)]
        speed = round(each.speed) if math.isfinite(each.speed) else None
        rows.append([*about, each.summary.end, each.summary.whole, reached, speed, each.state])
    return [*header, f"steps to {threshold:.4g}", "steps/s", "state"], rows


def _notes(trainings: Sequence[ComparedTraining], objective: Objective, threshold: float) -> list[str]:
    runs = [run for each in trainings for run in each.runs]
    better = "Larger is better." if objective.maximize else "Smaller is better."
    notes = [
        f"The value of an episode is its {objective.name}. {better} Means and 95 % intervals are over runs.",
        f"Steps to {threshold:.4g}: until the mean of the {curves.moving_text(runs)} reached it; median over runs.",
    ]
    if any(curves.enough(run) < curves.WINDOW for run in runs):
        notes.append("In a short run, a threshold can be reached from its middle on, by the mean of all episodes so far.")
    if any(each.state != "finished" for each in trainings):
        notes.append("Unfinished trainings are shown up to their last episode.")
    if len({each.plan.wrappers for each in trainings}) > 1:
        notes.append(
            "The tasks have different wrappers: values are comparable only if no wrapper changes rewards or the ends of episodes."
        )
    return notes


def draw(trainings: Sequence[ComparedTraining], objective: Objective, threshold: float) -> Figure:
    """Draw the learning curves."""
    figure, axes = figures.new_figure(width=9.0)
    within = figures.observed(np.concatenate([run.values for each in trainings for run in each.runs]))
    for k, training in enumerate(trainings):
        at, values = training.curve()
        mean, half = estimates(values)
        runs = len(training.runs)
        title = f"{training.name} ({runs} {'run' if runs == 1 else 'runs'})"
        colour, style = COLOURS[k % len(COLOURS)], ("-", "--", ":")[k // len(COLOURS) % 3]
        figures.curve_with_band(axes, at, mean, half, title, within=within, colour=colour, style=style)
    axes.axhline(threshold, color=QUIET, linestyle=":", linewidth=1.2, label=f"threshold {threshold:.4g}")
    value = f"mean of the {curves.moving_text([run for each in trainings for run in each.runs])}\n[{objective.name}]"
    figures.label(axes, x="environment steps", y=value, title=f"{trainings[0].plan.env_id}: learning curves")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    figures.legend(axes)
    return figure


def _command(folder: Path) -> str:
    return str(read_config(folder)["again"])
