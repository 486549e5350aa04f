"""The tables of the live view, fitted to the width of the terminal: bars become shorter first, then names."""

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from esbas.training.display.status import OWN, RECENT, WINDOW, MemberStatus, Status

LONGEST_BAR, SHORTEST_BAR, SHORTEST_NAME = 24, 5, 12
ROOMY, WIDE = 72, 100  # columns from which there is room for optional columns, and for whole phrases
MOST_RUNS = 12  # rows of runs
CONTROL = "in control"


def picture(
    title: str, runs: Sequence[Status], waiting: Sequence[int], quiet: Mapping[int, float], *, width: int
) -> RenderableType:
    """The whole view.

    Args:
        title: the first line.
        runs: all runs that have started.
        waiting: seeds of the runs that have not.
        quiet: seconds without a report, for runs where this has lasted longer than usual.
        width: of the terminal.
    """
    runs = sorted(runs, key=lambda status: status.seed)
    active = [status for status in runs if not status.finished]
    shown = list(runs) if len(runs) <= MOST_RUNS else active or list(runs[-1:])
    parts: list[RenderableType] = [Text(title, style="bold", no_wrap=True, overflow="ellipsis")]
    if shown:
        parts.append(_runs_table(shown, width))
    if len(shown) < len(runs):
        parts.append(Text(f" {len(runs) - len(shown)} other runs are finished"))
    parts += [_line(line) for line in _current(active, quiet)]
    if waiting:
        seeds = ", ".join(map(str, waiting))
        parts.append(_line(f"seed{'s' if len(waiting) > 1 else ''} {seeds}: waiting"))
    if shown:
        parts.append(_members_table(active or list(runs[-1:]), width))
    return Group(*parts)


def duration(seconds: float) -> str:
    """Seconds as M:SS or H:MM:SS.

    >>> duration(3725)
    '1:02:05'
    """
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shorten(names: Sequence[str], width: int) -> list[str]:
    """The names in at most `width` characters, with an ellipsis where they can still be told apart, near the middle if possible.

    >>> shorten(["rate 0.1, 3 steps", "rate 0.2, 3 steps"], 12)
    ['r….1, 3 steps', 'r….2, 3 steps']
    """
    keep = max(width - 1, 1)
    for front in sorted(range(keep + 1), key=lambda front: abs(2 * front - keep)):
        short = [name if len(name) <= width else f"{name[:front]}…{name[len(name) - keep + front :]}" for name in names]
        if len(set(short)) == len(set(names)):
            return short
    return [name if len(name) <= width else f"{name[:keep]}…" for name in names]


def _line(text: str) -> Text:
    return Text(f" {text}", no_wrap=True, overflow="ellipsis")


def _current(active: Sequence[Status], quiet: Mapping[int, float]) -> list[str]:
    """A line for each run in which an episode takes long, or in which nothing happens."""
    lines = []
    for status in active:
        parts = [f"episode {status.episodes + 1:,} at step {status.current:,}"] if status.current else []
        if status.seed in quiet:
            parts.append(f"no step for {duration(quiet[status.seed])}")
        if parts:
            lines.append(f"seed {status.seed}: {', '.join(parts)}")
    return lines


def _table(headers: Sequence[str], *, left: Sequence[str]) -> Table:
    """A table with these columns; those in `left` are aligned to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, justify="left" if header in left else "right", no_wrap=True)
    return table


def _fit(width: int, others: Sequence[Sequence[str]], name: int) -> tuple[int, int]:
    """The widths of the bar and of the names, each 0 if there is no room for it.

    Args:
        width: of the terminal.
        others: the cells of each other column, with its header.
        name: the length of the longest name; 0 if there are none.
    """
    room = width - 2 - sum(max(len(line) for cell in cells for line in cell.split("\n")) + 2 for cells in others)
    bar = min(LONGEST_BAR, room - 2 - (name + 2 if name else 0))
    if bar >= SHORTEST_BAR:
        return bar, name
    return 0, min(name, room - 2) if room - 2 >= SHORTEST_NAME else 0


def _runs_table(runs: Sequence[Status], width: int) -> Table:
    evaluated = width >= ROOMY and any(status.evaluated for status in runs)
    headers = ["seed", "steps", *(["steps of\nevaluation"] if evaluated else []), "episodes"]
    headers += [f"mean of\nlast {RECENT}", "steps/s", "left"]
    rows = [_run_cells(status, evaluated=evaluated) for status in runs]
    names = [status.arm for status in runs] if len(runs) > 1 else []  # of one run, the table of learners shows it
    longest = max(map(len, [*names, CONTROL])) if names else 0
    bar, longest = _fit(width, list(zip(headers, *rows, strict=True)), longest)
    more = (["progress"] if bar else []) + ([CONTROL] if longest else [])
    table = _table([*headers, *more], left=more)
    arms = list(dict.fromkeys(["", *names, *(member.name for member in runs[0].members)]))
    short = dict(zip(arms, shorten(arms, longest), strict=True)) if longest else {}
    for status, cells in zip(runs, rows, strict=True):
        progress = [ProgressBar(total=1.0, completed=status.progress, width=bar)] if bar else []
        table.add_row(*cells, *progress, *([Text(short[status.arm])] if longest else []))
    return table


def _run_cells(status: Status, *, evaluated: bool) -> list[str]:
    left = "evaluating" if status.evaluating else "done" if status.finished else duration(status.left)
    counts = [str(status.seed), f"{status.steps:,}"] + ([f"{status.evaluated:,}"] if evaluated else [])
    return [*counts, f"{status.episodes:,}", _number(status.value), f"{status.speed:,.0f}", left]


def _members_table(runs: Sequence[Status], width: int) -> Table:
    """The learners, averaged over the runs."""
    members = [_average([status.members[k] for status in runs]) for k in range(len(runs[0].members))]
    states = [_state(member, runs, wide=width >= WIDE) for member in members]
    headers = [f"mean of\nlast {OWN}", "episodes"]
    cells = [[_number(member.value), f"{member.episodes:,}"] for member in members]
    if width >= ROOMY and any(member.faults for member in members):
        headers.append("faults")
        cells = [[*row, str(member.faults or "")] for row, member in zip(cells, members, strict=True)]
    names = [member.name for member in members]
    others = [*zip(headers, *cells, strict=True), ["control"], states]
    bar, longest = _fit(width, others, max(map(len, [*names, "learner"])))
    control = f"control of\nlast {WINDOW}" if bar else "control"
    table = _table(["learner", control, *headers, ""], left=["learner", control, ""])
    for member, name, row, state in zip(members, shorten(names, max(longest, SHORTEST_NAME)), cells, states, strict=True):
        filled = "█" * round(bar * member.share)
        share = Text(f"{filled:<{bar}} {member.share:4.0%}", style="cyan")
        in_control = any(status.arm == member.name for status in runs)
        style = "bold" if in_control else "dim" if member.away else ""
        table.add_row(Text(name, style=style), share, *row, Text(state, style="red" if member.away else "green"))
    return table


def _average(members: Sequence[MemberStatus]) -> MemberStatus:
    """One learner over several runs: means of shares and values, sums of counts."""
    values = [member.value for member in members if math.isfinite(member.value)]
    return MemberStatus(
        name=members[0].name,
        episodes=sum(member.episodes for member in members),
        share=sum(member.share for member in members) / len(members),
        value=sum(values) / len(values) if values else math.nan,
        faults=sum(member.faults for member in members),
        away=max(member.away for member in members),
    )


def _state(member: MemberStatus, runs: Sequence[Status], *, wide: bool) -> str:
    control = sum(status.arm == member.name for status in runs)
    if control:
        return CONTROL if len(runs) == 1 else f"{CONTROL}: {control}"
    if member.away:
        return f"dismissed for {member.away} episodes" if wide else f"dismissed {member.away}"
    return ""


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"
