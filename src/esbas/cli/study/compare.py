"""`esbas study compare URL NAME --selector TEXT`: what another selector would have achieved."""

from dataclasses import KW_ONLY, dataclass

from esbas.cli.study.arguments import Name, Url, existing_study, read_description
from esbas.reporting.terminal import print_table, print_text
from esbas.studies import compare


@dataclass(frozen=True)
class CompareSelectors:
    """Estimate from the log of a study what another selector would have achieved.

    The estimate holds for arms that do not learn. The log must have propensities, and every arm
    must have had a chance in every choice.
    """

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    _: KW_ONLY
    selector: str
    """The other selector, with options as in "ssbas(xi=1)"."""
    seed: int = 0
    """Seed of the other selector, and of the rounds of the log that are kept."""
    trust: bool = False
    """Import the modules that the study names. They can run any code: docs/safety.md."""

    def run(self) -> None:
        """Run `esbas study compare` with these options."""
        with existing_study(self.url, self.name, trust=self.trust) as study:
            own = study.description["selector"]
            other = read_description(
                self.selector, own["arms"], stationary=own["stationary"], seed=self.seed
            )
            found = compare(study, other, seed=self.seed)
        header = ["selector", "rounds", "mean value", "standard error"]
        rows = [
            [f"{own['name']} (the log)", found.rounds, found.mean, found.error],
            [f"{self.selector} (estimated)", found.matched, found.other_mean, found.other_error],
        ]
        print_table(f"Mean values in study {self.name!r}", header, rows)
        print_text("The estimate is for arms that do not learn from what was chosen.")
