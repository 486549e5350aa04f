"""`esbas study replay URL NAME`: recomputes every choice from the log."""

from dataclasses import KW_ONLY, dataclass

from esbas.cli.study.arguments import Name, Url, existing_study
from esbas.errors import StudyError
from esbas.reporting.terminal import print_text
from esbas.studies import replay


@dataclass(frozen=True)
class ReplayStudy:
    """Recompute every choice of a study from its log alone, and report the first difference."""

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    _: KW_ONLY
    trust: bool = False
    """Import the modules that the study names. They can run any code: docs/safety.md."""

    def run(self) -> None:
        """Run `esbas study replay` with these options."""
        with existing_study(self.url, self.name, trust=self.trust) as study:
            found = replay(study)
        if found.difference is not None:
            raise StudyError(found.difference.message)
        print_text(f"All {found.choices:,} choices in {found.events:,} events are repeated.")
