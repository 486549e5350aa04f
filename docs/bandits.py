"""Update docs/bandits.md: `python docs/bandits.py` writes the table of bandits from their classes.

`python docs/bandits.py RESULTS` also writes the regrets from RESULTS, the results folder of
`esbas reproduce stationary`.
"""

import csv
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from page import copy_figures, fill, table

from esbas.bandits import BANDITS
from esbas.reporting import Estimate

SETTINGS = (
    "fixed arms",
    "changing arms",
    "adversarial rewards",
    "learning arms",
)  # in the order of the page


def parameters(kind: Any) -> str:
    """The bandit's own parameters with their defaults.

    For `None`, it is the formula after "by default" in the docstring.
    """
    cells = []
    for name, parameter in inspect.signature(kind).parameters.items():
        if name in ("n_arms", "memory", "spread", "rng"):
            continue
        formula = re.search(
            rf"^ *{name}: .*?by default `([^`]+)`", inspect.getdoc(kind) or "", flags=re.MULTILINE
        )
        cells.append(
            f"`{name}`: {formula[1]}" if formula else f"`{name}={_short(parameter.default)}`"
        )
    return "; ".join(cells) or "none"


def _short(default: object) -> str:
    return (
        f"{default:g}"
        if isinstance(default, float)
        else f"{default:_}"
        if isinstance(default, int)
        else str(default)
    )


def bandits() -> str:
    """One row for each bandit of the package, by setting and name."""
    registered: list[tuple[str, Any]] = [(name, BANDITS.find(name)) for name in BANDITS]
    ours = [
        (name, kind) for name, kind in registered if kind.__module__.startswith("esbas.bandits.")
    ]
    rows = []
    for name, kind in sorted(ours, key=lambda pair: (SETTINGS.index(pair[1].setting), pair[0])):
        title = f"`{kind.__name__}`" + (
            f" (name: `{name}`)" if name != kind.__name__.lower() else ""
        )
        rows.append([title, kind.setting, kind.use, kind.guarantee, parameters(kind)])
    return table(
        ["class", "setting", "when to use it", "guarantee", "parameters and defaults"], rows
    )


def regrets(results: Path) -> str:
    """The regrets of a finished run."""
    with (results / "regrets.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    cells = [
        [bandit, Estimate(float(regret), float(ci95), int(runs))]
        for bandit, regret, ci95, runs in rows
    ]
    return table(["bandit", "regret"], cells)


def main(results: Path | None = None) -> None:
    """Replace the parts between the marks of the page; copy the figure if there are results."""
    parts = {"bandits": bandits()}
    if results is not None:
        copy_figures(results, {"regrets": "stationary-regrets"})
        parts["regrets"] = regrets(results)
    fill("bandits.md", parts)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
