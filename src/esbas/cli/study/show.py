"""`esbas study show URL NAME`: shows a study and what its next choice depends on."""

from dataclasses import KW_ONLY, dataclass

from esbas.cli.study.arguments import Name, Url, as_date, existing_study
from esbas.reporting.terminal import print_table, print_text
from esbas.specs.options import join_options
from esbas.studies import Study


@dataclass(frozen=True)
class ShowStudy:
    """Show a study: its selector, its arms, and what a choice depends on."""

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    _: KW_ONLY
    choice: int | None = None
    """Explain this choice, by its number. Default: the next one."""
    trust: bool = False
    """Import the modules that the study names. They can run any code: docs/safety.md."""

    def run(self) -> None:
        """Run `esbas study show` with these options."""
        with existing_study(self.url, self.name, trust=self.trust) as study:
            selector = study.description["selector"]
            text = join_options(selector["name"], selector["options"])
            print_text(
                f"Study {study.name!r} in {study.store.url}",
                f"Selector: {text}, seed {selector['seed']}, epoch {study.epoch}",
                f"Events: {_events(study)}; {len(study.open_choices):,} open",
            )
            explained = study.explain(self.choice)
            columns: list[str] = []
            for row in explained.values():
                columns += [column for column in row if column not in columns]
            rows: list[list[object]] = []
            for arm, row in explained.items():
                rows.append([arm, *(row.get(column, "") for column in columns)])
            print_table(self._title(study), ["arm", *columns], rows)

    def _title(self, study: Study) -> str:
        if self.choice is None:
            return "What the next choice depends on"
        asked = study.events_of(self.choice)["asked"]
        chance = "unknown" if asked.propensity is None else f"{asked.propensity:.3g}"
        chosen = f"Choice {self.choice} was {asked.arm!r} at {as_date(asked.at)} UTC"
        return f"{chosen} (propensity {chance}); it depended on"


def _events(study: Study) -> str:
    """Return how many events of each kind there are, in words."""
    listed: list[str] = []
    for kind, count in sorted(study.counts().items()):
        listed.append(f"{count:,} {kind.replace('_', ' ')}")
    return ", ".join(listed) or "none"
