"""The report of a training: tables, figures and a page."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esbas._internal.columns import Array
from esbas.reporting import Columns, Estimate, ReportFolder, Section, estimate, estimates
from esbas.reporting.colors import COLORS, SPOTS
from esbas.reporting.estimate import FEWEST
from esbas.reporting.figures import (
    STYLES,
    curve,
    curve_with_band,
    label,
    legend,
    new_figure,
    new_panels,
    observed,
    stacked_shares,
)
from esbas.training import recent
from esbas.training.folder import TrainingFolder
from esbas.training.reports import curves, next_steps
from esbas.training.reports.episode_columns import episode_columns
from esbas.training.reports.evaluations import HEADER as EVALUATION_HEADER
from esbas.training.reports.evaluations import EvaluationSummary
from esbas.training.reports.explaining import explained
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes, FaultRow, read_episodes, read_faults
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.stopping import CALLBACK, MINUTES, UNTIL, Stop, read_stop

LEARNER_HEADER = (
    "learner",
    "share of control [%]",
    "share at the end [%]",
    "mean value in control",
    "value at the end",
    "faults",
)

RUN_HEADER = (
    "seed",
    "episodes",
    "steps",
    "value at the end",
    "value of the whole run",
    "seconds",
    "faults",
    "best learner at the end",
)

MOST_FAULTS = 50  # rows of the table of faults


class TrainingSummary:
    """The logs of a training, and what is computed from them.

    Runs without an episode are left out.
    """

    def __init__(self, training: TrainingFolder) -> None:
        self.plan = training.plan
        self.folder = training.folder
        self.names = list(training.plan.portfolio.names)
        self.objective = training.plan.objective
        self.unit = self.objective.name
        # All of these have the seeds as keys.
        self.runs: dict[int, Episodes] = {}
        self.faults: dict[int, list[FaultRow]] = {}
        self.seconds: dict[int, float] = {}
        directories: dict[int, Path] = {}
        for seed in training.seeds:
            directory = run_folder(training.folder, seed)
            run = read_episodes(directory)
            if len(run):
                clock = read_clock(directory)
                self.runs[seed] = run
                self.faults[seed] = read_faults(directory)
                self.seconds[seed] = math.nan if clock is None else clock.seconds
                directories[seed] = directory
        self.evaluations = EvaluationSummary(self.runs, directories, self.objective)

    @property
    def end(self) -> Estimate:
        """The mean value of the recent episodes at the end, over runs."""
        return estimate([curves.last_mean(run) for run in self.runs.values()])

    @property
    def score(self) -> Estimate:
        """The same; of a single run, with an interval over its recent episodes."""
        if len(self.runs) > 1:
            return self.end
        (run,) = self.runs.values()
        values = run.values[-recent.recent_count(run.steps) :]
        ci95 = estimate(values).ci95  # as if an episode that counts as a fraction were whole
        return Estimate(curves.last_mean(run), ci95, len(values), over="episodes")

    @property
    def whole(self) -> Estimate:
        """The mean value of all episodes, over runs."""
        return estimate([run.values.mean() for run in self.runs.values()])

    def run_rows(self) -> list[list[object]]:
        """Return a row per run, with the columns of RUN_HEADER."""
        return [self._run_row(seed, run) for seed, run in self.runs.items()]

    def _run_row(self, seed: int, run: Episodes) -> list[object]:
        return [
            str(seed),
            len(run),
            int(run.steps[-1]),
            curves.last_mean(run),
            float(run.values.mean()),
            self.seconds[seed],
            len(self.faults[seed]),
            curves.leader(run, self.objective),
        ]

    def learner_rows(self) -> list[list[object]]:
        """Return a row per learner, with the columns of LEARNER_HEADER."""
        return [self._learner_row(name) for name in self.names]

    def _learner_row(self, name: str) -> list[object]:
        shares: list[float] = []  # of control in the whole run, one number per run
        recent_shares: list[float] = []
        values: list[float] = []  # of the episodes that it controlled, in all runs
        recent_sum = 0.0  # of the values of the recent ones
        recent_weight = 0.0  # how many there are, with fractions
        for run in self.runs.values():
            mine = run.learners == name
            weights = recent.recent_weights(run.steps)
            own_weights = weights * mine[-len(weights) :]
            shares.append(100 * float(mine.mean()))
            recent_shares.append(100 * float(own_weights.sum() / weights.sum()))
            values += run.values[mine].tolist()
            recent_sum += float(own_weights @ run.values[-len(weights) :])
            recent_weight += float(own_weights.sum())
        faults = 0
        for of_run in self.faults.values():
            faults += sum(fault.learner == name for fault in of_run)
        return [
            name,
            _mean(shares),
            _mean(recent_shares),
            _mean(values),
            recent_sum / recent_weight if recent_weight else math.nan,
            faults,
        ]

    def summary(self) -> dict[str, Any]:
        """Return all numbers as plain data."""
        runs = {}
        for seed, run in self.runs.items():
            row = dict(zip(RUN_HEADER, self._run_row(seed, run), strict=True))
            del row["seed"]
            runs[str(seed)] = row | self.evaluations.as_dict(seed)
        learners = [dict(zip(LEARNER_HEADER, row, strict=True)) for row in self.learner_rows()]
        return {
            "env": self.plan.config.env_name,
            "objective": self.unit,
            "selector": self.plan.config.selector_name,
            **self.evaluations.as_dict(),
            "value at the end": self.end,
            "value of the whole run": self.whole,
            "runs": runs,
            "learners": learners,
        }

    def episodes(self) -> Columns:
        """Return every episode of every run."""
        return episode_columns(self.runs)

    def result(self) -> str:
        """Return the main numbers in a sentence."""
        runs = list(self.runs.values())
        window = curves.window_text(runs)
        shown = [self.end]
        text = f"Mean value ({self.unit}) of {window}: {self.end.short_text}"
        has_all_episodes = window.startswith(("all", "the only"))
        if not has_all_episodes:
            shown.append(self.whole)
            text += f"; of all episodes: {self.whole.short_text}"
        if len(runs) == 1:
            return f"{text}, in one run."
        intervals = " with 95 % intervals" if any(each.shows_interval for each in shown) else ""
        return f"{text}, over {len(runs)} runs{intervals}."

    def best_policy(self) -> str:
        """Return the score of the best policy as a sentence; empty if none was evaluated."""
        return " ".join(each for each in self.evaluations.sentences() if _is_about_best(each))

    def sentences(self) -> list[str]:
        """Return the results in sentences, except for `best_policy`, which comes before them."""
        main = f"{self.result()} {self.time()}".strip()
        others = [each for each in self.evaluations.sentences() if not _is_about_best(each)]
        return [main, *self.stops(), *others]

    def time(self) -> str:
        """Return how long the runs took, as a sentence; empty if this is unknown."""
        seconds = [value for value in self.seconds.values() if math.isfinite(value)]
        if not seconds:
            return ""
        total = sum(seconds)
        if len(seconds) == 1:
            return f"Training time: {_duration(total)}."
        mean = _duration(total / len(seconds))
        return f"Training time: {_duration(total)} ({mean} each on average)."

    def stops(self) -> list[str]:
        """Return which runs stopped before their budget was used up, and why, as sentences."""
        seeds_by_reason: dict[str, list[str]] = {}
        for seed in self.runs:
            stop = read_stop(run_folder(self.folder, seed), self.plan.config)
            if stop is not None:
                seeds = seeds_by_reason.setdefault(self._reason(stop), [])
                seeds.append(f"{seed} at step {stop.steps:,}")
        return [
            f"Stopped {reason}: seed {', '.join(seeds)}."
            for reason, seeds in seeds_by_reason.items()
        ]

    def _reason(self, stop: Stop) -> str:
        """Return why a run stopped, as a part of a sentence."""
        config = self.plan.config
        if stop.reason == MINUTES and config.minutes:
            return f"after {config.minutes:g} minutes"
        if stop.reason == UNTIL and config.until is not None:
            return f"at a mean value of {config.until:g}"
        if stop.reason == CALLBACK:
            return "because a callback asked for it"
        return stop.reason

    def figure(self) -> Figure:
        """Draw values and shares of control over the steps."""
        figure, (above, below) = new_panels(2, height=7.0, share_x=True)
        at = curves.grid(list(self.runs.values()), least=recent.LEAST)
        self._draw_values(above, at)
        self._draw_shares(below, at)
        return figure

    def learner_figure(self) -> Figure:
        """Draw the values of the episodes that each learner controlled, over the steps."""
        figure, axes = new_figure()
        for k, name in enumerate(self.names):
            own = curves.own_values(list(self.runs.values()), name)
            curve(
                axes,
                own.steps,
                own.means,
                name,
                color=COLORS[k % len(COLORS)],
                style=f"{STYLES[k // len(COLORS) % len(STYLES)]}o",
            )
        title = f"{self.plan.config.env_name}: value by learner in control"
        value = f"mean value of an episode\n[{self.unit}]"
        label(axes, x="environment steps", y=value, title=title)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.locator_params(axis="x", nbins=6)
        legend(axes)
        return figure

    def _draw_values(self, axes: Axes, at: Array) -> None:
        """Draw the values of episodes at these steps, (X,)."""
        runs = list(self.runs.values())
        if len(runs) == 1:
            (dots,) = axes.plot(
                runs[0].steps,
                runs[0].values,
                ".",
                color=SPOTS,
                alpha=0.45,
                markersize=3,
                label="single episodes",
            )
            dots.set_rasterized(True)  # there can be 100,000
        values = [curves.values(run, at) for run in runs]
        mean, half_width = estimates(values)
        within = observed(np.concatenate([run.values for run in runs]))
        name = f"mean of the {curves.moving_text(runs)}".replace(" (", "\n(")  # on two lines
        if len(runs) >= FEWEST:
            name += f",\n{len(runs)} runs, 95 % band"
        else:
            half_width = np.full_like(mean, np.nan)  # of two runs, it would be twelve times as wide
        if 1 < len(runs) < FEWEST:
            name += f",\n{len(runs)} runs, each as a thin line"
            for each in values:
                axes.plot(at, each, color=COLORS[0], alpha=0.5, linewidth=0.8)
        curve_with_band(axes, at, mean, half_width, name, within=within, color=COLORS[0])
        title = f"{self.plan.config.env_name}: value"
        label(axes, x="", y=f"value of an episode\n[{self.unit}]", title=title)
        legend(axes)

    def _draw_shares(self, axes: Axes, at: Array) -> None:
        """Draw the shares of control at these steps, (X,)."""
        runs = list(self.runs.values())
        control = np.mean([curves.shares(run, self.names, at) for run in runs], axis=0)  # (K, X)
        stacked_shares(axes, at, control, self.names)
        share = f"share of the\n{curves.moving_name(runs)} [%]"
        title = f"Learner in control, selected by {self.plan.config.selector_name}"
        label(axes, x="environment steps", y=share, title=title)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.locator_params(axis="x", nbins=6)  # more labels touch each other beside a wide legend
        legend(axes, reverse=True)


def _mean(numbers: list[float]) -> float:
    """Return the mean; NaN if there are no numbers."""
    return float(np.mean(numbers)) if numbers else math.nan


def _is_about_best(sentence: str) -> bool:
    return sentence.startswith(("Best policy", "No best policy"))


def publish(results: ReportFolder, training: TrainingFolder) -> None:
    """Write tables, figures, summary and page, if there is an episode."""
    summary = TrainingSummary(training)
    if not summary.runs:
        return
    results.table("learners", LEARNER_HEADER, summary.learner_rows())
    results.table("runs", RUN_HEADER, summary.run_rows())
    results.figure("training", summary.figure())
    results.figure("learners", summary.learner_figure())
    env = summary.plan.config.env_name
    evaluations = summary.evaluations.figure(f"{env}: policies without exploration", summary.unit)
    if evaluations is not None:
        results.figure("evaluations", evaluations)
    results.summary(summary.summary())
    sections = [
        _results_section(summary),
        _runs_section(summary),
        _evaluation_section(summary, drawn=evaluations is not None),
        _learners_section(summary),
        _portfolio_section(summary),
    ]
    if any(summary.faults.values()):
        sections.append(_faults_section(summary))
    sections.append(_next_section(training))
    results.report(f"Training on {env}", sections)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {rest} s"
    return f"{seconds:.1f} s"


def _results_section(summary: TrainingSummary) -> Section:
    runs = list(summary.runs.values())
    sentences = [summary.best_policy(), summary.result(), summary.time(), *summary.stops()]
    window = f"Curves are means of the {curves.moving_rule(runs)}."
    caption = f"Value of the episodes, and the learner in control. {window}"
    if len(runs) == 1:
        sentences.append("For more runs and intervals: `--seeds 0 1 2`.")
    elif len(runs) >= FEWEST:
        caption += " The band is cut off at the smallest and the largest value of an episode."
    sentences.append("The learners are explained below the figure.")
    terms = [(spec.name, explained(spec)) for spec in summary.plan.portfolio.learners]
    return Section(
        "Results",
        " ".join(each for each in sentences if each),
        terms=terms,
        figure="training",
        caption=caption,
    )


def _runs_section(summary: TrainingSummary) -> Section:
    window = curves.window_text(list(summary.runs.values()))
    about = f"The value at the end is the mean of {window}."
    text = f"{about} The best learner at the end controlled most of them."
    return Section("Runs", text, table=(RUN_HEADER, summary.run_rows()))


def _evaluation_section(summary: TrainingSummary, *, drawn: bool) -> Section:
    rows = summary.evaluations.last()
    about = "In an evaluation, a policy plays without exploration and without learning."
    text = " ".join([*summary.evaluations.sentences(), about])
    table = (EVALUATION_HEADER, rows) if rows else None
    if not drawn:
        return Section("Best policy", text, table=table)
    caption = "Means of all evaluations. A learner has one line per run."
    return Section("Best policy", text, table=table, figure="evaluations", caption=caption)


def _learners_section(summary: TrainingSummary) -> Section:
    window = curves.window_text(list(summary.runs.values()))
    text = f"Every learner learns from every episode. The end of a run is {window}."
    part = f"at least 1/{curves.BINS} of the steps and {recent.LEAST} episodes"
    dots = f"Each dot is a mean over {part}, of all runs together."
    caption = f"Value of the episodes that each learner controlled. {dots}"
    return Section(
        "Learners",
        text,
        table=(LEARNER_HEADER, summary.learner_rows()),
        figure="learners",
        caption=caption,
    )


def _portfolio_section(summary: TrainingSummary) -> Section:
    text = "Omitted options use the defaults of the algorithm."
    rows = []
    for spec in summary.plan.portfolio.learners:
        options = ", ".join(f"{name} = {value}" for name, value in spec.options.items())
        rows.append((spec.name, spec.algorithm, options))
    return Section("Portfolio", text, table=(("learner", "algorithm", "options"), rows))


def _next_section(training: TrainingFolder) -> Section:
    terms = [(purpose, f"`{command}`") for purpose, command in next_steps.next_steps(training)]
    return Section("What to do next", next_steps.documentation(), terms=terms)


def _faults_section(summary: TrainingSummary) -> Section:
    header = "seed", "episode", "learner", "where", "dismissed for [episodes]", "message"
    rows = []
    counts = Counter[str]()
    for seed, faults in summary.faults.items():
        for fault in faults:
            rows.append((str(seed), *fault))
            counts[fault.learner] += 1
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    dismissal = "A learner that fails is dismissed for 1, 2, 4, ... episodes"
    text = f"Faults: {listed}. {dismissal}; the run continues with the others."
    caption = f"The first {MOST_FAULTS} faults." if len(rows) > MOST_FAULTS else ""
    return Section("Faults", text, table=(header, rows[:MOST_FAULTS]), caption=caption)
