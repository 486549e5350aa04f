"""`esbas study export URL NAME --out FILE`: writes the log of a study as CSV."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from esbas.cli.study.arguments import Name, Url, existing_store
from esbas.reporting.terminal import print_text
from esbas.studies import write_csv


@dataclass(frozen=True)
class ExportStudy:
    """Write the log of a study as CSV, one row per event."""

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    _: KW_ONLY
    out: Path = Path("study.csv")
    """The file."""

    def run(self) -> None:
        """Run `esbas study export` with these options."""
        with existing_store(self.url) as store:
            events = write_csv(store, self.name, self.out)
        print_text(f"Wrote {events:,} events to {self.out}.")
