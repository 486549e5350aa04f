"""`esbas resume FOLDER`: a training goes on from where it was, with the same numbers as if it had never stopped."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.training import train
from esbas.training.folder import open_folder


@dataclass(frozen=True)
class Resume:
    """Continue a training that was stopped or killed; its numbers are those of a training that never was."""

    folder: Annotated[Path, tyro.conf.Positional]
    """What `esbas train` wrote to."""
    jobs: int = 1
    """How many seeds go at once, each in a process of its own."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints."""
    tensorboard: bool = True
    """Write TensorBoard logs."""


def main(config: Resume) -> None:
    """Go on."""
    keeping = {"jobs": config.jobs, "checkpoint_every": config.checkpoint_every, "tensorboard": config.tensorboard}
    train(open_folder(config.folder, **keeping))
