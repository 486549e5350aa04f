"""The tables of the live view, fitted to the width of the terminal.

Bars become shorter first, then names.
"""

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from esbas.training import recent
from esbas.training.display.status import OWN, LearnerStatus, Status

LONGEST_BAR = 24
SHORTEST_BAR = 5
SHORTEST_NAME = 12
ROOMY = 72  # columns of a terminal with room for optional columns
WIDE = 100  # with room for whole phrases
MOST_RUNS = 12  # rows of runs
CONTROL = "in control"


def picture(
    title: str,
    runs: Sequence[Status],
    waiting: Sequence[int],
    quiet: Mapping[int, float],
    *,
    width: int,
) -> RenderableType:
    """Return the whole view.

    Args:
        title: the first line.
        runs: all runs that have started.
        waiting: seeds of the runs that have not.
        quiet: seconds without a report, for runs where this has lasted longer than usual.
        width: of the terminal.
    """
    runs = sorted(runs, key=lambda status: status.seed)
    active = [status for status in runs if not status.finished]
    shown = list(runs)
    if len(runs) > MOST_RUNS:
        shown = active or runs[-1:]
    parts: list[RenderableType] = [Text(title, style="bold", no_wrap=True, overflow="ellipsis")]
    if shown:
        parts.append(_runs_table(shown, width))
    if len(shown) < len(runs):
        parts.append(Text(f" {len(runs) - len(shown)} other runs are finished"))
    parts += [_line(line) for line in _current(active, quiet)]
    if waiting:
        noun = "seed" if len(waiting) == 1 else "seeds"
        seeds = ", ".join(str(seed) for seed in waiting)
        parts.append(_line(f"{noun} {seeds}: waiting"))
    if shown:
        parts.append(_learners_table(active or runs[-1:], width))
        parts.append(_line(f"recent: {recent.RULE}", style="dim"))
    return Group(*parts)


def duration(seconds: float) -> str:
    """Return seconds as M:SS or H:MM:SS.

    >>> duration(3725)
    '1:02:05'
    """
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Return the names in at most `width` characters, with an ellipsis near the middle.

    If shortened names would be the same, the ellipsis is elsewhere.

    >>> shorten(["rate 0.1, 3 steps", "rate 0.2, 3 steps"], 12)
    ['rate 0.1…eps', 'rate 0.2…eps']
    """
    keep = max(width - 1, 1)  # characters besides the ellipsis
    different = len(set(names))
    middle_first = sorted(range(keep + 1), key=lambda front: abs(2 * front - keep))
    for front in middle_first:
        short = [_shortened(name, width, front=front, back=keep - front) for name in names]
        if len(set(short)) == different:
            return short
    return [_shortened(name, width, front=keep, back=0) for name in names]


def _shortened(name: str, width: int, *, front: int, back: int) -> str:
    if len(name) <= width:
        return name
    return f"{name[:front]}…{name[len(name) - back :]}"


def _line(text: str, *, style: str = "") -> Text:
    return Text(f" {text}", style=style, no_wrap=True, overflow="ellipsis")


def _current(active: Sequence[Status], quiet: Mapping[int, float]) -> list[str]:
    """Return a line for each run in which an episode takes long, or in which nothing happens."""
    lines = []
    for status in active:
        parts = []
        if status.current:
            parts.append(f"episode {status.episodes + 1:,} at step {status.current:,}")
        if status.seed in quiet:
            parts.append(f"no step for {duration(quiet[status.seed])}")
        if parts:
            lines.append(f"seed {status.seed}: {', '.join(parts)}")
    return lines


def _table(headers: Sequence[str], *, left: Sequence[str]) -> Table:
    """Return a table with these columns; those in `left` are aligned to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, justify="left" if header in left else "right", no_wrap=True)
    return table


def _fit(width: int, others: Sequence[Sequence[str]], name: int) -> tuple[int, int]:
    """Return the widths of the bar and of the names, each 0 if there is no room for it.

    Args:
        width: of the terminal.
        others: the cells of each other column, with its header.
        name: the length of the longest name; 0 if there are none.
    """
    room = width - 2
    for cells in others:
        room -= 2 + max(_width_of(cell) for cell in cells)
    beside_bar = name + 2 if name else 0
    bar = min(LONGEST_BAR, room - 2 - beside_bar)
    if bar >= SHORTEST_BAR:
        return bar, name
    if room - 2 < SHORTEST_NAME:
        return 0, 0
    return 0, min(name, room - 2)


def _width_of(cell: str) -> int:
    """Return the length of the longest line of a cell."""
    return max(len(line) for line in cell.split("\n"))


def _runs_table(runs: Sequence[Status], width: int) -> Table:
    shows_evaluated = width >= ROOMY and any(status.evaluated for status in runs)
    headers = ["seed", "steps", "episodes", "recent\nmean", "steps/s", "left"]
    if shows_evaluated:
        headers.insert(2, "steps of\nevaluation")
    rows = [_run_cells(status, shows_evaluated=shows_evaluated) for status in runs]
    # If there is one run, the table of learners shows which one is in control.
    names = [status.learner for status in runs] if len(runs) > 1 else []
    longest = max(len(name) for name in [*names, CONTROL]) if names else 0
    bar, longest = _fit(width, list(zip(headers, *rows, strict=True)), longest)
    optional = []
    if bar:
        optional.append("progress")
    if longest:
        optional.append(CONTROL)
    table = _table([*headers, *optional], left=optional)
    short = _short_names(runs, names, longest) if longest else {}
    for status, texts in zip(runs, rows, strict=True):
        cells: list[RenderableType] = [*texts]
        if bar:
            cells.append(ProgressBar(total=1.0, completed=status.progress, width=bar))
        if longest:
            cells.append(Text(short[status.learner]))
        table.add_row(*cells)
    return table


def _short_names(runs: Sequence[Status], names: Sequence[str], width: int) -> dict[str, str]:
    """Return the short forms of the names of all learners, also of those not in control."""
    portfolio = [learner.name for learner in runs[0].learners]
    different = list(dict.fromkeys(["", *names, *portfolio]))
    return dict(zip(different, shorten(different, width), strict=True))


def _run_cells(status: Status, *, shows_evaluated: bool) -> list[str]:
    if status.evaluating:
        left = "evaluating"
    elif status.finished:
        left = "done"
    else:
        left = duration(status.left)
    cells = [
        str(status.seed),
        f"{status.steps:,}",
        f"{status.episodes:,}",
        _number(status.value),
        f"{status.speed:,.0f}",
        left,
    ]
    if shows_evaluated:
        cells.insert(2, f"{status.evaluated:,}")
    return cells


def _learners_table(runs: Sequence[Status], width: int) -> Table:
    """Return a table of the learners, averaged over the runs."""
    same_learners = zip(*[status.learners for status in runs], strict=True)
    learners = [_average(in_runs) for in_runs in same_learners]
    states = [_state(learner, runs, wide=width >= WIDE) for learner in learners]
    headers = [f"own mean\nlast {OWN}", "episodes"]
    rows = [[_number(learner.value), f"{learner.episodes:,}"] for learner in learners]
    if width >= ROOMY and any(learner.faults for learner in learners):
        headers.append("faults")
        for row, learner in zip(rows, learners, strict=True):
            row.append(str(learner.faults or ""))
    names = [learner.name for learner in learners]
    others = [*zip(headers, *rows, strict=True), ["control"], states]
    bar, longest = _fit(width, others, max(len(name) for name in [*names, "learner"]))
    short_names = shorten(names, max(longest, SHORTEST_NAME))
    control = "recent\ncontrol"
    table = _table(["learner", control, *headers, ""], left=["learner", control, ""])
    for learner, name, row, state in zip(learners, short_names, rows, states, strict=True):
        filled = "█" * round(bar * learner.share)
        table.add_row(
            Text(name, style=_style(learner, runs)),
            Text(f"{filled:<{bar}} {learner.share:4.0%}", style="cyan"),
            *row,
            Text(state, style="red" if learner.away else "green"),
        )
    return table


def _style(learner: LearnerStatus, runs: Sequence[Status]) -> str:
    """Return the style of a learner's name."""
    if any(status.learner == learner.name for status in runs):
        return "bold"
    return "dim" if learner.away else ""


def _average(in_runs: Sequence[LearnerStatus]) -> LearnerStatus:
    """Return one learner over several runs: means of shares and values, sums of counts."""
    values = [each.value for each in in_runs if math.isfinite(each.value)]
    return LearnerStatus(
        name=in_runs[0].name,
        episodes=sum(each.episodes for each in in_runs),
        share=sum(each.share for each in in_runs) / len(in_runs),
        value=sum(values) / len(values) if values else math.nan,
        faults=sum(each.faults for each in in_runs),
        away=max(each.away for each in in_runs),
    )


def _state(learner: LearnerStatus, runs: Sequence[Status], *, wide: bool) -> str:
    controlled = sum(status.learner == learner.name for status in runs)
    if controlled:
        return CONTROL if len(runs) == 1 else f"{CONTROL}: {controlled}"
    if learner.away:
        return f"dismissed for {learner.away} episodes" if wide else f"dismissed {learner.away}"
    return ""


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"
