"""Trainings that the tests write themselves: only logs and clocks, with known values."""

import csv
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from esbas.training import TrainingConfig
from esbas.training.folder import create_folder
from esbas.training.runs.episode_log import EPISODES
from training.programs import plan_of_config

LENGTH = 10  # steps of each episode


def write_training(
    out: Path, *runs: Sequence[float], steps: int = 600, speed: float = 200, **options: Any
) -> Path:
    """Write the folder of a training with the given values of the episodes of each run."""
    config = TrainingConfig(
        "CartPole-v1", learners=("random",), steps=steps, seeds=tuple(range(len(runs))), out=out
    )
    plan = plan_of_config(dataclasses.replace(config, **options))
    training = create_folder(plan.config.folder, plan, [])
    for seed, values in enumerate(runs):
        write_run(training.folder, seed, values, steps=steps, speed=speed, learners=training.names)
    return training.folder


def write_run(
    folder: Path,
    seed: int,
    values: Sequence[float],
    *,
    steps: int = 600,
    speed: float = 200,
    learners: Sequence[str] = ("random",),
) -> None:
    """Write one run. The learners are in control in turn."""
    directory = folder / "runs" / f"seed-{seed}"
    directory.mkdir(parents=True, exist_ok=True)
    rows = [
        (number, LENGTH * number, learners[(number - 1) % len(learners)], value, LENGTH, 1, 1, 0)
        for number, value in enumerate(values, 1)
    ]
    with (directory / "episodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([EPISODES, *rows])
    done = LENGTH * len(values)
    clock = {
        "seconds": done / speed,
        "episodes": len(values),
        "steps": done,
        "finished": done >= steps,
    }
    (directory / "clock.json").write_text(json.dumps(clock))
