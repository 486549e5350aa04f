"""Progress on stderr: a progress bar on a terminal, plain lines otherwise."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

PLAIN_EVERY = 10.0
"""Seconds between two plain lines."""


class Progress:
    """Shows finished parts, elapsed time, remaining time and a note. A context manager."""

    def __init__(
        self, description: str, *, total: int, done: int = 0, console: Console | None = None
    ) -> None:
        self._description = description
        self._total = total
        self._done = done
        self._console = Console(stderr=True) if console is None else console
        self._bar: Bar | None = None
        self._fresh = 0  # parts finished in this run, not in an earlier one
        self._start = self._last_line = 0.0

    def __enter__(self) -> "Progress":
        self._start = self._last_line = time.monotonic()
        if self._console.is_terminal:
            self._bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=self._console,
            )
            self._row = self._bar.add_task(
                self._description, total=self._total, completed=self._done, note=""
            )
            self._bar.start()
        elif self._done:
            self._print(f"{self._description}: {self._done}/{self._total} were finished before")
        return self

    def advance(self, note: str = "") -> None:
        """Count one more finished part."""
        self._done += 1
        self._fresh += 1
        if self._bar is not None:
            self._bar.update(self._row, advance=1, note=note)
            return
        now = time.monotonic()
        if now - self._last_line >= PLAIN_EVERY or self._done == self._total:
            self._last_line = now
            elapsed = now - self._start
            line = f"{self._description}: {self._done}/{self._total}, {elapsed:.0f} s"
            if self._done < self._total:
                left = elapsed / self._fresh * (self._total - self._done)
                line += f", about {left:.0f} s left"
            if note:
                line += f", {note}"
            self._print(line)

    def _print(self, line: str) -> None:
        # As `Text`, names in it are not read as markup.
        self._console.print(Text(line), highlight=False, soft_wrap=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
