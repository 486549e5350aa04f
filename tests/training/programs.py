"""Helpers for tests of `esbas train`: command lines, and comparison of runs."""

import numpy as np
import pytest

import esbas
from esbas._internal import archive
from esbas.specs.envs import make_with_wrappers
from esbas.training import Plan, TrainingConfig
from esbas.training.runs.plan import make_plan

SMALL = "dqn(hidden=[8], batch_size=8, learning_starts=20, learning_rate={})"
OWN = [SMALL.format(0.001), SMALL.format(0.01), "random"]
FOREIGN = [
    "sb3.dqn(batch_size=8, learning_starts=20, train_freq=2, policy_kwargs={'net_arch': [8]})",
    "sb3.qrdqn(batch_size=8, learning_starts=20, train_freq=4, policy_kwargs={'net_arch': [8]})",
]


def words(out, *more, learners=OWN, steps=1200):
    return [
        "train",
        "CartPole-v1",
        "--learners",
        *learners,
        "--steps",
        str(steps),
        "--out",
        str(out),
        *more,
    ]


def train_without_report(*arguments, **options):
    """Train as `esbas.train` does, but without tables and figures, which take most of the time
    of a short training.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esbas.training.train.write_report", lambda training: None)
        return esbas.train(*arguments, **options)


def plan_of_config(config: TrainingConfig) -> Plan:
    """The plan of a training with these options, as `esbas.train` makes it."""
    made, _ = make_with_wrappers(config.env, wrappers=config.wrappers)
    try:
        return make_plan(config, made)
    finally:
        made.close()


def numbers(out, seed=0):
    """The results that must not depend on interruptions: all episodes, and the state of the run."""
    directory = out / "runs" / f"seed-{seed}"
    state = archive.read(directory / "checkpoint.npz", "run")
    return (directory / "episodes.csv").read_bytes(), state


def assert_same(one, other):
    assert one[0] == other[0]
    assert_equal(one[1], other[1])


def assert_equal(one, other, where="state"):
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_equal(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for k, pair in enumerate(zip(one, other, strict=True)):
            assert_equal(*pair, f"{where}[{k}]")
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=where)
    else:
        assert one == other or (one != one and other != other), where
