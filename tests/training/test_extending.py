"""Trainings that become longer, or get more runs."""

import json
import shutil

import pytest

from esbas import cli
from esbas.training import open_folder
from esbas.training.reports.training_report import TrainingSummary
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import read_episodes
from training.programs import OWN, assert_same, numbers, words

QUIET = "--no-tensorboard"
TABULAR = ["train", "FrozenLake-v1", "--members", "tabular_q(rate=0.1)", "tabular_q(rate=0.5)", QUIET]


@pytest.fixture(scope="module", autouse=True)
def no_report():
    """Skip the report, which takes longer than these trainings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esbas.training.commands.train.publish", lambda *_: None)
        yield


def config(out):
    return json.loads((out / "config.json").read_text())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished training of 120 steps."""
    out = tmp_path_factory.mktemp("extending") / "short"
    assert cli.main(words(out, QUIET, steps=120)) == 0
    return out


@pytest.fixture
def short(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "short")


def test_a_longer_budget_gives_the_results_of_a_longer_run(short, tmp_path):
    long = tmp_path / "long"
    assert cli.main(words(long, QUIET, steps=200)) == 0
    assert cli.main(["resume", str(short), "--steps", "200", QUIET]) == 0
    assert_same(numbers(long), numbers(short))
    assert config(short)["config"] == config(long)["config"]
    assert config(short)["again"] == config(long)["again"]
    assert config(short)["earlier"] == [{"steps": 120, "seeds": [0]}]
    assert read_clock(short / "runs" / "seed-0").finished
    summaries = [TrainingSummary(open_folder(out)).summary() for out in (long, short)]
    for summary in summaries:
        for part in (summary, summary["runs"]["0"]):  # the policies were also evaluated at the end of the short run
            part.pop("evaluation steps")
            part.pop("best policy")
        summary["runs"]["0"].pop("seconds")
    assert repr(summaries[0]) == repr(summaries[1])  # NaN included
    before = (short / "config.json").read_bytes()
    assert cli.main(["resume", str(short), "--steps", "200", QUIET]) == 0  # the same again: nothing to do
    assert cli.main(words(short, QUIET, steps=200)) == 0
    assert (short / "config.json").read_bytes() == before


def test_tabular_learners_and_a_budget_in_episodes(tmp_path):
    short, long = tmp_path / "short", tmp_path / "long"
    assert cli.main([*TABULAR, "--episodes", "20", "--out", str(short)]) == 0
    assert cli.main([*TABULAR, "--episodes", "50", "--out", str(long)]) == 0
    assert cli.main(["resume", str(short), "--episodes", "50", QUIET]) == 0
    assert_same(numbers(long), numbers(short))


def test_added_seeds_are_those_of_a_training_with_all_seeds(tmp_path):
    out, whole = tmp_path / "it", tmp_path / "whole"
    assert cli.main([*TABULAR, "--episodes", "20", "--out", str(out)]) == 0
    assert cli.main([*TABULAR, "--episodes", "20", "--seeds", "0", "3", "--out", str(whole)]) == 0
    for _ in range(2):  # the second time, nothing is left to do
        assert cli.main(["resume", str(out), "--seeds", "3", QUIET]) == 0
    for seed in (0, 3):
        assert_same(numbers(whole, seed), numbers(out, seed))
    assert config(out)["config"]["seeds"] == [0, 3]
    assert config(out)["earlier"] == [{"episodes": 20, "seeds": [0]}]


@pytest.mark.parametrize("last", ["_reopen", "change", "train"])
def test_killed_while_it_is_extended(short, tmp_path, monkeypatch, last):
    """`last` is the last thing that happens before the kill."""

    class Killed(BaseException):
        pass

    def kill(*_, **__):
        raise Killed

    following = {
        "_reopen": "esbas.reporting.Results.change",
        "change": "esbas.training.commands.resume.train",
        "train": "esbas.training.runs.one_run._Checkpoints.save",
    }
    with monkeypatch.context() as patch:
        patch.setattr(following[last], kill)
        with pytest.raises(Killed):
            cli.main(["resume", str(short), "--steps", "180", QUIET])
    assert read_episodes(short / "runs" / "seed-0").steps[-1] >= 120  # the folder can be read
    assert cli.main(["resume", str(short), QUIET]) == 0
    long = tmp_path / "long"
    assert cli.main(words(long, QUIET, steps=120 if last == "_reopen" else 180)) == 0
    assert_same(numbers(long), numbers(short))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--steps", "119"], "a budget is at least what has been played"),
        (["--episodes", "1"], "a budget is at least what has been played"),
        (["--steps", "0"], "the budget is at least 1"),
        (["--steps", "900", "--episodes", "900"], "steps or in episodes"),
        (["--seeds", "-1"], "seeds are >= 0"),
    ],
)
def test_what_cannot_be_extended_is_refused(trained, capsys, arguments, sentence):
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    assert cli.main(["resume", str(trained), *arguments, QUIET]) == 2
    output = capsys.readouterr().err
    assert sentence in output
    assert output.count("\n") == 1
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("more", "command"),
    [
        (["--steps", "900"], "--steps 900` extends it"),
        (["--episodes", "90"], "--episodes 90` extends it"),
        (["--steps", "120", "--seeds", "0", "5", "6"], "--seeds 5 6` extends it"),
    ],
)
def test_the_same_command_with_a_longer_budget_names_the_command_that_extends(trained, capsys, more, command):
    train = ["train", "CartPole-v1", "--members", *OWN, "--out", str(trained), QUIET]
    assert cli.main([*train, *more]) == 2
    output = capsys.readouterr().err
    assert f"`esbas resume {trained} {command}" in output
    assert output.count("\n") == 1


def test_other_differences_are_refused_as_before(trained, capsys):
    assert cli.main(words(trained, QUIET, "--selector", "uniform", steps=900)) == 2
    assert "give another --out" in capsys.readouterr().err


@pytest.mark.parametrize("earlier", [3, [1], {"steps": 3}])
def test_a_damaged_history_is_one_sentence(short, capsys, earlier):
    (short / "config.json").write_text(json.dumps(config(short) | {"earlier": earlier}))
    assert cli.main(["resume", str(short), "--steps", "900"]) == 2
    output = capsys.readouterr().err
    assert "earlier" in output
    assert output.count("\n") == 1


def test_a_folder_that_names_no_selector_continues_with_the_older_default(tmp_path, capsys):
    """Version 0.5 left out the default, which was SSBAS."""
    short, long = tmp_path / "short", tmp_path / "long"
    for out, episodes in ((short, 12), (long, 20)):
        assert cli.main([*TABULAR, "--selector", "ssbas", "--episodes", str(episodes), "--out", str(out)]) == 0
    path = short / "config.json"
    about = config(short)
    assert about["config"].pop("selector") == "ssbas"
    about["again"] = about["again"].replace(" --selector ssbas", "")
    path.write_text(json.dumps(about))
    assert cli.main([*TABULAR, "--selector", "ssbas", "--episodes", "12", "--out", str(short)]) == 0  # the same training
    capsys.readouterr()
    assert cli.main([*TABULAR, "--episodes", "12", "--out", str(short)]) == 2
    output = capsys.readouterr().err
    assert "has the selector ssbas, the default of its version, but this is kalman-thompson" in output
    assert f"`esbas resume {short}` continues it" in output
    assert open_folder(short).plan.selector == "ssbas"
    assert cli.main(["resume", str(short), "--episodes", "20", QUIET]) == 0
    assert_same(numbers(long), numbers(short))
    assert config(short)["config"] == config(long)["config"]  # it is named from now on
