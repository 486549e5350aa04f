import io
import re

from rich.console import Console

from esbas.engine import progress
from esbas.engine.progress import Progress


def lines(*, terminal: bool, done: int = 0) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    with Progress("work", total=3, done=done, console=console) as bar:
        for k in range(done, 3):
            bar.advance(f"note {k}")
    return file.getvalue()


def test_without_a_terminal_plain_lines_are_printed_from_time_to_time(monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_EVERY", 1e9)
    assert re.fullmatch(r"work: 3/3, \d+ s, note 2\n", lines(terminal=False))  # only the last line
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    text = re.sub(r"\d+ s", "N s", lines(terminal=False, done=1))
    assert text.splitlines() == [
        "work: 1/3 were finished before",
        "work: 2/3, N s, about N s left, note 1",
        "work: 3/3, N s, note 2",
    ]


def test_on_a_terminal_there_is_a_bar():
    text = lines(terminal=True)
    assert "\x1b[" in text
    assert "3/3" in text
    assert "note 2" in text
