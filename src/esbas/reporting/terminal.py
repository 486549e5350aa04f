"""Results on standard output, for people."""

from collections.abc import Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from esbas.reporting.report import cell, is_numeric

WIDE = 160  # columns where there is no terminal: a file need not be folded


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, bold: Sequence[int] = ()) -> None:
    """A table; the rows whose numbers are in `bold` stand out."""
    texts = [[cell(value) for value in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD)
    for column, name in enumerate(header):
        justify: Literal["left", "right"] = "right" if all(is_numeric(row[column]) for row in texts) else "left"
        table.add_column(name, justify=justify, overflow="fold")  # where it is narrow: nothing may be left out
    for number, row in enumerate(texts):
        table.add_row(*map(Text, row), style="bold" if number in bold else "")  # Text: brackets are no markup
    print_text(title)
    _console().print(table)


def print_text(*lines: str) -> None:
    """Lines of text, folded at the width of the terminal."""
    for line in lines:
        _console().print(Text(line))


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)
