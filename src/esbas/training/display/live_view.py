"""The live view of a training on stderr: an updated table on a terminal, plain lines otherwise."""

import math
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from esbas.training.display.status import RECENT, Status
from esbas.training.display.tables import duration, picture

PLAIN_EVERY = 10.0
"""Seconds between two plain lines of one run."""
TICK = 1.0
"""Seconds between two updates while no run reports anything."""
QUIET = 2.0
"""Seconds without a report after which a learner is probably busy: the view says how long this has lasted."""


class LiveView:
    """Shows the status of the runs, also while no run reports anything. A context manager.

    Args:
        title: of the training.
        seeds: of the runs that will report; those that have not yet are shown as waiting.
        console: where to print; stderr by default.
    """

    def __init__(self, title: str, *, seeds: Sequence[int] = (), console: Console | None = None) -> None:
        self._title, self._console = title, Console(stderr=True) if console is None else console
        self._waiting = list(seeds)
        self._runs: dict[int, Status] = {}
        self._live: Live | None = None
        self._start = time.monotonic()
        self._heard: dict[int, float] = {}  # time of the last status of each run
        self._printed: dict[int | None, float] = {None: self._start}  # of its last plain line; None: of the training
        self._noted: set[str] = set()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_moving, daemon=True)

    def __enter__(self) -> "LiveView":
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        self._thread.start()
        return self

    def show(self, status: Status) -> None:
        """Show the new status of a run."""
        with self._lock:
            now, before = time.monotonic(), self._runs.get(status.seed)
            ended = status.finished and not (before is not None and before.finished)
            self._runs[status.seed], self._heard[status.seed] = status, now
            self._waiting = [seed for seed in self._waiting if seed != status.seed]
            for note in status.notes:
                self._note(f"seed {status.seed}: {note}")
            if self._live is not None:
                self._draw(now)
            elif ended or now - self._printed.get(status.seed, -math.inf) >= PLAIN_EVERY:
                self._print_line(status, now)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if self._live is not None:
            if self._runs:
                self._draw(time.monotonic())
            self._live.stop()

    def _keep_moving(self) -> None:
        """Update the view while no run reports anything: a learner may take minutes to learn. Runs in its own thread."""
        while not self._ended.wait(TICK):
            with self._lock:
                now = time.monotonic()
                if self._live is not None:
                    self._draw(now)
                    continue
                for status in self._runs.values():
                    if not status.finished and now - self._printed.get(status.seed, -math.inf) >= PLAIN_EVERY:
                        self._print_line(status, now)
                if not self._runs and now - self._printed[None] >= PLAIN_EVERY:
                    self._printed[None] = now
                    self._print(f"{self._title}: starting for {duration(now - self._start)}")

    def _draw(self, now: float) -> None:
        assert self._live is not None
        title = f"{self._title}, {duration(now - self._start)}"
        quiet = {seed: now - heard for seed, heard in self._heard.items() if now - heard >= QUIET}
        drawn = picture(title, list(self._runs.values()), self._waiting, quiet, width=self._console.width)
        self._live.update(drawn, refresh=True)

    def _print_line(self, status: Status, now: float) -> None:
        self._printed[status.seed] = now
        quiet = now - self._heard[status.seed]
        self._print(f"{self._title}, {plain_line(status)}" + (f", no step for {duration(quiet)}" if quiet >= QUIET else ""))

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._print(f"{self._title}, {text}")

    def _print(self, line: str) -> None:
        self._console.print(Text(line), highlight=False, soft_wrap=True)


def plain_line(status: Status) -> str:
    """The status of a run in one line."""
    leader = max(status.members, key=lambda member: member.share)
    away = [member.name for member in status.members if member.away]
    parts = [f"seed {status.seed}: {status.steps:,} steps ({status.progress:.0%}), {_episodes(status.episodes)}"]
    if status.current:
        parts.append(f"episode {status.episodes + 1:,} at step {status.current:,}")
    if status.evaluated:
        parts.append(f"{status.evaluated:,} steps of evaluation")
    if status.episodes:
        parts.append(f"mean of the last {min(RECENT, status.episodes)}: {status.value:.4g}")
        parts.append(f"{leader.name!r} in control of {leader.share:.0%}")
    if away:
        parts.append(f"dismissed: {', '.join(away)}")
    if status.evaluating:
        parts.append("evaluating the policies")
    else:
        parts.append("finished" if status.finished else f"{status.speed:,.0f} steps/s, {duration(status.left)} left")
    return ", ".join(parts)


def _episodes(count: int) -> str:
    return "1 episode" if count == 1 else f"{count:,} episodes"
