"""`esbas resume FOLDER`: continues a training from its last checkpoints, or extends it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.training.commands.train import train
from esbas.training.config import Callbacks
from esbas.training.extending import extend
from esbas.training.folder import open_folder


@dataclass(frozen=True)
class Resume:
    """Continue a training that was stopped or killed. It gives the same results as an uninterrupted training.

    esbas resume FOLDER --steps 200000 makes a training longer, finished or not; --seeds 3 4 adds runs.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder that `esbas train` wrote."""
    steps: int | None = None
    """A new budget in environment steps, for all runs."""
    episodes: int | None = None
    """A new budget in episodes, instead of steps."""
    seeds: tuple[int, ...] = ()
    """Seeds of runs that are added."""
    jobs: int = 1
    """How many seeds run at the same time."""
    engine: str | None = None
    """Where the runs are executed: sequential, processes, ray (also ray:auto or ray://HOST:PORT for a running cluster), or
    module:Class. Default: processes if several run at the same time."""
    resources: tuple[str, ...] = ()
    """What --engine ray reserves for each run, such as cpus=2 gpus=0.5 memory=4 (in GB). Default: cpus=1."""
    processes: int | None = None
    """Processes that train networks with convolutions beside the acting. Default: usable cores divided by the runs."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints."""
    tensorboard: bool = True
    """Write TensorBoard logs."""
    callbacks: Callbacks = ()
    """Callbacks of your own, such as module:Class: docs/metrics.md."""
    trust: bool = False
    """Import the modules that the folder names. Imported modules can run any code: docs/safety.md."""


def main(config: Resume) -> None:
    """Run `esbas resume` with these options."""
    saving = {"checkpoint_every": config.checkpoint_every, "tensorboard": config.tensorboard, "callbacks": config.callbacks}
    where = {"jobs": config.jobs, "engine": config.engine, "resources": config.resources, "processes": config.processes}
    training = open_folder(config.folder, trust=config.trust, **where, **saving)
    train(extend(training, steps=config.steps, episodes=config.episodes, seeds=config.seeds))
