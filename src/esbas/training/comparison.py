"""What a comparison of trainings tells: a table, learning curves, a page."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.objective import Objective
from esbas.reporting import Results, Section, estimates, figures
from esbas.reporting.terminal import print_table, print_text
from esbas.training import curves
from esbas.training.account import Account
from esbas.training.folder import Opened
from esbas.training.log import Episodes
from esbas.training.single import is_finished, read_clock, run_folder


class Training:
    """One of those that are compared."""

    def __init__(self, opened: Opened, *, name: str) -> None:
        self.name, self.plan, self.folder, self.account = name, opened.plan, opened.folder, Account(opened)
        self.runs = list(self.account.runs.values())
        if not self.runs:
            told = f"a training must have played an episode to be compared, but {str(opened.folder)!r} has none"
            raise SaveFileError(f"{told}: wait for the first one, or `esbas resume {opened.folder}`")
        self.seeds = len(opened.seeds)
        homes = [run_folder(opened.folder, seed) for seed in opened.seeds]
        clocks = [clock for clock in map(read_clock, homes) if clock.get("seconds")]
        self.speed = float(np.mean([clock["steps"] / clock["seconds"] for clock in clocks])) if clocks else math.nan
        self.steps = float(np.mean([run.steps[-1] for run in self.runs]))
        finished = all(is_finished(opened.folder, seed) for seed in opened.seeds)
        self.state = "finished" if finished else f"{sum(map(self._progress, self.runs)) / self.seeds:.0%} done"

    def _progress(self, run: Episodes) -> float:
        part = run.steps[-1] / self.plan.steps if self.plan.steps else len(run) / (self.plan.episodes or 1)
        return min(1.0, float(part))

    def curve(self) -> tuple[Array, Array]:
        """Steps, (X,), and the mean of the last episodes in each run, (R, X), as soon as all have enough of them."""
        at = curves.grid(self.runs)
        return at, np.array([curves.values(run, at) for run in self.runs])

    def reached(self, threshold: float, objective: Objective) -> tuple[float, int]:
        """The median over runs of the steps until the mean reached it, infinite if most never did, and how many runs did."""
        found = []
        for run in self.runs:
            steps = run.steps[curves.enough(run) - 1 :]
            there = objective.score(1) * (curves.values(run, steps) - threshold) >= 0
            found.append(float(steps[there.argmax()]) if there.any() else math.inf)
        return float(np.median(found)), int(np.isfinite(found).sum())


def usual_threshold(trainings: Sequence[Training], objective: Objective) -> float:
    """90 % of the way from the worst to the best point of all curves."""
    means = np.concatenate([training.curve()[1].mean(axis=0) for training in trainings])
    worst, best = sorted((float(means.min()), float(means.max())), key=objective.score)
    return worst + 0.9 * (best - worst)


def publish(results: Results, trainings: Sequence[Training], objective: Objective, threshold: float) -> None:
    """Write the table, the figure, the summary and the page, and print the table."""
    lines = [_line(training, objective, threshold) for training in trainings]
    results.table("trainings", list(lines[0]), [list(line.values()) for line in lines])
    results.summary({"task": trainings[0].plan.env_id, "objective": objective.name, "threshold": threshold, "trainings": lines})
    results.figure("curves", draw(trainings, objective, threshold))
    header, rows = _readable(trainings, objective, threshold)
    title = f"Trainings on {trainings[0].plan.env_id}"
    notes = _notes(trainings, objective, threshold)
    over = "mean over runs with its 95 % band (none for one run), to the end of the shortest run"
    made = [(each.name, f"`{_command(each.folder)}`", ", ".join(each.account.names)) for each in trainings]
    sections = [
        Section("What came of them", "\n\n".join(notes), table=(header, rows)),
        Section("How they went", figure="curves", caption=f"Mean of the last {curves.WINDOW} episodes: {over}."),
        Section("How they were made", table=(("training", "command", "learners"), made)),
    ]
    results.report(title, sections)
    print_table(title, header, rows)
    print_text(*notes, f"Report: {results.folder / 'report.html'}")


def _line(training: Training, objective: Objective, threshold: float) -> dict[str, object]:
    """A training in full digits."""
    steps, runs = training.reached(threshold, objective)
    end, whole, plan = training.account.end, training.account.whole, training.plan
    told: dict[str, object] = {
        "training": training.name,
        "task": plan.env_id,
        "wrappers": " ".join(plan.wrappers),
        "selector": plan.selector,
    }
    numbers = {"learners": len(training.account.names), "runs": len(training.runs), "runs_planned": training.seeds}
    values = {"end": end.mean, "end_ci95": end.ci95, "whole": whole.mean, "whole_ci95": whole.ci95}
    speed = {"steps_to_threshold": steps, "runs_reaching_it": runs, "steps_per_second": training.speed}
    return told | numbers | {"steps": training.steps} | values | speed | {"state": training.state}


def _readable(trainings: Sequence[Training], objective: Objective, threshold: float) -> tuple[list[str], list[list[object]]]:
    unit = objective.name
    header = [
        "training",
        "selector",
        "learners",
        "runs",
        "steps",
        f"{unit}, last {curves.WINDOW} episodes",
        f"{unit}, all episodes",
    ]
    rows: list[list[object]] = []
    for each in trainings:
        row: list[object] = [each.name, each.plan.selector, len(each.account.names), len(each.runs), f"{each.steps:,.0f}"]
        row += [str(each.account.end), str(each.account.whole)]
        steps, runs = each.reached(threshold, objective)
        some = "" if runs == len(each.runs) else f" ({runs} of {len(each.runs)} runs)"
        row.append((f"{steps:,.0f}" if math.isfinite(steps) else "–") + some)
        rows.append([*row, f"{each.speed:,.0f}" if math.isfinite(each.speed) else "–", each.state])
    return [*header, f"steps to {threshold:.4g}", "steps/s", "state"], rows


def _notes(trainings: Sequence[Training], objective: Objective, threshold: float) -> list[str]:
    better = "More is better." if objective.maximize else "Less is better."
    notes = [
        f"An episode is worth its {objective.name}. {better} Means and 95 % intervals are over runs (for one there is none).",
        f"Steps to {threshold:.4g}: until the mean of the last {curves.WINDOW} episodes was there; the median over runs.",
    ]
    if any(curves.enough(run) < curves.WINDOW for each in trainings for run in each.runs):
        notes.append("Of a short run, means count from the middle on, over the episodes that there are by then.")
    if any(each.state != "finished" for each in trainings):
        notes.append("Trainings that are not finished are shown as far as they are.")
    if len({each.plan.wrappers for each in trainings}) > 1:
        notes.append(
            "The tasks have different wrappers: values compare only if none of them changes rewards or the ends of episodes."
        )
    return notes


def draw(trainings: Sequence[Training], objective: Objective, threshold: float) -> Figure:
    """The learning curves."""
    figure, axes = figures.new_figure(width=9.0)
    for k, training in enumerate(trainings):
        at, values = training.curve()
        mean, half = estimates(values)
        runs = len(training.runs)
        told = f"{training.name} ({runs} {'run' if runs == 1 else 'runs'})"
        colour, style = figures.COLOURS[k % len(figures.COLOURS)], ("-", "--", ":")[k // len(figures.COLOURS) % 3]
        figures.curve_with_band(axes, at, mean, half, told, colour=colour, style=style)
    axes.axhline(threshold, color=figures.QUIET, linestyle=":", linewidth=1.2, label=f"threshold {threshold:.4g}")
    value = f"mean of {curves.WINDOW} episodes\n[{objective.name}]"
    figures.label(axes, x="environment steps", y=value, title=f"{trainings[0].plan.env_id}: learning curves")
    axes.set_xlim(left=0)
    figures.legend(axes)
    return figure


def _command(folder: Path) -> str:
    return str(json.loads((folder / "config.json").read_text("utf-8"))["again"])
