"""The live view of a training on stderr: an updated table on a terminal, plain lines otherwise."""

import math
import time
from types import TracebackType

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from esbas.training.display.status import OWN, RECENT, WINDOW, MemberStatus, Status

PLAIN_EVERY = 10.0
"""Seconds between two plain lines of one run."""


class LiveView:
    """Shows the status of the runs. A context manager."""

    def __init__(self, title: str, *, console: Console | None = None) -> None:
        self._title, self._console = title, Console(stderr=True) if console is None else console
        self._runs: dict[int, Status] = {}
        self._live: Live | None = None
        self._last: dict[int, float] = {}  # time of the last plain line of each run

    def __enter__(self) -> "LiveView":
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        return self

    def show(self, status: Status) -> None:
        """Show the new status of a run."""
        self._runs[status.seed] = status
        now = time.monotonic()
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
        elif status.finished or now - self._last.get(status.seed, -math.inf) >= PLAIN_EVERY:
            self._last[status.seed] = now
            self._console.print(Text(f"{self._title}, {plain_line(status)}"), highlight=False, soft_wrap=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            if self._runs:
                self._live.update(self._picture(), refresh=True)
            self._live.stop()

    def _picture(self) -> Group:
        active = [status for status in self._runs.values() if not status.finished] or list(self._runs.values())[-1:]
        parts: list[RenderableType] = [Text(self._title, style="bold"), _runs_table(list(self._runs.values()))]
        return Group(*parts, _members_table(active[0]) if len(active) == 1 else Text(""))


def plain_line(status: Status) -> str:
    """The status of a run in one line."""
    leader = max(status.members, key=lambda member: member.share)
    away = [member.name for member in status.members if member.away]
    parts = [f"seed {status.seed}: {status.steps:,} steps ({status.progress:.0%}), {status.episodes:,} episodes"]
    if status.episodes:
        parts.append(f"mean of the last {RECENT}: {status.value:.4g}")
        parts.append(f"{leader.name!r} in control of {leader.share:.0%}")
    if away:
        parts.append(f"dismissed: {', '.join(away)}")
    parts.append("finished" if status.finished else f"{status.speed:,.0f} steps/s, {_time(status.left)} left")
    return ", ".join(parts)


def _runs_table(runs: list[Status]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("seed", "steps", "episodes", f"mean of last {RECENT}", "steps/s", "left"):
        table.add_column(name, justify="right")
    table.add_column("progress", min_width=24)
    table.add_column("in control")
    for status in runs:
        numbers = f"{status.steps:,}", f"{status.episodes:,}", _number(status.value), f"{status.speed:,.0f}"
        left = "done" if status.finished else _time(status.left)
        bar = ProgressBar(total=1.0, completed=status.progress, width=24)
        table.add_row(str(status.seed), *numbers, left, bar, Text(status.arm))
    return table


def _members_table(status: Status) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("learner")
    table.add_column(f"control of the last {WINDOW} episodes", min_width=30)
    for name in (f"mean of its last {OWN}", "episodes", "faults"):
        table.add_column(name, justify="right")
    table.add_column("")
    for member in status.members:
        bar = "█" * round(20 * member.share)
        share = Text(f"{bar:<20} {member.share:4.0%}", style="cyan")
        state = _state(member, status)
        style = "bold" if member.name == status.arm else "dim" if member.away else ""
        numbers = _number(member.value), f"{member.episodes:,}", str(member.faults or "")
        table.add_row(Text(member.name, style=style), share, *numbers, Text(state, style="red" if member.away else "green"))
    return table


def _state(member: MemberStatus, status: Status) -> str:
    if member.away:
        return f"dismissed for {member.away} episodes"
    return "in control" if member.name == status.arm else ""


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
