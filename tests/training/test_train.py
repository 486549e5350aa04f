"""`esbas train` and `esbas resume` on the command line."""

import csv
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import cli
from esbas.training.runs.episode_log import read_episodes, read_faults
from esbas.training.runs.plan import Plan
from training.programs import SMALL, assert_same, numbers, words


def test_training_from_end_to_end(tmp_path, capsys):
    out = tmp_path / "it"
    assert cli.main(words(out)) == 0
    output = capsys.readouterr()
    assert "CartPole-v1, kalman-thompson, seed 0" in output.err
    assert "finished" in output.err
    assert output.out.startswith("Best policy: ")
    assert "of the recent episodes (the last tenth of the steps" in output.out
    names = {path.name for path in out.iterdir()}
    assert names == {
        "config.json",
        "portfolio.toml",
        "spaces.json",
        "learners.csv",
        "learners.png",
        "learners.svg",
        "runs.csv",
        "training.png",
        "training.svg",
        "summary.json",
        "report.html",
        "runs",
    }
    directory = out / "runs" / "seed-0"
    names = {path.name for path in directory.iterdir()}
    logs = {"episodes.csv", "faults.csv", "evaluations.csv"}
    assert names == logs | {"checkpoint.npz", "best.npz", "clock.json", "tensorboard", ".lock"}
    episodes = read_episodes(directory)
    assert episodes.steps[-2] < 1200 <= episodes.steps[-1]
    np.testing.assert_array_equal(np.cumsum(episodes.lengths), episodes.steps)
    np.testing.assert_array_equal(episodes.values, episodes.lengths)  # CartPole pays 1 per step
    summary = json.loads((out / "summary.json").read_text())
    run = summary["runs"]["0"]
    assert run["episodes"] == len(episodes)
    assert run["value of the whole run"] == pytest.approx(episodes.values.mean())
    rows = list(csv.DictReader((out / "learners.csv").read_text().splitlines()))
    assert len(rows) == 3
    assert sum(float(row["share of control [%]"]) for row in rows) == pytest.approx(100)
    assert json.loads((out / "config.json").read_text())["again"].startswith(
        "esbas train CartPole-v1 --learners "
    )


def test_a_finished_training_is_not_played_again(tmp_path, monkeypatch):
    out = tmp_path / "it"
    assert cli.main(words(out, "--no-tensorboard", steps=60)) == 0
    assert not (out / "runs" / "seed-0" / "tensorboard").exists()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    monkeypatch.setattr(
        "esbas.training.runs.seeds.train_seed",
        lambda *_, **__: pytest.fail("a finished run was played again"),
    )
    assert cli.main(["resume", str(out)]) == 0
    assert cli.main(["resume", str(out), "--jobs", "0"]) == 2
    assert cli.main(["resume", str(out), "--checkpoint-every", "-1"]) == 2
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_seeds_are_independent_of_the_number_of_jobs(tmp_path):
    at_once = tmp_path / "at once"
    in_turn = tmp_path / "in turn"
    seeds = ["--seeds", "0", "3", "--no-tensorboard"]
    assert cli.main(words(at_once, *seeds, "--jobs", "2", steps=120)) == 0
    assert cli.main(words(in_turn, *seeds, steps=120)) == 0
    for seed in (0, 3):
        assert_same(numbers(at_once, seed), numbers(in_turn, seed))
    assert numbers(in_turn, 0)[0] != numbers(in_turn, 3)[0]
    summary = json.loads((at_once / "summary.json").read_text())
    assert summary["value at the end"]["runs"] == 2
    assert summary["value at the end"]["ci95"] is not None


def test_a_run_that_fails_in_its_process_is_named(tmp_path, monkeypatch, capsys):
    out = tmp_path / "it"
    assert cli.main(words(out, "--seeds", "0", "1", "--no-tensorboard", steps=60)) == 0
    for seed in (0, 1):
        directory = out / "runs" / f"seed-{seed}"
        (directory / "clock.json").unlink()
        if seed:
            (directory / "checkpoint.npz").write_bytes(b"rubbish")
    assert (
        cli.main(words(out, "--seeds", "0", "1", "--no-tensorboard", "--jobs", "2", steps=60)) == 2
    )
    output = capsys.readouterr().err
    assert "The run of seed 1 failed: " in output
    assert "damaged" in output


def test_faults_are_shown(tmp_path, capsys):
    out = tmp_path / "it"
    learners = [SMALL.format(0.01), SMALL.format(1e30)]
    assert cli.main(words(out, "--no-tensorboard", learners=learners, steps=300)) == 0
    faults = read_faults(out / "runs" / "seed-0")
    broken = {learner for _, learner, *_ in faults}
    assert len(broken) == 1
    assert "became infinite or NaN" in faults[0][-1]
    assert [dismissed for _, _, _, dismissed, _ in faults[:3]] == [1, 2, 4]
    assert "dismissed: " in capsys.readouterr().err
    assert "Faults" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["CartPol-v1"], "did you mean 'CartPole"),
        (["CartPole-v1", "--learners", "dqm"], "did you mean 'dqn'"),
        (["CartPole-v1", "--learners", "dqn(learning_raet=1)"], "did you mean 'learning_rate'"),
        (["CartPole-v1", "--learners", "sb3.sac"], "sb3.sac"),
        (["Pendulum-v1", "--learners", "dqn"], "dqn"),
        (["CartPole-v1", "--selector", "sbas"], "did you mean 'ssbas'"),
        (["CartPole-v1", "--objective", "retrun"], "did you mean 'return'"),
        (["CartPole-v1", "--steps", "0"], "`steps` must be at least 1, but got 0"),
        (
            ["CartPole-v1", "--steps", "9", "--episodes", "9"],
            "Give `steps` or `episodes`, not both",
        ),
        (["CartPole-v1", "--portfolio", "nowhere.toml"], "`esbas example` writes one"),
        (["CartPole-v1", "--seeds", "1", "1"], "`seeds` must be different"),
        (["CartPole-v1", "--seeds", "-1"], "`seeds` must be at least 0"),
        (["CartPole-v1", "--jobs", "0"], "`jobs` must be at least 1"),
        (["CartPole-v1", "--learn-timeout", "0"], "`learn_timeout` must be greater than 0"),
        (
            ["CartPole-v1", "--wrappers", "TimeLimt(max_episode_steps=5)"],
            "did you mean 'TimeLimit'",
        ),
        ([], "try CartPole-v1, FrozenLake-v1 or Pendulum-v1"),
    ],
)
def test_bad_input_raises_before_anything_starts(
    tmp_path, capsys, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *arguments]) == 2
    output = capsys.readouterr().err
    assert sentence in output
    assert output.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_another_portfolio_in_the_same_file_is_another_training(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "portfolio.toml"
    file.write_text('[[learner]]\nalgorithm = "random"\n')
    command = [
        "train",
        "CartPole-v1",
        "--portfolio",
        "portfolio.toml",
        "--episodes",
        "3",
        "--no-tensorboard",
    ]
    assert cli.main(command) == 0
    Path("esbas-CartPole-v1/runs/seed-0/clock.json").unlink()  # unfinished
    file.write_text('[[learner]]\nalgorithm = "random"\nname = "other"\n')
    capsys.readouterr()
    assert cli.main(command) == 0
    assert "a training with portfolio='a file with other content'" in capsys.readouterr().err
    assert esbas.load_training("esbas-CartPole-v1-2").learners == ("other",)
    # the folder has its own copy of the portfolio
    assert cli.main(["resume", "esbas-CartPole-v1"]) == 0


def test_the_example_works_as_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["example"]) == 0
    assert cli.main(["example"]) == 2  # nothing is overwritten
    assert "The file 'portfolio.toml' exists already: move it" in capsys.readouterr().err
    assert (
        cli.main(
            [
                "train",
                "CartPole-v1",
                "--portfolio",
                "portfolio.toml",
                "--steps",
                "60",
                "--no-tensorboard",
            ]
        )
        == 0
    )


def test_folders_of_other_commands_are_not_resumed(tmp_path, capsys):
    assert cli.main(["resume", str(tmp_path / "nowhere")]) == 2
    assert "has no config.json" in capsys.readouterr().err
    about = {
        "command": "esbas demo",
        "config": {},
        "again": "esbas demo --runs 3",
        "versions": {},
        "platform": "",
    }
    (tmp_path / "config.json").write_text(json.dumps(about))
    assert cli.main(["resume", str(tmp_path)]) == 2
    assert "`esbas demo --runs 3` continues it" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{")
    assert cli.main(["resume", str(tmp_path)]) == 2
    assert "config.json' must be JSON" in capsys.readouterr().err


@pytest.mark.slow
def test_cartpole_is_solved_with_default_options(tmp_path, monkeypatch):
    """At least 4 of 5 seeds have a mean return of 400 or more after 60,000 steps."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "CartPole-v1", "--seeds", *"01234"]) == 0
    runs = json.loads(Path("esbas-CartPole-v1/summary.json").read_text())["runs"]
    ends = [run["value at the end"] for run in runs.values()]
    print("means of the recent episodes:", ends)
    assert sum(end >= 400 for end in ends) >= 4


class Frail(gym.Wrapper[Any, Any, Any, Any]):
    """CartPole that fails in its third episode while `frail` is true."""

    frail = True
    episodes = 0

    def reset(self, **options):
        Frail.episodes += 1
        return super().reset(**options)

    def step(self, action):
        if Frail.frail and Frail.episodes == 3:
            raise OSError("the robot is\nunplugged")
        return super().step(action)


def test_an_environment_that_fails_is_an_error_and_nothing_is_lost(tmp_path, capsys, monkeypatch):
    whole = tmp_path / "whole"
    out = tmp_path / "it"
    make = Plan.wrapped_env
    assert cli.main(words(whole, "--no-tensorboard", steps=150)) == 0
    monkeypatch.setattr(
        Plan, "wrapped_env", lambda self, **options: (Frail(make(self, **options)[0]), ())
    )
    saving = ["--no-tensorboard", "--checkpoint-every", "0"]
    assert cli.main(words(out, *saving, steps=150)) == 2
    output = capsys.readouterr().err.splitlines()[-1]
    assert "The run of seed 0 failed: OSError: the robot is unplugged" in output
    assert f"`esbas resume {out}` continues" in output
    assert 'raise OSError("the robot is' in (out / "runs" / "seed-0" / "error.txt").read_text()
    assert len(read_episodes(out / "runs" / "seed-0")) == 2
    monkeypatch.setattr(Frail, "frail", False)
    assert cli.main(["resume", str(out), *saving]) == 0
    assert_same(numbers(whole), numbers(out))
    assert not (out / "runs" / "seed-0" / "error.txt").exists()
