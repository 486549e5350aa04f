"""Update docs/qbert.md: `python docs/qbert.py [FOLDER ...]`.

Each FOLDER is one of `esbas reproduce qbert`: of a run, whose tables and figures are copied, or of
`--estimate`, one for each profile. The table of hyperparameters comes from the code.
"""

import csv
import sys
from contextlib import suppress
from pathlib import Path

from page import command, copy_figures, fill, read, table

from esbas.experiments.qbert.profiles import hyperparameters


def main(folders: list[Path]) -> None:
    """Replace the text between the marks in the page."""
    parts = {"hyperparameters": table(*hyperparameters())}
    estimates = [folder for folder in folders if (folder / "estimate.json").exists()]
    if estimates:
        parts["cost"] = cost_table(estimates)
    for results in folders:
        if results not in estimates:
            copy_figures(results, {"figure4": "qbert-game", "figure6": "qbert-scores"})
            parts["run"] = run_text(results)
    fill("qbert.md", parts)


def run_text(results: Path) -> str:
    """The section about a run."""
    shown = "![Scores and selections over games](figures/qbert-scores.png)"
    return "\n\n".join(
        [
            command(results),
            shown,
            rounded(results / "methods.csv"),
            rounded(results / "evaluations.csv"),
        ]
    )


def rounded(path: Path) -> str:
    """A CSV file as a table, with three digits of each number. Unknown values become dashes."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return table(header, [[number(cell) for cell in row] for row in rows])


def number(cell: str) -> str | None:
    """The cell, rounded if it is a number."""
    with suppress(ValueError):
        return short(float(cell))
    return cell or None


def cost_table(folders: list[Path]) -> str:
    """A column for each profile."""
    found = {
        read(folder, "config")["config"]["profile"]: read(folder, "estimate")["estimate"]
        for folder in folders
    }
    rows = [
        [
            row["what"],
            *(short(of_profile[number]["value"]) for of_profile in found.values()),
            row["unit"],
        ]
        for number, row in enumerate(next(iter(found.values())))
    ]
    return table(["", *(f"profile {name}" for name in found), "unit"], rows)


def short(value: object) -> str:
    """Three digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
