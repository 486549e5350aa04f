"""The live view of a training.

In a terminal or a notebook, it is a table that is updated; otherwise, plain lines on stderr.
"""

import math
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from esbas.errors import counted
from esbas.training.display.notebook import WIDTH, NotebookArea, find_notebook
from esbas.training.display.status import Status
from esbas.training.display.tables import duration, picture

PLAIN_EVERY = 10.0
"""Seconds between two plain lines of one run."""
NOTEBOOK_EVERY = 0.5
"""Seconds between two updates of a notebook, which stores and sends each of them."""
TICK = 1.0
"""Seconds between two updates while no run reports anything."""
QUIET = 2.0
"""Seconds without a report after which a learner is probably busy: the view then shows them."""


class LiveView:
    """Shows the status of the runs, also while no run reports anything. A context manager.

    In a terminal, a table is updated in place. In a notebook, so is the output of the cell,
    whenever a run reports something. Otherwise, there is a line at once and then one from time to
    time, for log files.

    Args:
        title: of the training.
        seeds: of the runs that will report; those that have not yet are shown as waiting.
        console: where to print; by default the notebook, if there is one, or stderr.
        enabled: whether anything is shown at all.
    """

    def __init__(
        self,
        title: str,
        *,
        seeds: Sequence[int] = (),
        console: Console | None = None,
        enabled: bool = True,
    ) -> None:
        self._title = title
        self._enabled = enabled
        self._notebook: NotebookArea | None = None
        if console is None and enabled:
            self._notebook = find_notebook()
        self._console = Console(stderr=True) if console is None else console
        self._live: Live | None = None
        self._waiting = list(seeds)
        self._runs: dict[int, Status] = {}
        self._start = time.monotonic()
        self._heard: dict[int, float] = {}  # time of the last status of each run
        # Time of the last plain line of each run, and, as None, of the training.
        self._printed: dict[int | None, float] = {None: self._start}
        self._drawn = -math.inf  # time of the last picture in a notebook
        self._notes: list[str] = []
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_moving, daemon=True)

    def __enter__(self) -> "LiveView":
        if not self._enabled:
            return self
        if self._notebook is not None:
            self._draw_in_notebook(time.monotonic())
            return self  # without the thread: it could not draw
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        elif self._waiting:
            self._print(f"{self._title}: starting")
        self._thread.start()
        return self

    def show(self, status: Status) -> None:
        """Show the new status of a run."""
        if not self._enabled:
            return
        with self._lock:
            now = time.monotonic()
            before = self._runs.get(status.seed)
            was_finished = before is not None and before.finished
            ended = status.finished and not was_finished
            self._runs[status.seed] = status
            self._heard[status.seed] = now
            self._waiting = [seed for seed in self._waiting if seed != status.seed]
            for note in status.notes:
                self._note(f"seed {status.seed}: {note}")
            if self._notebook is not None:
                if ended or now - self._drawn >= NOTEBOOK_EVERY:
                    self._draw_in_notebook(now)
            elif self._live is not None:
                self._draw_in_terminal(self._live, now)
            elif ended or self._is_line_due(status, now):
                self._print_line(status, now)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._enabled:
            return
        if self._notebook is not None:
            self._draw_in_notebook(time.monotonic())
            return
        self._ended.set()
        self._thread.join()
        if self._live is not None:
            if self._runs:
                self._draw_in_terminal(self._live, time.monotonic())
            self._live.stop()

    def _keep_moving(self) -> None:
        """Update the view while no run reports anything: a learner may take minutes to learn.

        Runs in a separate thread.
        """
        while not self._ended.wait(TICK):
            with self._lock:
                now = time.monotonic()
                if self._live is not None:
                    self._draw_in_terminal(self._live, now)
                    continue
                for status in self._runs.values():
                    if not status.finished and self._is_line_due(status, now):
                        self._print_line(status, now)
                if not self._runs and now - self._printed[None] >= PLAIN_EVERY:
                    self._printed[None] = now
                    self._print(f"{self._title}: starting for {duration(now - self._start)}")

    def _picture(self, now: float, *, width: int) -> RenderableType:
        title = f"{self._title}, {duration(now - self._start)}"
        quiet = {seed: now - heard for seed, heard in self._heard.items() if now - heard >= QUIET}
        return picture(title, list(self._runs.values()), self._waiting, quiet, width=width)

    def _draw_in_terminal(self, live: Live, now: float) -> None:
        live.update(self._picture(now, width=self._console.width), refresh=True)

    def _draw_in_notebook(self, now: float) -> None:
        """Draw the picture with all notes below it: a notebook has one output area for both."""
        assert self._notebook is not None
        if not self._notebook.is_reachable:
            return
        self._drawn = now
        notes = [Text(f" {note}") for note in self._notes]
        self._notebook.show(Group(self._picture(now, width=WIDTH), *notes))

    def _print_line(self, status: Status, now: float) -> None:
        self._printed[status.seed] = now
        line = f"{self._title}, {plain_line(status)}"
        quiet = now - self._heard[status.seed]
        if quiet >= QUIET:
            line += f", no step for {duration(quiet)}"
        self._print(line)

    def _is_line_due(self, status: Status, now: float) -> bool:
        last = self._printed.get(status.seed)
        return last is None or now - last >= PLAIN_EVERY

    def _note(self, text: str) -> None:
        """Show a note once."""
        if text in self._notes:
            return
        self._notes.append(text)
        if self._notebook is None:
            self._print(f"{self._title}, {text}")

    def _print(self, line: str) -> None:
        self._console.print(Text(line), highlight=False, soft_wrap=True)


def plain_line(status: Status) -> str:
    """Return the status of a run in one line."""
    leader = max(status.learners, key=lambda learner: learner.share)
    away = [learner.name for learner in status.learners if learner.away]
    parts = [
        f"seed {status.seed}: {status.steps:,} steps ({status.progress:.0%})",
        counted(status.episodes, "episode"),
    ]
    if status.current:
        parts.append(f"episode {status.episodes + 1:,} at step {status.current:,}")
    if status.evaluated:
        parts.append(f"{status.evaluated:,} steps of evaluation")
    if status.episodes:
        parts.append(f"mean of recent episodes: {status.value:.4g}")
        parts.append(f"{leader.name!r} in control of {leader.share:.0%}")
    if away:
        parts.append(f"dismissed: {', '.join(away)}")
    if status.evaluating:
        parts.append("evaluating the policies")
    elif status.finished:
        parts.append("finished")
    else:
        parts.append(f"{status.speed:,.0f} steps/s")
        parts.append(f"{duration(status.left)} left")
    return ", ".join(parts)
