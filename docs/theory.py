"""Update docs/theory.md: `python docs/theory.py RESULTS`.

RESULTS is the results folder of `esbas reproduce bounds`.
"""

import sys
from pathlib import Path
from typing import Any

from page import command, copy_figures, csv_table, fill, read, table

FIGURES = ("exponents", "short_sighted", "theorem_3", "best", "rivals")


def main(results: Path) -> None:
    """Copy the figures, and replace the text between the marks in the page."""
    copy_figures(results, {name: f"bounds-{name.replace('_', '-')}" for name in FIGURES})
    summary = read(results, "summary")
    parts = {
        "command": command(results),
        "verdicts": "\n".join(f"- {text}" for text in summary["verdicts"].values()),
        "cells": cells(summary),
        "theorems": theorems(summary),
        "oracle": csv_table(results / "rivals_oracle.csv"),
        "best": best(summary),
        "growth": csv_table(results / "rivals_growth.csv"),
    }
    fill("theory.md", parts)


def cells(summary: dict[str, Any]) -> str:
    """Table 1 with the measured growth: a row per cell, a column per meta-algorithm."""
    names = list(dict.fromkeys(cell["meta-algorithm"] for cell in summary["cells"]))
    rows: dict[tuple[str, ...], list[str]] = {}
    for cell in summary["cells"]:
        where = tuple(cell[key] for key in ("gap", "own regret of the best", "regret", "Table 1"))
        interval = f"{cell['exponent']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]"
        rows.setdefault(where, []).append(f"{interval}: {cell['verdict']}")
    header = ["gap", "own regret of the best", "regret", "Table 1", *names]
    return table(header, [[*where, *measured] for where, measured in rows.items()])


def theorems(summary: dict[str, Any]) -> str:
    """The measured terms of the theorems, rounded."""
    rows = [
        [f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in summary["theorems"]
    ]
    return table(list(summary["theorems"][0]), rows)


def best(summary: dict[str, Any]) -> str:
    """The meta-algorithms with the smallest regret in each regime.

    The relative pseudo-regret is that of the first one.
    """
    rows = []
    for name, regime in summary["rivals"].items():
        relative = regime["relative"][regime["best"][0]]
        rows.append(
            [name, ", ".join(regime["best"]), f"{relative['mean']:.4g} ± {relative['ci95']:.2g}"]
        )
    return table(
        [
            "regime",
            "smallest regret; the others have overlapping intervals",
            "relative pseudo-regret of the first",
        ],
        rows,
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
