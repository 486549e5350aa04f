"""`esbas resume FOLDER`: continues a training from its last checkpoints, or extends it."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro

from esbas.training.extension import Extension


@dataclass(frozen=True, kw_only=True)
class Resume(Extension):
    """Continue a training that was stopped or killed.

    It gives the same results as an uninterrupted training.

    esbas resume FOLDER --steps 200000 makes a training longer, finished or not; --seeds 3 4 adds
    runs.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder that `esbas train` wrote."""
    trust: bool = False
    """Import the modules that the folder names. They can run any code: docs/safety.md."""


def main(config: Resume) -> None:
    """Run `esbas resume` with these options."""
    # Imported here, so that the first line of output is not waiting for it.
    from esbas.cli.train import show
    from esbas.training.training import load_training

    options = {field.name: getattr(config, field.name) for field in fields(Extension)}
    show(load_training(config.folder, trust=config.trust).extend(**options))
