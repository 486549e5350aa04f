"""The report of a training: a table, a figure, a page."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from esbas.objective import make_objective
from esbas.reporting import Estimate, Results, Section, estimate, estimates
from esbas.reporting.colours import COLOURS, SPOTS
from esbas.reporting.figures import curve_with_band, label, legend, new_panels, observed, stacked_shares
from esbas.reporting.terminal import print_table, print_text
from esbas.training.folder import TrainingFolder
from esbas.training.reports import curves
from esbas.training.reports.evaluations import HEADER as EVALUATION_HEADER
from esbas.training.reports.evaluations import EvaluationSummary
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes, read_episodes, read_faults
from esbas.training.runs.one_run import run_folder

MEMBER_HEADER = "learner", "share of control [%]", "share at the end [%]", "mean value in control", "value at the end", "faults"

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


class TrainingSummary:
    """The logs of a training, and what is computed from them. Runs that have not started are left out."""

    def __init__(self, training: TrainingFolder) -> None:
        self.plan, self.folder = training.plan, training.folder
        directories = {seed: run_folder(training.folder, seed) for seed in training.seeds}
        played = {seed: read_episodes(directory) for seed, directory in directories.items()}
        self.runs = {seed: run for seed, run in played.items() if len(run)}
        self.faults = {seed: read_faults(directories[seed]) for seed in self.runs}
        self.names = list(training.plan.recipe.names)
        self.objective = make_objective(training.plan.objective)
        self.unit = self.objective.name
        self.evaluations = EvaluationSummary(self.runs, directories, self.objective)
        clocks = {seed: read_clock(directories[seed]) for seed in self.runs}
        self.seconds = {seed: math.nan if clock is None else clock.seconds for seed, clock in clocks.items()}

    @property
    def end(self) -> Estimate:
        """The mean value of the last episodes, over runs."""
        return estimate([curves.last_mean(run) for run in self.runs.values()])

    @property
    def whole(self) -> Estimate:
        """The mean value of all episodes, over runs."""
        return estimate([run.values.mean() for run in self.runs.values()])

    def seeds(self) -> list[list[object]]:
        """A row per run, see RUN_HEADER."""
        return [self._seed(seed, run) for seed, run in self.runs.items()]

    def _seed(self, seed: int, run: Episodes) -> list[object]:
        values = curves.last_mean(run), float(run.values.mean())
        counts = len(run), int(run.steps[-1])
        return [str(seed), *counts, *values, self.seconds[seed], len(self.faults[seed]), curves.leader(run, self.objective)]

    def members(self) -> list[list[object]]:
        """A row per learner, see MEMBER_HEADER."""
        return [self._member(name) for name in self.names]

    def _member(self, name: str) -> list[object]:
        own = [run.learners == name for run in self.runs.values()]
        late = [run.learners[-curves.late(len(run)) :] == name for run in self.runs.values()]
        values = np.concatenate([run.values[mine] for run, mine in zip(self.runs.values(), own, strict=True)])
        ends = np.concatenate(
            [run.values[-curves.late(len(run)) :][mine] for run, mine in zip(self.runs.values(), late, strict=True)]
        )
        shares = [100 * float(np.mean([mine.mean() for mine in part])) for part in (own, late)]
        faults = sum(arm == name for faults in self.faults.values() for _, arm, *_ in faults)
        return [name, *shares, *(float(part.mean()) if len(part) else math.nan for part in (values, ends)), faults]

    def summary(self) -> dict[str, Any]:
        """All numbers as plain data."""
        return {
            "task": self.plan.env_id,
            "objective": self.unit,
            "selector": self.plan.selector,
            "value at the end": self.end,
            "value of the whole run": self.whole,
            **self.evaluations.as_dict(),
            "runs": {
                str(row[0]): dict(zip(RUN_HEADER[1:], row[1:], strict=True)) | self.evaluations.as_dict(int(str(row[0])))
                for row in self.seeds()
            },
            "members": [dict(zip(MEMBER_HEADER, row, strict=True)) for row in self.members()],
        }

    def figure(self) -> Figure:
        """Draw values and shares of control over the steps."""
        runs = list(self.runs.values())
        at = curves.grid(runs)
        figure, (above, below) = new_panels(2, height=7.0, share_x=True)
        if len(runs) == 1:
            (dots,) = above.plot(
                runs[0].steps, runs[0].values, ".", color=SPOTS, alpha=0.45, markersize=3, label="single episodes"
            )
            dots.set_rasterized(True)  # there can be 100,000
        mean, half = estimates([curves.values(run, at) for run in runs])
        window, within = curves.moving_text(runs), observed(np.concatenate([run.values for run in runs]))
        over = f"mean of the {window}" + (f",\n{len(runs)} runs, 95 % band" if len(runs) > 1 else "")
        curve_with_band(above, at, mean, half, over, within=within, colour=COLOURS[0])
        label(above, x="", y=f"value of an episode\n[{self.unit}]", title=f"{self.plan.env_id}: value")
        legend(above)
        control = np.mean([curves.shares(run, self.names, at) for run in runs], axis=0)
        stacked_shares(below, at, control, self.names)
        title = f"Learner in control, selected by {self.plan.selector}"
        label(below, x="environment steps", y=f"share of the\n{window} [%]", title=title)
        below.xaxis.set_major_formatter("{x:,.0f}")
        legend(below, reverse=True)
        return figure


def publish(results: Results, training: TrainingFolder) -> None:
    """Write the table, the figure, the summary and the page, and print the table."""
    summary = TrainingSummary(training)
    if not summary.runs:
        return
    rows, seeds = summary.members(), summary.seeds()
    results.table("members", MEMBER_HEADER, rows)
    results.table("runs", RUN_HEADER, seeds)
    results.figure("training", summary.figure())
    evaluations = summary.evaluations.figure(f"{summary.plan.env_id}: policies without exploration", summary.unit)
    if evaluations is not None:
        results.figure("evaluations", evaluations)
    results.summary(summary.summary())
    results.report(f"Training on {summary.plan.env_id}", _sections(summary, rows, seeds, drawn=evaluations is not None))
    best = max(range(len(rows)), key=lambda k: float(str(rows[k][2])))
    print_table(f"Learners on {summary.plan.env_id}", MEMBER_HEADER, rows, bold=[best])
    print_text(
        f"{_result(summary)} {_time(summary)}",
        *summary.evaluations.sentences(),
        f"Report: {results.folder / 'report.html'}",
        f"Watch the best policy: esbas evaluate {results.folder}",
    )


def _result(summary: TrainingSummary) -> str:
    """The main numbers in a sentence."""
    window, runs = curves.window_text(list(summary.runs.values())), len(summary.runs)
    whole = "" if window.startswith(("all", "the only")) else f"; of all episodes: {summary.whole}"
    over = f", over {runs} runs with 95 % intervals" if runs > 1 else ", in one run"
    return f"Mean value ({summary.unit}) of {window}: {summary.end}{whole}{over}."


def _time(summary: TrainingSummary) -> str:
    """How long the runs took."""
    seconds = [value for value in summary.seconds.values() if math.isfinite(value)]
    if not seconds:
        return ""
    each = f" ({_duration(sum(seconds) / len(seconds))} each on average)" if len(seconds) > 1 else ""
    return f"Training time: {_duration(sum(seconds))}{each}."


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _sections(summary: TrainingSummary, rows: list[list[object]], seeds: list[list[object]], *, drawn: bool) -> list[Section]:
    runs, late = list(summary.runs.values()), f"{curves.LATE:.0%}"
    more = "" if len(runs) > 1 else " For more runs and intervals: `--seeds 0 1 2`."
    band = " The band is cut off at the smallest and the largest value of an episode." if len(runs) > 1 else ""
    start = (
        f" The first points average the episodes so far, up to {curves.WINDOW}." if max(map(len, runs)) > curves.WINDOW else ""
    )
    return [
        Section(
            "Results",
            f"{_result(summary)} {_time(summary)}{more}",
            figure="training",
            caption=f"Value of the episodes, and the learner in control.{start}{band}",
        ),
        Section(
            "Runs",
            f"""The value at the end is the mean of {curves.window_text(runs)}. The best learner at the end controlled most of the
            last {late} of the episodes.""",
            table=(RUN_HEADER, seeds),
        ),
        *_evaluation_sections(summary, drawn),
        Section(
            "Learners",
            f"Every learner learns from every episode. The end of a run is the last {late} of its episodes.",
            table=(MEMBER_HEADER, rows),
        ),
        _portfolio(summary),
        *_fault_sections(summary),
    ]


def _evaluation_sections(summary: TrainingSummary, drawn: bool) -> list[Section]:
    rows = summary.evaluations.last()
    about = "In an evaluation, a policy plays without exploration, and nobody learns."
    caption = "Means of all evaluations. A learner has one line per run." if drawn else ""
    table = (EVALUATION_HEADER, rows) if rows else None
    figure = "evaluations" if drawn else None
    text = " ".join([*summary.evaluations.sentences(), about])
    return [Section("Best policy", text, table=table, figure=figure, caption=caption)]


def _portfolio(summary: TrainingSummary) -> Section:
    text = "From `portfolio.toml`. Omitted options use the defaults of the algorithm."
    members = [(member.name, member.algorithm, _options(member.options)) for member in summary.plan.recipe.members]
    return Section("Portfolio", text, table=(("learner", "algorithm", "options"), members))


def _fault_sections(summary: TrainingSummary) -> list[Section]:
    faults = [(str(seed), *fault) for seed, of_run in summary.faults.items() for fault in of_run]
    if not faults:
        return []
    header = "seed", "episode", "learner", "where", "dismissed for [episodes]", "message"
    counts = Counter(str(fault[2]) for fault in faults)
    text = "Faults: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    text += ". A learner that fails is dismissed for 1, 2, 4, ... episodes; the run continues with the others."
    return [Section("Faults", text, table=(header, faults[:50]), caption="The first 50 faults." if len(faults) > 50 else "")]


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in options.items())
