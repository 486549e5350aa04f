"""`esbas train ENV` and `esbas example`."""

from dataclasses import dataclass
from pathlib import Path

from esbas._internal.files import write_atomically
from esbas.errors import InvalidValueError
from esbas.reporting.terminal import print_table, print_text
from esbas.specs.portfolios.recipe import example
from esbas.training.config import TrainingConfig
from esbas.training.folder import PORTFOLIO
from esbas.training.reports.next_steps import next_steps
from esbas.training.train import run_config
from esbas.training.training import Training


def main(config: TrainingConfig) -> None:
    """Run `esbas train` with these options."""
    show(run_config(config))


def show(training: Training) -> None:
    """Print the results of a training: the score of the best policy first."""
    summary = training._summary()
    if summary.best_policy():
        print_text(summary.best_policy())
    table = training.table()
    shares = [float(str(share)) for share in table["share at the end [%]"]]
    print_table(
        f"Learners on {training.config.env_name}",
        table.columns,
        table.rows,
        bold=[shares.index(max(shares))],
    )
    print_text(*summary.sentences(), f"Report: {training.report}")
    for purpose, command in next_steps(training._training):
        print_text(f"To {purpose}: {command}")


@dataclass(frozen=True)
class Example:
    """Write a commented portfolio to ./portfolio.toml, to start from.

    It works on CartPole-v1 without changes: esbas train CartPole-v1 --portfolio portfolio.toml
    """

    out: Path = Path(PORTFOLIO)
    """The file."""

    def run(self) -> None:
        if self.out.exists():
            raise InvalidValueError(
                f"The file {str(self.out)!r} exists already: move it, or name another with --out."
            )
        write_atomically(self.out, example().encode())
        print(f"Wrote {self.out}: edit it, then `esbas train CartPole-v1 --portfolio {self.out}`")
