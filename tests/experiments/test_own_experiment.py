"""Experiments are discovered; a new one can be a single file in the current folder."""

import inspect
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from esbas import cli, experiments
from esbas.errors import InvalidValueError, UnknownNameError
from esbas.experiments.options import SweepOptions

SHARED = ["--runs", "--seed", "--jobs", "--engine", "--out"]
WAIT = 300  # seconds, for a busy machine

OWN = '''
"""An experiment that is one file outside the package."""

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from esbas import seeding
from esbas.experiments.options import SweepOptions
from esbas.reporting import estimate


def flips(chance, seconds, seed, run):
    time.sleep(seconds)
    return {"heads": seeding.generator(seed, "coins", run).random(100) < chance}


@dataclass(frozen=True, kw_only=True)
class Coins(SweepOptions):
    """How often a coin shows heads."""

    runs: int = 3
    chance: float = 0.5
    """The probability of heads."""
    slow: float = 0.0
    """Seconds that each run takes."""

    def run(self):
        results = self.open_results()
        parts = {}
        for run in range(self.runs):
            parts[f"run-{run}"] = partial(flips, self.chance, self.slow, self.seed, run)
        finished = self.run_parts(results, parts, description="coins", processes=True)
        shares = [part["heads"].mean() for part in finished.values()]
        results.summary({"heads": estimate(np.array(shares))})
        print("finished", results.command_line)


not_a_class = 3
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "coins.py").write_text(OWN)
    return tmp_path


def esbas(folder, *words):
    """Run the installed script in that folder.

    The folder of the script is on sys.path, but the current folder is not.
    """
    command = [Path(sys.executable).with_name("esbas"), *map(str, words)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=WAIT, check=False
    )


def test_an_experiment_in_the_current_folder_runs_by_module_and_class(folder):
    # In worker processes.
    done = esbas(folder, "reproduce", "coins:Coins", "--chance", "1", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    results = folder / "esbas-coins"
    assert json.loads((results / "summary.json").read_text())["heads"] == {
        "mean": 1.0,
        "ci95": 0.0,
        "runs": 3,
    }
    again = json.loads((results / "config.json").read_text())["again"]
    assert f"finished {again}" in done.stdout
    stamps = {path: path.stat().st_mtime_ns for path in (results / "parts").iterdir()}
    (results / "parts" / "run-1.npz").unlink()
    repeated = esbas(folder, *shlex.split(again)[1:])
    assert repeated.returncode == 0, repeated.stderr
    assert "2/3 were finished before" in repeated.stderr
    rerun = [path.name for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp]
    assert rerun == ["run-1.npz"]


def test_it_has_the_shared_options_and_its_own(folder):
    done = esbas(folder, "reproduce", "coins:Coins", "--help")
    assert done.returncode == 0
    assert "How often a coin shows heads." in done.stdout
    assert all(option in done.stdout for option in [*SHARED, "--chance"])
    wrong = esbas(folder, "reproduce", "coins:Coins", "--runs", "0")
    assert (wrong.returncode, wrong.stderr) == (2, "esbas: `runs` must be at least 1, but got 0.\n")
    assert not (folder / "esbas-coins").exists()


@pytest.mark.services
def test_an_interrupted_experiment_continues(folder):
    words = [
        "reproduce",
        "coins:Coins",
        "--runs",
        "6",
        "--seed",
        "3",
        "--jobs",
        "1",
        "--slow",
        "0.5",
    ]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("esbas"), *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        deadline = time.monotonic() + WAIT
        while not list(folder.glob("esbas-coins/parts/*.npz")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT)
    finally:
        with suppress(ProcessLookupError):  # the whole group has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 130, errors
    assert "the same command continues" in errors
    assert esbas(folder, *words).returncode == 0
    assert esbas(folder, *words, "--out", "uninterrupted").returncode == 0
    summaries = [
        (folder / name / "summary.json").read_bytes() for name in ("esbas-coins", "uninterrupted")
    ]
    assert summaries[0] == summaries[1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("coins:Coin", "There is no object in module 'coins' named 'Coin': did you mean 'Coins'?"),
        (
            "coins:not_a_class",
            "An experiment must be a class with a method `run`, but 'coins:not_a_class' is 3",
        ),
        ("no_such_module:Coins", "There is no module named 'no_such_module'"),
        ("gridword", "There is no experiment named 'gridword': did you mean 'gridworld'?"),
    ],
)
def test_an_object_that_is_not_an_experiment_raises_a_clear_error(
    folder, monkeypatch, name, message
):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "coins", raising=False)
    with pytest.raises((InvalidValueError, UnknownNameError)) as error:
        experiments.find_experiment(name)
    assert message in str(error.value)


def test_packages_that_declare_an_experiment_are_found(tmp_path, monkeypatch):
    for name, text in {
        "mine": '"""My summary.\n\nMore."""\nEXPERIMENT = 1\n',
        "helper": '"""Not an experiment."""\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    before = experiments.summaries()
    names = {"bounds", "control", "dialogue", "gridworld", "qbert", "small_grid", "stationary"}
    assert set(before) == names
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    assert experiments.summaries() == before | {"mine": "My summary."}


@pytest.mark.parametrize(
    "name", ["bounds", "control", "dialogue", "gridworld", "qbert", "stationary"]
)
def test_all_experiments_have_one_shape(name):
    experiment = experiments.find_experiment(name)
    assert issubclass(experiment, SweepOptions)
    assert experiment.command == f"esbas reproduce {name}"
    modules = {path.name for path in Path(inspect.getfile(experiment)).parent.glob("*.py")}
    assert modules >= {"__init__.py", "setup.py", "sweep.py", "report.py"}


@pytest.mark.parametrize(
    "words",
    [
        ["gridworld", "--runs", "2", "--episodes", "20", "--also", "uniform"],
        ["dialogue", "--rows", "simple + constant-1.01", "--runs", "1"],
        ["bounds", "--runs", "2", "--horizon", "256"],
        ["stationary", "--runs", "1", "--rounds", "5"],
    ],
    ids=lambda words: words[0],
)
def test_every_experiment_runs_on_any_engine(tmp_path, monkeypatch, words):
    # Figures take time.
    monkeypatch.setattr(f"esbas.experiments.{words[0]}.publish", lambda *_: None)
    parts = []
    for engine in ("threads", "processes"):
        out = tmp_path / engine
        assert (
            cli.main(["reproduce", *words, "--jobs", "2", "--engine", engine, "--out", str(out)])
            == 0
        )
        parts.append({path.name: dict(np.load(path)) for path in sorted((out / "parts").iterdir())})
    assert len(parts[0]) > 1
    np.testing.assert_equal(parts[1], parts[0])
