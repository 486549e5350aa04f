"""`esbas study list URL`: lists the studies in a store."""

from dataclasses import dataclass

from esbas.cli.study.arguments import Url, as_date, existing_store
from esbas.reporting.terminal import print_table, print_text

_COUNTED = "asked", "told", "withdrawn", "expired"  # kinds of events


@dataclass(frozen=True)
class ListStudies:
    """List the studies in a store."""

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""

    def run(self) -> None:
        """Run `esbas study list` with these options."""
        with existing_store(self.url) as store:
            rows: list[list[object]] = []
            for study in store.studies():
                counts = store.counts(study.id)
                selector = study.description["selector"]
                numbers = [counts.get(kind, 0) for kind in _COUNTED]
                about = [study.name, selector["name"], len(selector["arms"])]
                rows.append([*about, *numbers, as_date(study.created)])
            if rows:
                header = ["study", "selector", "arms at first", *_COUNTED, "created (UTC)"]
                print_table(f"Studies in {store.url}", header, rows)
            else:
                print_text(f"There are no studies in {store.url}: esbas study create creates one.")
