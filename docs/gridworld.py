"""Put the numbers of finished runs into docs/gridworld.md: `python docs/gridworld.py RESULTS [VARIANT ...]`, all of them folders.

RESULTS is the folder of the run at the paper's scale: its tables and figures are copied. Each VARIANT is the folder of a run with
another setting: it becomes a row of the table that tells how much the open choices matter.
"""

import csv
import json
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
RATES = ("0.001", "0.01", "0.1", "0.5")


def main(results: Path, variants: list[Path]) -> None:
    """Copy figures, and replace what stands between the marks in the page."""
    for name in ("selection", "time"):
        shutil.copy(results / f"{name}.png", DOCS / "figures" / f"gridworld-{name}.png")
    parts = {"claims": csv_table(results / "claims.csv"), "numbers": csv_table(results / "meta_algorithms.csv")}
    parts["command"] = f"```\n{read(results, 'config')['again']}\n```"
    if variants:
        parts["variants"] = table(HEADER, [variant_row(folder) for folder in variants])
    page = DOCS / "gridworld.md"
    text = page.read_text("utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, opened, rest = text.partition(begin)
        _, closed, behind = rest.partition(end)
        if not (opened and closed):
            sys.exit(
                f"docs/gridworld.md must have a place for {name!r}, but has none: put {begin.strip()} and {end.strip()} there"
            )
        text = before + begin + part + end + behind
    page.write_text(text, "utf-8")


HEADER = ["options", "optimum", "SSBAS", "best fixed rate", "worst fixed rate", "annealed", "selected most at 10³, 2.5·10⁴, 10⁶"]


def variant_row(folder: Path) -> list[str]:
    """One line of the table of variants."""
    config, summary = read(folder, "config")["config"], read(folder, "summary")
    usual = {"runs": config["runs"], "episodes": 1_000_000, "gamma": 0.9, "epsilon": 0.01, "seed": 0}
    options = [f"--{name} {value}" for name, value in config.items() if value is not None and usual.get(name) != value]
    told = summary["meta_algorithms"]
    by_rate = sorted(RATES, key=lambda rate: told[rate]["mean_transitions"]["mean"])
    shares = told["ssbas"]["selection_ratio"]
    times = [summary["bins"].index(episode) for episode in (1000, 25119, 1_000_000)]
    leaders = [max((shares[rate][time], rate) for rate in RATES)[1] for time in times]
    level = {name: number(told[name]["mean_transitions"]) for name in told}
    best, worst = (f"{rate}: {level[rate]}" for rate in (by_rate[0], by_rate[-1]))
    name = f"`{' '.join(options)}`" if options else "as published"
    return [name, f"{summary['optimum']:.2f}", level["ssbas"], best, worst, level["annealed"], ", ".join(leaders)]


def number(estimate: dict[str, float]) -> str:
    """Mean and interval."""
    return f"{estimate['mean']:.2f} ± {estimate['ci95']:.2f}"


def read(folder: Path, name: str) -> Any:
    """A JSON file of a results folder."""
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def csv_table(path: Path) -> str:
    """A CSV file as a table of the page."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return table(header, rows)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Rows as a table of the page."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
