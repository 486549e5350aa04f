"""The report of a comparison of trainings: a table, learning curves and a page."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from esbas._internal.columns import Array
from esbas.errors import SaveFileError, counted
from esbas.objective import Objective
from esbas.reporting import ReportFolder, Section, estimates, figures
from esbas.reporting.colors import COLORS, QUIET
from esbas.specs.sources import label_of
from esbas.training import recent
from esbas.training.folder import TrainingFolder, read_about
from esbas.training.reports import curves
from esbas.training.reports.training_report import TrainingSummary
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.resuming import how_to_resume


class ComparedTraining:
    """A training and the numbers that are compared."""

    def __init__(self, training: TrainingFolder, *, name: str) -> None:
        self.name = name
        self.plan = training.plan
        self.folder = training.folder
        self.summary = TrainingSummary(training)
        self.runs = list(self.summary.runs.values())
        if not self.runs:
            message = f"The training in {str(training.folder)!r} has no episode yet"
            remedy = f"wait for the first one, or {how_to_resume(training.plan, training.folder)}"
            raise SaveFileError(f"{message}: {remedy}.")
        self.seeds = len(training.seeds)
        self.speed = _speed(training)
        self.steps = float(np.mean([run.steps[-1] for run in self.runs]))
        if training.finished:
            self.state = "finished"
        else:
            done = sum(self._progress(run) for run in self.runs) / self.seeds
            self.state = f"{done:.0%} done"

    def _progress(self, run: Episodes) -> float:
        config = self.plan.config
        if config.steps:
            return min(1.0, float(run.steps[-1] / config.steps))
        return min(1.0, len(run) / (config.episodes or 1))

    def curve(self, *, least: int = recent.LEAST) -> tuple[Array, Array]:
        """Return steps, (X,), and the mean of the recent episodes in each run, (R, X).

        `curves.grid` describes the steps, which begin with `least` episodes.
        """
        at = curves.grid(self.runs, least=least)
        return at, np.array([curves.values(run, at) for run in self.runs])

    def reached(self, threshold: float, objective: Objective) -> tuple[float, int]:
        """Return when runs reached the threshold.

        Returns:
            The median number of steps, infinite if most runs did not, and the number of runs.
        """
        found = []
        for run in self.runs:
            steps = run.steps[curves.enough(run) - 1 :]
            reached = objective.score(1) * (curves.values(run, steps) - threshold) >= 0
            found.append(float(steps[reached.argmax()]) if reached.any() else math.inf)
        return float(np.median(found)), int(np.isfinite(found).sum())


def _speed(training: TrainingFolder) -> float:
    """Return the mean number of steps per second of the runs; NaN if it is unknown."""
    speeds = []
    for seed in training.seeds:
        clock = read_clock(run_folder(training.folder, seed))
        if clock is not None and clock.seconds:
            speeds.append(clock.steps / clock.seconds)
    return float(np.mean(speeds)) if speeds else math.nan


def default_threshold(trainings: Sequence[ComparedTraining], objective: Objective) -> float:
    """Return 90 % of the way from the worst point of all curves to the best.

    Only points that are means of enough episodes count.
    """
    curve_means = []
    for training in trainings:
        _, values = training.curve(least=recent.SETTLED)
        curve_means.append(values.mean(axis=0))
    means = np.concatenate(curve_means)
    worst = float(means.min())
    best = float(means.max())
    if objective.score(worst) > objective.score(best):  # smaller is better
        worst, best = best, worst
    return worst + 0.9 * (best - worst)


def publish(
    results: ReportFolder,
    trainings: Sequence[ComparedTraining],
    objective: Objective,
    threshold: float,
) -> None:
    """Write the table, the figure, the summary and the page."""
    lines = [_line(training, objective, threshold) for training in trainings]
    results.table("trainings", list(lines[0]), [list(line.values()) for line in lines])
    env = trainings[0].plan.config.env_name
    results.summary(
        {"env": env, "objective": objective.name, "threshold": threshold, "trainings": lines}
    )
    results.figure("curves", draw(trainings, objective, threshold))
    table = readable(trainings, objective, threshold)
    notes = "\n\n".join(notes_on(trainings, objective, threshold))
    moving = curves.moving_name(_all_runs(trainings))
    over = "mean over runs with its 95 % band (none for one run), to the end of the shortest run"
    bands = "Bands are cut off at the smallest and the largest value of an episode."
    caption = f"Mean of the {moving}: {over}. {bands}"
    commands = []
    for each in trainings:
        command = read_about(each.folder)["again"]
        commands.append((each.name, f"`{command}`", ", ".join(each.summary.names)))
    sections = [
        Section("Results", notes, table=table, figure="curves", caption=caption),
        Section("Commands", table=(("training", "command", "learners"), commands)),
    ]
    results.report(f"Trainings on {env}", sections)


def _all_runs(trainings: Sequence[ComparedTraining]) -> list[Episodes]:
    return [run for training in trainings for run in training.runs]


def _line(training: ComparedTraining, objective: Objective, threshold: float) -> dict[str, object]:
    """Return all numbers of a training, unrounded."""
    steps, runs = training.reached(threshold, objective)
    end = training.summary.end
    whole = training.summary.whole
    config = training.plan.config
    return {
        "training": training.name,
        "env": config.env_name,
        "wrappers": label_of(config.wrappers),
        "selector": config.selector_name,
        "learners": len(training.summary.names),
        "runs": len(training.runs),
        "runs_planned": training.seeds,
        "steps": training.steps,
        "end": end.mean,
        "end_ci95": end.ci95,
        "whole": whole.mean,
        "whole_ci95": whole.ci95,
        "steps_to_threshold": steps,
        "runs_reaching_it": runs,
        "steps_per_second": training.speed,
        "state": training.state,
    }


def readable(
    trainings: Sequence[ComparedTraining], objective: Objective, threshold: float
) -> tuple[list[str], list[list[object]]]:
    """Return the header and the rows of the table for people."""
    unit = objective.name
    header = [
        "training",
        "selector",
        "learners",
        "runs",
        "steps",
        f"{unit}, {curves.window_name(_all_runs(trainings))}",
        f"{unit}, all episodes",
        f"steps to {threshold:.4g}",
        "steps/s",
        "state",
    ]
    rows: list[list[object]] = []
    for each in trainings:
        row = [
            each.name,
            each.plan.config.selector_name,
            len(each.summary.names),
            len(each.runs),
            round(each.steps),
            each.summary.end,
            each.summary.whole,
            _reached_text(each, objective, threshold),
            round(each.speed) if math.isfinite(each.speed) else None,
            each.state,
        ]
        rows.append(row)
    return header, rows


def _reached_text(training: ComparedTraining, objective: Objective, threshold: float) -> str:
    """Return the steps to the threshold, and how many runs reached it if not all did."""
    steps, reaching = training.reached(threshold, objective)
    text = f"{steps:,.0f}" if math.isfinite(steps) else "–"
    runs = len(training.runs)
    return text if reaching == runs else f"{text} ({reaching} of {runs} runs)"


def notes_on(
    trainings: Sequence[ComparedTraining], objective: Objective, threshold: float
) -> list[str]:
    """Return what the numbers mean, as sentences."""
    runs = _all_runs(trainings)
    better = "Larger" if objective.maximize else "Smaller"
    value = f"The value of an episode is its {objective.name}. {better} is better."
    until = f"until the mean of the {curves.moving_rule(runs)} reached it"
    notes = [
        f"{value} Means and 95 % intervals are over runs.",
        f"Steps to {threshold:.4g}: {until}; median over runs.",
    ]
    if any(curves.enough(run) < recent.SETTLED for run in runs):
        notes.append("In a short run, a threshold can be reached from its middle on.")
    if any(each.state != "finished" for each in trainings):
        notes.append("Unfinished trainings are shown up to their last episode.")
    if len({label_of(each.plan.config.wrappers) for each in trainings}) > 1:
        notes.append(
            "The environments have different wrappers: values are comparable "
            "only if no wrapper changes rewards or the ends of episodes."
        )
    return notes


def draw(trainings: Sequence[ComparedTraining], objective: Objective, threshold: float) -> Figure:
    """Draw the learning curves."""
    figure, axes = figures.new_figure(width=9.0)
    runs = _all_runs(trainings)
    within = figures.observed(np.concatenate([run.values for run in runs]))
    for number, training in enumerate(trainings):
        at, values = training.curve()
        mean, half_width = estimates(values)
        figures.curve_with_band(
            axes,
            at,
            mean,
            half_width,
            f"{training.name} ({counted(len(training.runs), 'run')})",
            within=within,
            color=COLORS[number % len(COLORS)],
            style=figures.STYLES[number // len(COLORS) % len(figures.STYLES)],
        )
    label = f"threshold {threshold:.4g}"
    axes.axhline(threshold, color=QUIET, linestyle=":", linewidth=1.2, label=label)
    value = f"mean of the {curves.moving_name(runs)}\n[{objective.name}]"
    title = f"{trainings[0].plan.config.env_name}: learning curves"
    figures.label(axes, x="environment steps", y=value, title=title)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    figures.legend(axes)
    return figure
