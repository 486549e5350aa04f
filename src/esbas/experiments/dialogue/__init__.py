"""The paper's negotiation dialogue (Section 4, Figure 2, Table 2): ESBAS over linear fitted Q iteration, 32 portfolios."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from esbas.errors import require
from esbas.experiments.checks import check_sweep
from esbas.experiments.dialogue import constants
from esbas.experiments.dialogue.analysis import analyse
from esbas.experiments.dialogue.notation import TableRow, parse
from esbas.experiments.dialogue.report import publish
from esbas.experiments.dialogue.setup import PROTOCOL, RIDGE, TABLE
from esbas.experiments.dialogue.sweep import sweep
from esbas.reporting import Results


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Reproduce the negotiation dialogue of Section 4: ESBAS chooses among learners that differ in their features."""

    rows: tuple[str, ...] = ("all",)
    """Portfolios, named as in the paper's table, such as "simple-2 + constant-1.01" or "8*n-1-simple-2"; all: its 32 rows."""
    runs: int = 1000
    """Independent runs of each portfolio and of each of its algorithms alone: the paper has 1,000, half an hour on two cores."""
    no_reset: bool = False
    """Never reset the arms of constant policies, in no row (the paper: in the rows that it marks so)."""
    generate: bool = False
    """Generate the constant policies that are not stored (a minute or more for each mean return)."""
    ridge: float = RIDGE
    """The weight of |w|² in the learners' regressions (the paper does not tell)."""
    seed: int = 0
    """Same seed, same numbers."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many blocks of runs go at once. The numbers do not depend on it."""
    out: Path | None = None
    """Where the results go: table, figures, report.html, summary.json. By default ./esbas-dialogue."""


def main(config: Dialogue) -> None:
    """Run what is not finished yet, and write tables, figures and the report."""
    check_sweep(runs=config.runs, seed=config.seed, jobs=config.jobs)
    require(config.ridge > 0, "ridge > 0", ridge=config.ridge)
    rows, console = chosen_rows(config.rows, no_reset=config.no_reset), Console()
    missing = constants.missing(wanted_constants(rows.values()))
    if missing and not config.generate:
        raise constants.nobody_has(*next(iter(missing.items())))
    options: dict[str, object] = {
        "rows": ["all"] if list(rows) == list(TABLE) else list(rows),
        "runs": config.runs,
        "ridge": config.ridge if config.ridge != RIDGE else None,
        "seed": config.seed,
        "generate": bool(missing) or None,
    }
    folder = Path("esbas-dialogue") if config.out is None else config.out
    results = Results(folder, command="esbas reproduce dialogue", config=options)
    known = constants.stored() | {mu: _generated(results, mu, count, console) for mu, count in missing.items()}
    protocol = PROTOCOL._replace(ridge=config.ridge)
    outcomes, canonical = sweep(
        results, rows.values(), known, runs=config.runs, seed=config.seed, jobs=config.jobs, protocol=protocol
    )
    publish(results, analyse(rows, outcomes, canonical), known)


def chosen_rows(names: Sequence[str], *, no_reset: bool = False) -> dict[str, TableRow]:
    """The rows by name; "all" are those of the paper's table."""
    require(len(names) > 0, "there is a row", "name a portfolio, or all", rows=names)
    texts = [text for name in names for text in (TABLE if name.strip().lower() == "all" else [name])]
    rows = [parse(text, constants=constants.stored()) for text in texts]
    return {row.name: row for row in (row.without_reset() if no_reset else row for row in rows)}


def wanted_constants(rows: Iterable[TableRow]) -> dict[str, int]:
    """The mean returns of the constant policies that rows need, and how many of each: two sets for a second row."""
    wanted: dict[str, int] = {}
    for row in rows:
        for constant in row.constants:
            wanted[constant.mu] = max(wanted.get(constant.mu, 0), constants.POLICIES * (1 + row.second))
    return wanted


def _generated(results: Results, mu: str, count: int, console: Console) -> list[constants.ConstantPolicy]:
    """Policies from an earlier run into this folder, or new ones."""
    name = f"constant-{mu}-policies"
    part = results.part(name)
    if part is None:
        with console.status(f"generating {count} policies of mean return {mu}"):
            part = constants.as_arrays(constants.generate({mu: count}, seed=0)[mu], mu, count)
        results.store_part(name, part)
    return constants.from_arrays(part)
