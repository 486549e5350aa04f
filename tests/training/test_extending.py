"""Trainings that become longer, or get more runs."""

import json
import shutil

import pytest

from esbas import cli
from esbas.training import open_folder
from esbas.training.reports.training_report import TrainingSummary
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import read_episodes
from training.programs import assert_same, numbers, words

QUIET = "--no-tensorboard"
TABULAR = [
    "train",
    "FrozenLake-v1",
    "--learners",
    "tabular_q(learning_rate=0.1)",
    "tabular_q(learning_rate=0.5)",
    QUIET,
]


@pytest.fixture(scope="module", autouse=True)
def no_report():
    """Skip the report, which takes longer than these trainings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esbas.training.train.write_report", lambda *_: None)
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
        # the policies were also evaluated at the end of the short run
        for part in (summary, summary["runs"]["0"]):
            part.pop("evaluation steps")
            part.pop("best policy")
        summary["runs"]["0"].pop("seconds")
    assert repr(summaries[0]) == repr(summaries[1])  # NaN included
    before = (short / "config.json").read_bytes()
    # the same again: nothing to do
    assert cli.main(["resume", str(short), "--steps", "200", QUIET]) == 0
    assert (short / "config.json").read_bytes() == before


def test_tabular_learners_and_a_budget_in_episodes(tmp_path):
    short = tmp_path / "short"
    long = tmp_path / "long"
    assert cli.main([*TABULAR, "--episodes", "20", "--out", str(short)]) == 0
    assert cli.main([*TABULAR, "--episodes", "50", "--out", str(long)]) == 0
    assert cli.main(["resume", str(short), "--episodes", "50", QUIET]) == 0
    assert_same(numbers(long), numbers(short))


def test_added_seeds_are_those_of_a_training_with_all_seeds(tmp_path):
    out = tmp_path / "it"
    whole = tmp_path / "whole"
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
        "_reopen": "esbas.training.extending.change_folder",
        "change": "esbas.training.train.continue_training",
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
        (["--steps", "119"], "must be at least what seed 0 has played"),
        (["--episodes", "1"], "must be at least what seed 0 has played"),
        (["--steps", "0"], "`steps` must be at least 1, but got 0"),
        (["--steps", "900", "--episodes", "900"], "Give `steps` or `episodes`, not both"),
        (["--seeds", "-1"], "`seeds` must be at least 0, but got -1"),
    ],
)
def test_what_cannot_be_extended_is_refused(trained, capsys, arguments, sentence):
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    assert cli.main(["resume", str(trained), *arguments, QUIET]) == 2
    output = capsys.readouterr().err
    assert sentence in output
    assert output.count("\n") == 1
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("earlier", [3, [1], {"steps": 3}])
def test_a_damaged_history_is_one_sentence(short, capsys, earlier):
    (short / "config.json").write_text(json.dumps(config(short) | {"earlier": earlier}))
    assert cli.main(["resume", str(short), "--steps", "900"]) == 2
    output = capsys.readouterr().err
    assert "earlier" in output
    assert output.count("\n") == 1
