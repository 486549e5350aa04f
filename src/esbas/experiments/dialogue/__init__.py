"""The paper's negotiation dialogue (Section 4, Table 2, Figure 2): ESBAS over 32 portfolios.

The learners are linear fitted Q iteration with different features. docs/dialogue.md describes the
experiment.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from esbas.errors import require
from esbas.experiments.dialogue import constants
from esbas.experiments.dialogue.analysis import analyze
from esbas.experiments.dialogue.notation import TableRow
from esbas.experiments.dialogue.report import publish
from esbas.experiments.dialogue.setup import PROTOCOL, RIDGE, TABLE
from esbas.experiments.dialogue.sweep import chosen_rows, run_sweep
from esbas.experiments.options import SweepOptions


@dataclass(frozen=True, kw_only=True)
class Negotiation(SweepOptions):
    """Reproduce the negotiation dialogue of Section 4.

    ESBAS chooses among learners that differ in their features.
    """

    command: ClassVar[str] = "esbas reproduce dialogue"
    extensible: ClassVar[tuple[str, ...]] = ("selector",)

    runs: int = 1000
    """Independent runs of each portfolio and of each learner alone. The paper has 1,000: a quarter
    of an hour on two cores."""
    rows: tuple[str, ...] = ("all",)
    """Portfolios in the notation of the paper, such as "simple-2 + constant-1.01" or
    "8*n-1-simple-2"; all: its 32 portfolios."""
    no_reset: bool = False
    """Never reset the arms of constant policies. By default they are kept only in the rows that the
    paper marks so."""
    generate: bool = False
    """Generate constant policies that are not stored with the package (a minute or more for each
    mean return). The stored ones have seed 0: with another --seed, all constant policies are
    generated anew, from that seed."""
    selector: Literal["esbas", "shared-evidence"] = "esbas"
    """With shared-evidence, all portfolios are also run with this selector, and the table has the
    difference to ESBAS (about three times the work)."""
    ridge: float = RIDGE
    """The weight of |w|² in the regressions of the learners. Not given in the paper."""

    @cached_property
    def table_rows(self) -> dict[str, TableRow]:
        """The rows to run, by name."""
        return chosen_rows(self.rows, no_reset=self.no_reset)

    @cached_property
    def missing_constants(self) -> dict[str, int]:
        """The number of policies needed of each mean return of which too few are stored."""
        seed = self.seed if self.generate else constants.SEED
        return constants.missing(constants.wanted(self.table_rows.values()), seed=seed)

    def check(self) -> None:
        super().check()
        require(self.ridge > 0, f"`ridge` must be greater than 0, but got {self.ridge!r}.")
        if self.missing_constants and not self.generate:
            first, *_ = self.missing_constants
            raise constants.not_stored(first, self.missing_constants[first])

    def settings(self) -> dict[str, object]:
        rows = list(self.table_rows)
        return {
            "rows": ["all"] if rows == list(TABLE) else rows,
            "runs": self.runs,
            "selector": None if self.selector == "esbas" else self.selector,
            "ridge": None if self.ridge == RIDGE else self.ridge,
            "seed": self.seed,
            "generate": bool(self.missing_constants) or None,
        }

    def run(self) -> None:
        results = self.open_results()
        generated = constants.generated(results, self.missing_constants, seed=self.seed)
        policies = constants.stored() | generated
        outcomes = run_sweep(
            self,
            results,
            self.table_rows.values(),
            policies,
            protocol=PROTOCOL._replace(ridge=self.ridge),
            shared=self.selector == "shared-evidence",
        )
        publish(results, analyze(self.table_rows, outcomes), policies)


EXPERIMENT = Negotiation
