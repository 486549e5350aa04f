import io

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
    text = lines(terminal=False)
    assert text == "work: 3/3, 0 s, note 2\n"  # nothing is ten seconds old
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    text = lines(terminal=False, done=1)
    assert text.splitlines() == [
        "work: 1/3 were finished before",
        "work: 2/3, 0 s, about 0 s left, note 1",
        "work: 3/3, 0 s, note 2",
    ]


def test_on_a_terminal_there_is_a_bar():
    text = lines(terminal=True)
    assert "\x1b[" in text
    assert "3/3" in text
    assert "note 2" in text
