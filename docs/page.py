"""Functions for the scripts of this folder, which copy numbers of finished runs into the pages."""

import csv
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent


def fill(name: str, parts: Mapping[str, str]) -> None:
    """Replace the text between the marks `<!-- part -->` and `<!-- end of part -->` of a page."""
    page = DOCS / name
    text = page.read_text("utf-8")
    for part, content in parts.items():
        begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            sys.exit(
                f"docs/{name} must have marks for {part!r}, but has none: add {begin} and {end}"
            )
        text = f"{before}{begin}\n{content}\n{end}{after}"
    page.write_text(text, "utf-8")


def copy_figures(results: Path, names: Mapping[str, str]) -> None:
    """Copy figures of a results folder to docs/figures. `names` maps old names to new ones."""
    (DOCS / "figures").mkdir(exist_ok=True)
    for old, new in names.items():
        shutil.copy(results / f"{old}.png", DOCS / "figures" / f"{new}.png")


def read(results: Path, name: str) -> Any:
    """Read a JSON file of a results folder."""
    return json.loads((results / f"{name}.json").read_text("utf-8"))


def command(results: Path) -> str:
    """The command that reproduces the results, as a code block."""
    return f"```sh\n{read(results, 'config')['again']}\n```"


def csv_table(path: Path) -> str:
    """Convert a CSV file to a Markdown table."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return table(header, rows)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format rows as a Markdown table. Missing values become dashes."""
    cells = [
        ["–" if value is None else str(value).replace("*", r"\*") for value in row] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *cells])
