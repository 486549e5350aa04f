"""Tables and text on standard output."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from esbas.reporting.cells import is_numeric, table_texts

WIDE = 160  # columns if the output is not a terminal


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, bold: Sequence[int] = ()) -> None:
    """Print a table. `bold` holds the indices of the rows to print in bold."""
    texts = table_texts(rows)
    table = Table(box=box.SIMPLE_HEAD)
    for column, name in enumerate(header):
        justify: Literal["left", "right"] = "right" if all(is_numeric(row[column]) for row in texts) else "left"
        table.add_column(Text(name), justify=justify, overflow="fold")  # in a narrow terminal, fold cells instead of cutting them
    for number, row in enumerate(texts):
        table.add_row(*map(Text, row), style="bold" if number in bold else "")  # Text: brackets are not markup
    print_text(title)
    _console().print(table)


def print_text(*lines: str) -> None:
    """Print lines of text, wrapped at the width of the terminal."""
    for line in lines:
        _console().print(Text(line))


def status(text: str) -> AbstractContextManager[object]:
    """Show the text with a spinner while the block runs, if the output is a terminal."""
    return _console().status(Text(text))


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)
