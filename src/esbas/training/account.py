"""What a training tells at its end: a table, figures, a page."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from esbas.reporting import Estimate, Results, Section, estimate, estimates
from esbas.reporting.figures import COLOURS, curve_with_band, label, legend, new_panels, stacked_shares
from esbas.reporting.terminal import print_table, print_text
from esbas.training import curves
from esbas.training.folder import Opened
from esbas.training.log import read_episodes, read_faults
from esbas.training.plan import OBJECTIVES
from esbas.training.single import read_clock, run_folder

MEMBER_HEADER = "learner", "share of control [%]", "share at the end [%]", "mean value in control", "value at the end", "faults"


class Account:
    """The runs of a training as they are now."""

    def __init__(self, opened: Opened) -> None:
        self.plan, self.folder = opened.plan, opened.folder
        homes = {seed: run_folder(opened.folder, seed) for seed in opened.seeds}
        played = {seed: read_episodes(home) for seed, home in homes.items()}
        self.runs = {seed: run for seed, run in played.items() if len(run)}
        self.faults = {seed: read_faults(homes[seed]) for seed in self.runs}
        self.names = list(opened.plan.recipe.names)
        self.unit = OBJECTIVES[opened.plan.objective]().name
        self.seconds = {seed: float(read_clock(homes[seed]).get("seconds", math.nan)) for seed in self.runs}

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
        faults = sum(arm == name for told in self.faults.values() for _, arm, *_ in told)
        return [name, *shares, *(float(part.mean()) if len(part) else math.nan for part in (values, ends)), faults]

    def summary(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "task": self.plan.env_id,
            "objective": self.unit,
            "selector": self.plan.selector,
            "value at the end": self.end,
            "value of the whole run": self.whole,
            "runs": {
                str(seed): {
                    "episodes": len(run),
                    "steps": int(run.steps[-1]),
                    "value at the end": curves.last_mean(run),
                    "value of the whole run": float(run.values.mean()),
                    "seconds": self.seconds[seed],
                    "faults": len(self.faults[seed]),
                }
                for seed, run in self.runs.items()
            },
            "members": [dict(zip(MEMBER_HEADER, row, strict=True)) for row in self.members()],
        }

    def figure(self) -> Figure:
        """Values and control over the steps."""
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
        title = f"Who was in control, chosen by {self.plan.selector}"
        label(below, x="environment steps", y=f"share of the last {curves.WINDOW}\nepisodes [%]", title=title)
        legend(below, reverse=True)
        return figure


def publish(results: Results, opened: Opened) -> None:
    """Write the table, the figure, the summary and the page, and print what matters."""
    account = Account(opened)
    if not account.runs:
        return
    rows = account.members()
    results.table("members", MEMBER_HEADER, rows)
    results.figure("training", account.figure())
    results.summary(account.summary())
    results.report(f"Training on {account.plan.env_id}", _sections(account, rows))
    best = max(range(len(rows)), key=lambda k: float(str(rows[k][2])))
    print_table(f"Learners on {account.plan.env_id}", MEMBER_HEADER, rows, bold=[best])
    over = f"{len(account.runs)} runs" if len(account.runs) > 1 else "one run"
    print_text(
        f"Mean value ({account.unit}) of the last {curves.WINDOW} episodes: {account.end}, of all: {account.whole}, over {over}.",
        f"Report: {results.folder / 'report.html'}",
        f"Watch the best policy: esbas evaluate {results.folder}",
    )


def _sections(account: Account, rows: list[list[object]]) -> list[Section]:
    window, late = curves.WINDOW, f"{curves.LATE:.0%}"
    runs = len(account.runs)
    told = [
        f"Mean value of an episode ({account.unit}) over the last {window} episodes: {account.end}; over all: {account.whole}."
    ]
    told.append(
        f"{runs} runs with different seeds, 95 % intervals over runs."
        if runs > 1
        else "One run: no interval. More: `--seeds 0 1 2`."
    )
    sections = [
        Section("What came of it", " ".join(told), figure="training", caption="Value of the episodes and who controlled them.")
    ]
    about = f"Every learner learnt from every episode. The end is the last {late} of a run's episodes."
    sections.append(Section("The learners", about, table=(MEMBER_HEADER, rows)))
    faults = [(seed, *told) for seed, all_told in account.faults.items() for told in all_told]
    if faults:
        header = "seed", "episode", "learner", "where", "dismissed for [episodes]", "message"
        counts = Counter(str(fault[2]) for fault in faults)
        text = "Faults: " + ", ".join(f"{name} {count}" for name, count in counts.items())
        text += ". A learner that fails is dismissed for 1, 2, 4, ... episodes; the run goes on with the others."
        sections.append(
            Section("Dismissed", text, table=(header, faults[:50]), caption="The first 50 of them." if len(faults) > 50 else "")
        )
    told_by = "As `portfolio.toml` tells it; what is not told is as the algorithm has it."
    portfolio = [(member.name, member.algorithm, _options(member.options)) for member in account.plan.recipe.members]
    sections.append(Section("The portfolio", told_by, table=(("learner", "algorithm", "options"), portfolio)))
    return sections


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in options.items())
