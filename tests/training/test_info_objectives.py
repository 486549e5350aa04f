"""Objectives that use infos, from the command line, with an environment in a file of the user."""

import re
import signal
import sys

import pytest

from esbas import cli
from esbas._internal import archive
from processes import WAIT, wait_until
from training.programs import assert_same, numbers

TASK = """
import gymnasium
from gymnasium.spaces import Discrete


class Door(gymnasium.Env):
    '''Walk to the door at the right end; the third place is hot.'''

    observation_space, action_space = Discrete(6), Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.steps = 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        self.at = min(max(self.at + (-1, 1, 2)[action], 0), 5)
        is_out = self.at == 5
        info = {"is_success": is_out, "cost": float(self.at == 3), "note": "text"}
        return self.at, float(is_out) - 0.01, is_out, self.steps == 12, info
"""
CONSTRAINED = "constrained_return(limit=0, penalty=2)"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """One file for all tests, because a process imports only one module of a name."""
    path = tmp_path_factory.mktemp("user") / "door_of_infos.py"
    path.write_text(TASK)
    return f"{path}:Door"


def words(task, out, objective, *more):
    return [
        "train",
        task,
        *("--objective", objective),
        *("--learners", "tabular_q", "random"),
        *("--out", str(out)),
        "--no-tensorboard",
        *more,
    ]


def test_a_success_rate(task, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(words(task, out, "success_rate", "--steps", "600")) == 0
    assert "Mean value (success rate)" in capsys.readouterr().out
    assert cli.main(["evaluate", str(out), "--trust", "--episodes", "4"]) == 0
    table = capsys.readouterr().out
    assert re.search(r"success rate +1.00 ± 0 ", table)


def test_a_constraint_is_reported_with_its_cost(task, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(words(task, out, CONSTRAINED, "--steps", "1500")) == 0
    capsys.readouterr()
    assert cli.main(["evaluate", str(out), "--trust", "--episodes", "4"]) == 0
    table = capsys.readouterr().out
    assert "return - 2 * max(0, cost - 0)" in table
    assert re.search(r"^ cost  ", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("objective", "sentence"),
    [
        ("success_rate(key='won')", "must have the key 'won', but 0 of the"),
        ("success_rate(key='note')", "The info 'note' must be a number"),
        ("constrained_return(cost='heat', limit=1, penalty=1)", "must have the key 'heat'"),
        ("constrained_return(limit=1)", "`penalty` of constrained_return is missing"),
        ("succes_rate", "did you mean 'success_rate'"),
    ],
)
def test_a_wrong_key_or_option_is_one_sentence(task, tmp_path, capsys, objective, sentence):
    assert cli.main(words(task, tmp_path / "out", objective, "--steps", "600")) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("esbas: ")
    assert sentence in last


def test_worker_processes_have_the_same_results(task, tmp_path):
    one = tmp_path / "one"
    two = tmp_path / "two"
    options = "--steps", "600", "--seeds", "0", "1", "--selector", "esbas"
    assert cli.main(words(task, one, CONSTRAINED, *options)) == 0
    assert cli.main(words(task, two, CONSTRAINED, *options, "--jobs", "2")) == 0
    for seed in (0, 1):
        assert_same(numbers(one, seed), numbers(two, seed))
    assert "cost" in numbers(two)[1]["data"]["infos"]


def test_a_killed_training_resumes_with_the_same_results(task, tmp_path, launch):
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    options = "--episodes", "1500", "--selector", "esbas"
    assert cli.main(words(task, whole, CONSTRAINED, *options)) == 0
    program = [sys.executable, "-c", "from esbas.cli import program; program()"]
    saving = "--checkpoint-every", "0"
    process = launch(
        [*program, *words(task, broken, CONSTRAINED, *options, *saving)], tmp_path / "log"
    )
    checkpoint = broken / "runs/seed-0/checkpoint.npz"

    def has_begun():
        try:
            return archive.read(checkpoint, "run")["number"] >= 3
        except ValueError:  # not written yet
            return False

    wait_until(has_begun, "a checkpoint")
    process.kill()
    assert process.wait(WAIT) == -signal.SIGKILL
    assert cli.main(["resume", str(broken), "--trust", "--no-tensorboard"]) == 0
    assert_same(numbers(whole), numbers(broken))
