"""Results on standard output: a table, and where the files are."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from esbas.reporting.report import cell, is_numeric


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, bold: Sequence[int] = ()) -> None:
    """A table; the rows whose numbers are in `bold` stand out."""
    texts = [[cell(value) for value in row] for row in rows]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column, name in enumerate(header):
        table.add_column(name, justify="right" if all(is_numeric(row[column]) for row in texts) else "left")
    for number, row in enumerate(texts):
        table.add_row(*row, style="bold" if number in bold else "")
    Console().print(table)


def print_files(folder: Path) -> None:
    """Where to look."""
    print(f"Report: {folder / 'report.html'}")
