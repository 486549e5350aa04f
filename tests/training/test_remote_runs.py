"""Trainings on machines that do not see the folder.

A lost machine costs what was played since its last checkpoint.
"""

import os
import tempfile
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from engine.remote import Elsewhere
from esbas.errors import SaveFileError, TrainingError
from esbas.training import TrainingConfig
from esbas.training.display.status import Status
from esbas.training.runs.one_run import SaveOptions, is_finished, run_folder
from esbas.training.runs.remote import RunUpdate, write_update
from esbas.training.runs.seeds import train_seeds
from training.programs import plan_of_config

SAVING = SaveOptions(tensorboard=False, checkpoint_every=0.0)


class Fragile(gymnasium.Env):
    """Fails in its 30th episode."""

    observation_space = action_space = gymnasium.spaces.Discrete(2)

    episodes = 0

    def reset(self, **options):
        Fragile.episodes += 1
        if Fragile.episodes == 30:
            raise OSError("the corridor collapsed")
        return 0, {}

    def step(self, action):
        return 0, 1.0, True, False, {}


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Where jobs have their temporary folders."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    # so that updates follow checkpoints at once
    monkeypatch.setattr("esbas.training.runs.one_run.REPORT_EVERY", 0.0)
    return folder


def train(folder, engine, *, task="FrozenLake-v1", seeds=(0, 1), episodes=60):
    config = TrainingConfig(task, learners=("tabular_q", "random"), episodes=episodes, seeds=seeds)
    train_seeds(
        plan_of_config(config),
        seeds,
        folder,
        jobs=1,
        saving=SAVING,
        report=lambda status: None,
        engine=engine,
    )


def same_runs(one, other, seeds=(0, 1)):
    for seed in seeds:
        first = run_folder(one, seed)
        second = run_folder(other, seed)
        assert {path.name for path in first.iterdir()} == {path.name for path in second.iterdir()}
        for name in ("episodes.csv", "evaluations.csv", "faults.csv"):
            assert (first / name).read_bytes() == (second / name).read_bytes()
        for name in ("checkpoint.npz", "best.npz"):
            with np.load(first / name) as a, np.load(second / name) as b:
                assert a.files == b.files
                for key in a.files:
                    np.testing.assert_array_equal(a[key], b[key])


def test_results_are_those_of_this_machine(tmp_path, scratch):
    engine = Elsewhere()
    train(tmp_path / "here", "sequential")
    train(tmp_path / "there", engine)
    same_runs(tmp_path / "here", tmp_path / "there")
    assert sum(isinstance(each, RunUpdate) for each in engine.attempts[0]) > 1
    assert not list(scratch.iterdir())


def test_a_lost_machine_continues_from_the_last_checkpoint(tmp_path):
    def lost(messages):
        return (
            isinstance(messages[-1], Status)
            and messages[-1].episodes >= 40
            and any(map(has_clock, messages))
        )

    engine = Elsewhere(lost)
    train(tmp_path / "here", "sequential")
    train(tmp_path / "there", engine)
    same_runs(tmp_path / "here", tmp_path / "there")
    assert len(engine.attempts) == 3
    assert min(each.episodes for each in engine.attempts[1] if isinstance(each, Status)) > 0


def has_clock(message):
    return isinstance(message, RunUpdate) and "clock.json" in message.names


def test_an_error_names_the_folder_of_the_training(tmp_path, scratch):
    Fragile.episodes = 0
    folder = tmp_path / "out"
    with pytest.raises(TrainingError) as caught:
        train(folder, Elsewhere(), task="training.test_remote_runs:Fragile", seeds=(0,))
    assert "the corridor collapsed" in str(caught.value)
    assert f"traceback: {folder / 'runs' / 'seed-0' / 'error.txt'}" in str(caught.value)
    assert "the corridor collapsed" in (run_folder(folder, 0) / "error.txt").read_text()
    assert str(scratch) not in str(caught.value)


def test_two_trainings_in_one_folder_are_refused(tmp_path):
    class Twice(Elsewhere):
        def map(self, *arguments, **options):
            with pytest.raises(TrainingError, match="another process is training"):
                train(tmp_path, Elsewhere(), seeds=(0,))
            return super().map(*arguments, **options)

    train(tmp_path, Twice(), seeds=(0,))
    assert is_finished(tmp_path, 0)


def test_files_that_are_gone_are_removed(tmp_path):
    first = {"a.csv": b"a", "replay/one": b"1", "checkpoint.npz": b"c"}
    write_update(tmp_path, RunUpdate(seed=0, content=first, names=frozenset(first)))
    (tmp_path / ".lock").touch()
    write_update(
        tmp_path,
        RunUpdate(seed=0, content={"replay/two": b"2"}, names=frozenset({"a.csv", "replay/two"})),
    )
    assert sorted(
        path.name
        for path in tmp_path.rglob("*")
        if path.is_file() and path.parent.name != "scratch"
    ) == [
        ".lock",
        "a.csv",
        "two",
    ]


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_files_outside_the_folder_are_refused(tmp_path, name):
    with pytest.raises(SaveFileError, match="The files of a run must be in its folder"):
        write_update(
            tmp_path / "run", RunUpdate(seed=0, content={name: b""}, names=frozenset({name}))
        )
    assert not (tmp_path / "outside").exists()


def test_folders_that_killed_jobs_left_are_removed(tmp_path, scratch):
    pid = next(number for number in range(4_000_000, 2**31) if not Path(f"/proc/{number}").exists())
    left = scratch / f"esbas-run-{pid}-abc"
    running = scratch / f"esbas-run-{os.getpid()}-abc"
    left.mkdir()
    running.mkdir()
    train(tmp_path / "out", Elsewhere(), seeds=(0,), episodes=2)
    assert list(scratch.iterdir()) == [running]
