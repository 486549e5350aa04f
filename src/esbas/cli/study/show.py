"""`esbas study show URL NAME`: shows a study and what its next choice depends on."""

from dataclasses import KW_ONLY, dataclass

from esbas.reporting.terminal import print_table, print_text
from esbas.studies.arguments import Name, Url, as_date, existing_study
from esbas.training.options import join_options


@dataclass(frozen=True)
class ShowStudy:
    """Show a study: its selector, its arms, and what the next choice, or an earlier one, depends on."""

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    _: KW_ONLY
    choice: int | None = None
    """Explain this choice, by its number. Default: the next one."""
    trust: bool = False
    """Import the modules that the study names. Imported modules can run any code: docs/safety.md."""

    def run(self) -> None:
        """Run `esbas study show` with these options."""
        with existing_study(self.url, self.name, trust=self.trust) as study:
            selector, counts = study.description["selector"], study.counts()
            listed = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(counts.items()))
            print_text(
                f"Study {study.name!r} in {study.store.url}",
                f"Selector: {join_options(selector['name'], selector['options'])}, seed {selector['seed']}, epoch {study.epoch}",
                f"Events: {listed or 'none'}; {len(study.open_choices):,} open",
            )
            explained = study.explain(self.choice)
            columns = list(dict.fromkeys(column for row in explained.values() for column in row))
            rows = [[arm, *(row.get(column, "") for column in columns)] for arm, row in explained.items()]
            title = "What the next choice depends on"
            if self.choice is not None:
                asked = study.events_of(self.choice)["asked"]
                chance = "unknown" if asked.propensity is None else f"{asked.propensity:.3g}"
                title = f"Choice {self.choice} was {asked.arm!r} at {as_date(asked.at)} UTC (propensity {chance}); it depended on"
            print_table(title, ["arm", *columns], rows)
