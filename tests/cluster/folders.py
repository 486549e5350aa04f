"""Comparisons of results folders."""

from pathlib import Path

import numpy as np

TASK = (
    "train",
    "FrozenLake-v1",
    "--learners",
    "tabular_q",
    "random",
    "--no-tensorboard",
    "--checkpoint-every",
    "0",
    "--seeds",
    "0",
    "1",
)
TRAIN = *TASK, "--episodes", "150"
LONG_TRAIN = *TASK, "--episodes", "5000"  # seconds: long enough for a kill in the middle
GRIDWORLD = "reproduce", "gridworld", "--runs", "2", "--episodes", "3000"
DIALOGUE = "reproduce", "dialogue", "--runs", "2", "--rows", "simple-2 + constant-1.01"


def same_arrays(one, other):
    with np.load(one) as first, np.load(other) as second:
        assert first.files == second.files
        for name in first.files:
            np.testing.assert_array_equal(first[name], second[name])


def same_parts(one: Path, other: Path):
    names = sorted(path.name for path in (one / "parts").iterdir())
    assert len(names) > 1
    assert names == sorted(path.name for path in (other / "parts").iterdir())
    for name in names:
        same_arrays(one / "parts" / name, other / "parts" / name)
    assert (one / "summary.json").read_bytes() == (other / "summary.json").read_bytes()


def same_runs(one: Path, other: Path, seeds=(0, 1)):
    for seed in seeds:
        first, second = (folder / "runs" / f"seed-{seed}" for folder in (one, other))
        names = {path.name for path in first.iterdir() if not path.name.startswith(".")}
        assert names >= {
            "checkpoint.npz",
            "clock.json",
            "episodes.csv",
            "evaluations.csv",
            "best.npz",
        }
        assert names == {path.name for path in second.iterdir() if not path.name.startswith(".")}
        for name in ("episodes.csv", "faults.csv", "evaluations.csv"):
            assert (first / name).read_bytes() == (second / name).read_bytes()
        for name in ("checkpoint.npz", "best.npz"):
            same_arrays(first / name, second / name)
