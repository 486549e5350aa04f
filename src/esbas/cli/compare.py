"""`esbas compare FOLDER...`: compares trainings on the same environment."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Compare:
    """Compare trainings on the same environment: a table, and all learning curves in one figure.

    Unfinished trainings are compared by the episodes that they have. Files of an earlier comparison
    are overwritten.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...")]
    """One or more folders that `esbas train` wrote."""
    _: KW_ONLY
    threshold: float | None = None
    """The table shows the steps until the mean value of recent episodes reaches it.
    Default: 90 % of the way from the worst to the best mean."""
    out: Path = Path("esbas-compare")
    """The folder for table, figure and report."""
    trust: bool = False
    """Import the modules that the folders name. They can run any code: docs/safety.md."""


def main(config: Compare) -> None:
    """Run `esbas compare` with these options."""
    # Imported here, so that the first line of output is not waiting for it.
    from esbas.reporting.terminal import print_table, print_text
    from esbas.training.compare import compare

    comparison = compare(
        *config.folders, threshold=config.threshold, out=config.out, trust=config.trust
    )
    table = comparison.table()
    print_table(f"Trainings on {comparison.env}", table.columns, table.rows)
    print_text(*comparison.notes, f"Report: {comparison.report}")
