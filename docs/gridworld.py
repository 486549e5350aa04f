"""Update docs/gridworld.md: `python docs/gridworld.py RESULTS [VARIANT ...]`.

These are results folders of `esbas reproduce gridworld`. RESULTS is that of the run at the paper's
scale; its tables and figures are copied. Each VARIANT is that of a run with other settings; it
becomes a row of the table that shows how much the settings that the paper leaves open matter.
"""

import sys
from pathlib import Path

from page import command, copy_figures, csv_table, fill, read, table

RATES = ("0.001", "0.01", "0.1", "0.5")


def main(results: Path, variants: list[Path]) -> None:
    """Copy the figures, and replace the text between the marks in the page."""
    copy_figures(results, {"selection": "gridworld-selection", "time": "gridworld-time"})
    parts = {
        "claims": csv_table(results / "claims.csv"),
        "numbers": csv_table(results / "meta_algorithms.csv"),
    }
    parts["command"] = command(results)
    if variants:
        parts["variants"] = table(HEADER, [variant_row(folder) for folder in variants])
    fill("gridworld.md", parts)


HEADER = [
    "options",
    "optimum",
    "SSBAS",
    "best fixed rate",
    "worst fixed rate",
    "annealed",
    "selected most at 10³, 2.5·10⁴, 10⁶",
]


def variant_row(folder: Path) -> list[str]:
    """A row of the table of variants."""
    config, summary = read(folder, "config")["config"], read(folder, "summary")
    usual = {
        "runs": config["runs"],
        "episodes": 1_000_000,
        "gamma": 0.9,
        "epsilon": 0.01,
        "seed": 0,
    }
    options = [
        f"--{name} {value}"
        for name, value in config.items()
        if value is not None and usual.get(name) != value
    ]
    results = summary["meta_algorithms"]
    by_rate = sorted(RATES, key=lambda rate: results[rate]["mean_transitions"]["mean"])
    shares = results["ssbas"]["selection_ratio"]
    times = [summary["bins"].index(episode) for episode in (1000, 25119, 1_000_000)]
    leaders = [max((shares[rate][time], rate) for rate in RATES)[1] for time in times]
    level = {name: number(results[name]["mean_transitions"]) for name in results}
    best, worst = (f"{rate}: {level[rate]}" for rate in (by_rate[0], by_rate[-1]))
    name = f"`{' '.join(options)}`" if options else "as published"
    return [
        name,
        f"{summary['optimum']:.2f}",
        level["ssbas"],
        best,
        worst,
        level["annealed"],
        ", ".join(leaders),
    ]


def number(estimate: dict[str, float]) -> str:
    """Format a mean and its interval."""
    return f"{estimate['mean']:.2f} ± {estimate['ci95']:.2f}"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
