"""`esbas study create URL NAME`: creates a study."""

from dataclasses import KW_ONLY, dataclass

from esbas.cli.study.arguments import Name, Url, read_description
from esbas.reporting.terminal import print_text
from esbas.studies import open_study


@dataclass(frozen=True)
class CreateStudy:
    """Create a study: a selector with a name and a durable log.

    If it exists already with the same selector, nothing happens.
    """

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    _: KW_ONLY
    arms: tuple[str, ...]
    """The names of the arms: what is chosen from."""
    selector: str = "esbas"
    """A selector or a bandit, with options as in "ssbas(xi=1)". `esbas bandits` lists bandits."""
    stationary: tuple[str, ...] = ()
    """The arms that never learn."""
    seed: int = 0
    """Seed of the selector's random stream."""
    expire_after: float | None = None
    """Seconds until a choice whose value never arrived is given up. Default: never."""
    claim_expires: float | None = None
    """Seconds until an epoch that was claimed, but is not ready, can be claimed again.
    Default: an hour."""

    def run(self) -> None:
        """Run `esbas study create` with these options."""
        selector = read_description(
            self.selector, self.arms, stationary=self.stationary, seed=self.seed
        )
        with open_study(
            self.url,
            self.name,
            selector=selector,
            expire_after=self.expire_after,
            claim_expires=self.claim_expires,
        ) as study:
            arms = ", ".join(study.arms)
            created = f"Study {self.name!r} in {study.store.url}"
            print_text(f"{created}: {self.selector} chooses among {arms}.")
