"""The report of a training: a table, a figure, a page."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from esbas.objective import make_objective
from esbas.reporting import Estimate, Results, Section, estimate, estimates
from esbas.reporting.figures import COLOURS, curve_with_band, label, legend, new_panels, stacked_shares
from esbas.reporting.terminal import print_table, print_text
from esbas.training.folder import TrainingFolder
from esbas.training.reports import curves
from esbas.training.reports.evaluations import EvaluationSummary
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import read_episodes, read_faults
from esbas.training.runs.one_run import run_folder

MEMBER_HEADER = "learner", "share of control [%]", "share at the end [%]", "mean value in control", "value at the end", "faults"


class TrainingSummary:
    """The logs of a training, and what is computed from them. Runs that have not started are left out."""

    def __init__(self, training: TrainingFolder) -> None:
        self.plan, self.folder = training.plan, training.folder
        directories = {seed: run_folder(training.folder, seed) for seed in training.seeds}
        played = {seed: read_episodes(directory) for seed, directory in directories.items()}
        self.runs = {seed: run for seed, run in played.items() if len(run)}
        self.faults = {seed: read_faults(directories[seed]) for seed in self.runs}
        self.names = list(training.plan.recipe.names)
        objective = make_objective(training.plan.objective)
        self.unit = objective.name
        self.evaluations = EvaluationSummary(self.runs, directories, objective)
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
                str(seed): {
                    "episodes": len(run),
                    "steps": int(run.steps[-1]),
                    "value at the end": curves.last_mean(run),
                    "value of the whole run": float(run.values.mean()),
                    "seconds": self.seconds[seed],
                    "faults": len(self.faults[seed]),
                    **self.evaluations.as_dict(seed),
                }
                for seed, run in self.runs.items()
            },
            "members": [dict(zip(MEMBER_HEADER, row, strict=True)) for row in self.members()],
        }

    def figure(self) -> Figure:
        """Draw values and shares of control over the steps."""
        runs = list(self.runs.values())
        at = curves.grid(runs)
        figure, (above, below) = new_panels(2, height=7.0, share_x=True)
        if len(runs) == 1:
            above.plot(runs[0].steps, runs[0].values, ".", color=COLOURS[7], alpha=0.35, markersize=3, label="single episodes")
        mean, half = estimates([curves.values(run, at) for run in runs])
        over = f"mean of the last {curves.WINDOW} episodes" + (f",\n{len(runs)} runs, 95 % band" if len(runs) > 1 else "")
        curve_with_band(above, at, mean, half, over, colour=COLOURS[0])
        label(above, x="", y=f"value of an episode\n[{self.unit}]", title=f"{self.plan.env_id}: value")
        legend(above)
        control = np.mean([curves.shares(run, self.names, at) for run in runs], axis=0)
        stacked_shares(below, at, control, self.names)
        title = f"Learner in control, selected by {self.plan.selector}"
        label(below, x="environment steps", y=f"share of the last {curves.WINDOW}\nepisodes [%]", title=title)
        legend(below, reverse=True)
        return figure


def publish(results: Results, training: TrainingFolder) -> None:
    """Write the table, the figure, the summary and the page, and print the table."""
    summary = TrainingSummary(training)
    if not summary.runs:
        return
    rows = summary.members()
    results.table("members", MEMBER_HEADER, rows)
    results.figure("training", summary.figure())
    results.summary(summary.summary())
    results.report(f"Training on {summary.plan.env_id}", _sections(summary, rows))
    best = max(range(len(rows)), key=lambda k: float(str(rows[k][2])))
    print_table(f"Learners on {summary.plan.env_id}", MEMBER_HEADER, rows, bold=[best])
    over = f"{len(summary.runs)} runs" if len(summary.runs) > 1 else "one run"
    print_text(
        f"Mean value ({summary.unit}) of the last {curves.WINDOW} episodes: {summary.end}, of all: {summary.whole}, over {over}.",
        *summary.evaluations.sentences(),
        f"Report: {results.folder / 'report.html'}",
        f"Watch the best policy: esbas evaluate {results.folder}",
    )


def _sections(summary: TrainingSummary, rows: list[list[object]]) -> list[Section]:
    window, late = curves.WINDOW, f"{curves.LATE:.0%}"
    runs = len(summary.runs)
    notes = [
        f"Mean value of an episode ({summary.unit}) over the last {window} episodes: {summary.end}; over all: {summary.whole}."
    ]
    notes.append(
        f"{runs} runs with different seeds, 95 % intervals over runs."
        if runs > 1
        else "One run: no interval. For more runs: `--seeds 0 1 2`."
    )
    notes += summary.evaluations.sentences()
    sections = [
        Section("Results", " ".join(notes), figure="training", caption="Value of the episodes, and the learner in control.")
    ]
    about = f"Every learner learns from every episode. The end of a run is the last {late} of its episodes."
    sections.append(Section("Learners", about, table=(MEMBER_HEADER, rows)))
    faults = [(seed, *fault) for seed, of_run in summary.faults.items() for fault in of_run]
    if faults:
        header = "seed", "episode", "learner", "where", "dismissed for [episodes]", "message"
        counts = Counter(str(fault[2]) for fault in faults)
        text = "Faults: " + ", ".join(f"{name} {count}" for name, count in counts.items())
        text += ". A learner that fails is dismissed for 1, 2, 4, ... episodes; the run continues with the others."
        sections.append(
            Section("Faults", text, table=(header, faults[:50]), caption="The first 50 faults." if len(faults) > 50 else "")
        )
    defaults = "From `portfolio.toml`. Omitted options use the defaults of the algorithm."
    portfolio = [(member.name, member.algorithm, _options(member.options)) for member in summary.plan.recipe.members]
    sections.append(Section("Portfolio", defaults, table=(("learner", "algorithm", "options"), portfolio)))
    return sections


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in options.items())
