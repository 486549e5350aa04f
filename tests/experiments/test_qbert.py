"""`esbas reproduce qbert`: its files, its errors, and finished and damaged results."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from esbas._internal import archive
from esbas.cli import main
from esbas.errors import InvalidValueError
from esbas.experiments.qbert import Qbert, cost, report, sweep
from esbas.experiments.qbert.setup import LEARNERS, find_game
from esbas.training import open_folder

GAME = ["--game", "klax", "--action-repeat", "60"]  # random games end after ten steps
SMALL = [
    *GAME,
    "--steps",
    "40",
    "--update-every",
    "4",
    "--memory",
    "300",
    "--processes",
    "1",
    "--no-tensorboard",
]


def reproduce(*words: str | Path) -> int:
    return main(["reproduce", "qbert", *map(str, words)])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("qbert") / "results"
    assert reproduce(*SMALL, "--out", out) == 0
    return out


def test_the_folder_holds_tables_figures_a_recording_and_a_report(folder):
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "methods.csv",
        "evaluations.csv",
        "hyperparameters.csv",
        "scores.csv",
        "selection.csv",
        "SSBAS",
    }
    assert names >= {
        "figure4.png",
        "figure6.png",
        "figure6-steps.png",
        "best.gif",
        "report.html",
        "summary.json",
    }
    text = (folder / "report.html").read_text()
    assert "This is one run, as in the paper" in text
    assert "40 of the 300,000 agent steps of the profile" in text
    with Image.open(folder / "best.gif") as recording:
        assert recording.n_frames > 1
        # milliseconds
        assert sum(frame.info["duration"] for frame in ImageSequence.Iterator(recording)) <= 30_000
    assert (folder / "best.gif").stat().st_size < 5e6


def test_scores_are_those_of_the_log_of_the_training(folder):
    games = table(folder / "scores.csv")
    log = table(folder / "SSBAS" / "runs" / "seed-0" / "episodes.csv")
    assert [
        (row["episode"], row["agent steps"], row["network"], float(row["score"])) for row in games
    ] == [(row["episode"], row["steps"], row["learner"], float(row["value"])) for row in log]
    assert {row["method"] for row in games} == {"SSBAS"}
    summary = json.loads((folder / "summary.json").read_text())
    selector = summary["methods"]["SSBAS"]
    assert selector["episodes"] == len(log)
    assert selector["score, last 100 episodes"]["mean"] == pytest.approx(
        np.mean([float(row["value"]) for row in log])
    )
    assert sum(summary["selections"].values()) == pytest.approx(1)
    for row in table(folder / "selection.csv"):
        assert sum(float(row[name]) for name in LEARNERS) == pytest.approx(1)
    assert [row["network"] for row in table(folder / "evaluations.csv")] == list(LEARNERS)
    assert summary["random"]["runs"] >= 3


def test_every_network_learns_even_in_a_short_run(folder):
    run = archive.read(folder / "SSBAS" / "runs" / "seed-0" / "checkpoint.npz", "run")
    updates = {
        name: state["learner"]["network"]["updates"] for name, state in run["roster"].items()
    }
    # learning starts with the first batch
    assert updates == dict.fromkeys(LEARNERS, run["steps"] // 4 - 32 // 4)
    assert updates["small 1"] >= 2


def test_a_method_is_an_ordinary_training(folder):
    training = open_folder(folder / "SSBAS")  # without trust: it names no module
    assert training.plan.portfolio.names == LEARNERS
    assert training.config.steps == 40
    learners = training.plan.portfolio.learners
    assert {learner.options["initialization"] for learner in learners} == {"he_uniform"}
    assert all(learner.options["overlap"] for learner in learners)
    assert training.plan.portfolio.memory == {"buffer_size": 300, "stack": 4, "clip_rewards": True}


def test_finished_methods_are_not_run_again(folder, monkeypatch, capsys):
    published = []
    monkeypatch.setattr(
        report,
        "publish",
        lambda results, options, random: published.append((options.seeds, len(random))),
    )
    before = {
        path: path.stat().st_mtime_ns for path in (folder / "SSBAS").rglob("*") if path.is_file()
    }
    assert reproduce(*SMALL, "--checkpoint-every", "1", "--out", folder) == 0
    assert "SSBAS: finished before." in capsys.readouterr().out
    assert before == {
        path: path.stat().st_mtime_ns for path in (folder / "SSBAS").rglob("*") if path.is_file()
    }
    assert published == [((0,), 3)]


def test_other_settings_are_refused_but_networks_alone_can_be_added(folder, tmp_path, capsys):
    assert reproduce(*SMALL, "--seed", "1", "--out", folder) == 2
    assert "seed=0, but this is seed=1" in capsys.readouterr().err
    shutil.copy(folder / "config.json", tmp_path)
    options = {
        "game": "Klax",
        "steps": 40,
        "update_every": 4,
        "memory": 300,
        "action_repeat": 60,
        "out": tmp_path,
    }
    assert "--alone" not in sweep.open_results(Qbert(**options)).command_line
    assert "--alone" in sweep.open_results(Qbert(**options, alone=True)).command_line
    assert "--alone" in json.loads((tmp_path / "config.json").read_text())["again"]
    sweep.open_results(Qbert(**options, alone=True))
    with pytest.raises(InvalidValueError, match="alone=True, but this is alone=None"):
        sweep.open_results(Qbert(**options))


def test_each_network_alone_has_a_folder_of_its_own():
    trainings = Qbert(alone=True, runs=2, seed=3).trainings(Path("results"))
    assert list(trainings) == ["SSBAS", *LEARNERS]
    assert trainings["huge 2"].folder == Path("results/huge-2")
    assert trainings["huge 2"].plan.portfolio.names == ("huge 2",)
    assert trainings["huge 2"].config.selector == "fixed:huge 2"
    assert trainings["SSBAS"].seeds == (3, 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--runs", "0"], "`runs` must be at least 1, but got 0."),
        (["--steps", "0"], "`steps` must be at least 1, but got 0."),
        (["--memory", "20"], "`memory` must be at least 64, two batches, but got 20."),
        (["--memory", "10000000000"], "A replay memory must fit into free memory"),
        (["--update-every", "0"], "`update_every` must be at least 1, but got 0."),
        (["--game", "Qbret"], "There is no Atari game named 'Qbret': did you mean 'Qbert'?"),
        (["--selector", "ssbsa"], "There is no selector named 'ssbsa': did you mean 'ssbas'?"),
        (["--processes", "0"], "`processes` must be at least 1"),
        (["--device", "toaster"], "toaster"),
    ],
)
def test_bad_input_raises_a_clear_error_and_writes_nothing(words, message, tmp_path, capsys):
    assert reproduce("--steps", "20", "--memory", "300", *words, "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["Qbert", "qbert", "ALE/Qbert-v5", "Qbert-v4", "q*bert"])
def test_a_game_has_many_spellings(name):
    assert find_game(name) == "Qbert"
    assert find_game("space_invaders") == "SpaceInvaders"


def test_an_estimate_is_measured_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cost, "SECONDS", 0.0)
    monkeypatch.setattr(cost, "FEWEST", 20)
    assert reproduce(*GAME, "--profile", "paper", "--estimate", "--out", tmp_path / "out") == 0
    found = json.loads((tmp_path / "out" / "estimate.json").read_text())
    assert list(found["rates"]["update"]) == ["small", "large", "huge"]
    assert all(seconds > 0 for seconds in found["rates"]["update"].values())
    memory = next(row["value"] for row in found["estimate"] if row["what"] == "replay memory")
    assert memory == pytest.approx(7.08, rel=0.01)  # GB
    assert "core-hours" in capsys.readouterr().out
    assert not (tmp_path / "out" / "SSBAS").exists()
