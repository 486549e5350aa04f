"""Tables and text on standard output."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from esbas.reporting.cells import fitted_headers, is_numeric, table_texts, table_width

WIDE = 160  # columns if the output is not a terminal
USUAL = 80  # columns of a terminal
GAP = 2  # columns between two columns of a table
EDGES = 2  # columns beside a table


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, bold: Sequence[int] = ()
) -> None:
    """Print a table. `bold` are the indices of the rows to print in bold.

    In a narrow terminal, headers have several lines; also in a file if the table gets narrow so.
    """
    console = _console()
    texts = table_texts(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    headers = _headers(header, texts, console)
    for column, name in enumerate(headers):
        is_number = all(is_numeric(row[column]) for row in texts)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        # Where this does not suffice, cells are folded instead of cut.
        table.add_column(Text(name), justify=justify, overflow="fold")
    for number, row in enumerate(texts):
        # As `Text`, brackets are not read as markup.
        table.add_row(*map(Text, row), style="bold" if number in bold else "")
    print_text(title)
    console.print(table)


def _headers(header: Sequence[str], texts: Sequence[Sequence[str]], console: Console) -> list[str]:
    """Return the headers, broken for the width of the console, or of a usual one for a file."""
    if not console.is_terminal:
        narrow = fitted_headers(header, texts, width=USUAL - EDGES, gap=GAP)
        if table_width(narrow, texts, gap=GAP) <= USUAL - EDGES:
            return narrow
    return fitted_headers(header, texts, width=console.width - EDGES, gap=GAP)


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
