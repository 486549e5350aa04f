"""Update docs/bandits.md from the results folder of `esbas reproduce stationary`: `python docs/bandits.py RESULTS`."""

import csv
import sys
from pathlib import Path

from page import copy_figures, fill, table

from esbas.reporting import Estimate


def main(results: Path) -> None:
    """Copy the figures, and replace the text between the marks in the page."""
    copy_figures(results, {"regrets": "stationary-regrets"})
    with (results / "regrets.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            [bandit, Estimate(float(regret), float(ci95), int(runs))] for bandit, regret, ci95, runs in list(csv.reader(file))[1:]
        ]
    fill("bandits.md", {"regrets": table(["bandit", "regret"], rows)})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
