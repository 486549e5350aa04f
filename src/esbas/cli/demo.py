"""`esbas demo`: what `esbas train` does, in a minute or two."""

from dataclasses import dataclass
from pathlib import Path

from esbas.training.config import TrainingConfig, usable_cores

ENV = "CartPole-v1"
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Demo:
    """Train four DQNs on CartPole-v1, choose among them online, and write a figure and a report.

    A bandit chooses which DQN controls the next episode, and all of them learn from every episode.
    It is the same as esbas train CartPole-v1 --steps 30000 --seeds 0 1 2 --out esbas-demo.
    """

    steps: int = 30_000
    """The budget of each of the three runs in environment steps."""
    out: Path = Path("esbas-demo")
    """The folder for all files. The same command continues an unfinished demo there."""

    def run(self) -> None:
        # Imported here, so that the first line of output is not waiting for it.
        from esbas.cli.train import show
        from esbas.training.train import run_config

        jobs = min(usable_cores(), len(SEEDS))
        config = TrainingConfig(
            ENV, steps=self.steps, seeds=SEEDS, jobs=jobs, tensorboard=False, out=self.out
        )
        training = run_config(config)
        show(training)
        print(f"Your own environment: esbas train ENV. In Python: esbas.train({ENV!r}).")
