"""Which folder a training gets: it continues what the same call left unfinished, and takes a
free name otherwise.
"""

import json
import shutil
from pathlib import Path

import pytest

import esbas
from esbas import cli
from esbas.errors import InvalidValueError, SaveFileError, UnknownNameError
from training.programs import assert_same, numbers, train_without_report

OPTIONS = {"learners": "tabular_q", "episodes": 12, "tensorboard": False, "progress": False}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def train(**changed):
    return train_without_report("FrozenLake-v1", **OPTIONS | changed)


def interrupt(folder, seed=0):
    """Leave a training as if it had been killed before it ended."""
    path = Path(folder, "runs", f"seed-{seed}", "clock.json")
    path.write_text(path.read_text().replace('"finished": true', '"finished": false'))


def folders():
    return sorted(path.name for path in Path().iterdir())


def test_the_same_call_continues_an_unfinished_training(capsys):
    first = train()
    before = numbers(first.folder)
    interrupt(first.folder)
    again = train()
    assert again.folder == first.folder == Path("esbas-FrozenLake-v1")
    assert again.finished
    assert_same(before, numbers(again.folder))
    assert folders() == ["esbas-FrozenLake-v1"]
    assert "so the results go to" not in capsys.readouterr().err


def test_a_finished_training_is_left_alone(capsys):
    first = train()
    before = {path: path.read_bytes() for path in first.folder.rglob("*") if path.is_file()}
    again = train()
    assert again.folder == Path("esbas-FrozenLake-v1-2")
    assert {path: path.read_bytes() for path in first.folder.rglob("*") if path.is_file()} == before
    said = capsys.readouterr().err
    assert "esbas-FrozenLake-v1 has a finished training of the same configuration" in said
    assert "so the results go to esbas-FrozenLake-v1-2." in said
    assert train().folder == Path("esbas-FrozenLake-v1-3")


def test_another_configuration_gets_a_free_name(capsys):
    train()
    assert train(selector="uniform").folder == Path("esbas-FrozenLake-v1-2")
    assert (
        "a training with selector='kalman-thompson' instead of 'uniform'" in capsys.readouterr().err
    )
    assert train(episodes=20).folder == Path("esbas-FrozenLake-v1-3")
    assert "`esbas resume esbas-FrozenLake-v1` can extend it" in capsys.readouterr().err


def test_an_unfinished_training_is_continued_under_its_free_name():
    train()
    train(selector="uniform")
    interrupt("esbas-FrozenLake-v1-2")
    assert train(selector="uniform").folder == Path("esbas-FrozenLake-v1-2")
    assert folders() == ["esbas-FrozenLake-v1", "esbas-FrozenLake-v1-2"]


@pytest.mark.parametrize("out", ["mine", Path("deep", "er", "mine")])
def test_a_given_folder_follows_the_same_rules(out):
    assert train(out=out).folder == Path(out)
    interrupt(out)
    assert train(out=out).folder == Path(out)
    assert train(out=out).folder == Path(out).with_name("mine-2")


def test_a_folder_with_other_files_is_left_alone(capsys):
    Path("mine").mkdir()
    Path("mine", "thesis.tex").write_text("important")
    assert train(out="mine").folder == Path("mine-2")
    assert "mine has other files, so the results go to mine-2." in capsys.readouterr().err
    assert [path.name for path in Path("mine").iterdir()] == ["thesis.tex"]


def test_results_of_another_command_are_left_alone(capsys):
    train(out="a")
    esbas.compare("a", out="mine")
    assert train(out="mine").folder == Path("mine-2")
    assert "mine has the results of another command" in capsys.readouterr().err


def test_an_empty_folder_is_used():
    Path("mine").mkdir()
    assert train(out="mine").folder == Path("mine")


def test_what_is_wrong_is_reported_before_a_name_is_chosen(capsys):
    train()
    capsys.readouterr()
    with pytest.raises(UnknownNameError):
        train(selector="sbas")
    assert capsys.readouterr().err == ""
    assert folders() == ["esbas-FrozenLake-v1"]


def test_only_another_format_is_refused_not_another_version():
    folder = train().folder
    interrupt(folder)
    path = folder / "config.json"
    about = json.loads(path.read_text())
    path.write_text(
        json.dumps(about | {"versions": about["versions"] | {"esbas": "0.0.1", "numpy": "1.0"}})
    )
    assert train().folder == folder  # it continues
    interrupt(folder)
    path.write_text(json.dumps(about | {"format": 99}))
    for call in (train, lambda: esbas.load_training(folder)):
        with pytest.raises(SaveFileError, match="has format 99, but this version reads format"):
            call()


def test_a_folder_of_version_0_7_is_refused_in_one_sentence():
    Path("old").mkdir()
    about = {
        "command": "esbas train CartPole-v1",
        "config": {},
        "again": "",
        "versions": {},
        "platform": "",
    }
    Path("old", "config.json").write_text(json.dumps(about))
    with pytest.raises(
        SaveFileError,
        match="has format 1, but this version reads format 2: use the version of esbas",
    ):
        esbas.load_training("old")
    with pytest.raises(SaveFileError, match="has format 1"):
        train(out="old")


def test_options_that_do_not_decide_results_may_change():
    first = train(seeds=[0, 1])
    interrupt(first.folder, 1)
    assert train(seeds=[0, 1], jobs=2, checkpoint_every=1, processes=1).folder == first.folder


def test_config_json_has_fields_and_no_command_to_parse():
    folder = train(seeds=[3], xi=None, selector="ssbas(xi=1)").folder
    about = json.loads((folder / "config.json").read_text())
    assert about["format"] == 2
    assert about["config"]["env"] == "FrozenLake-v1"
    assert about["config"]["seeds"] == [3]
    assert about["learners"] == ["tabular Q"]
    assert "command" not in about
    about["again"] = "rm -rf /"  # for people only
    (folder / "config.json").write_text(json.dumps(about))
    assert esbas.load_training(folder).config.env == "FrozenLake-v1"


@pytest.mark.parametrize(
    "change",
    [
        {"config": 3},
        {"config": {"env": 3}},
        {"config": {"env": "FrozenLake-v1", "stepz": 3}},
        {"config": {"env": "FrozenLake-v1", "steps": "many"}},
        {"config": {"env": "FrozenLake-v1", "learners": [3]}},
        {"config": {"env": {"object": 3}}},
        {"learners": "x"},
        {"format": "2"},
        {"made": 3},
        {"earlier": 3},
    ],
    ids=str,
)
def test_a_damaged_config_is_one_sentence(change, capsys):
    folder = train().folder
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | change))
    capsys.readouterr()
    assert cli.main(["resume", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_files_that_a_kill_left_before_the_first_config_do_not_take_the_folder():
    folder = train(out="it").folder
    (folder / "config.json").unlink()
    shutil.rmtree(folder / "runs")
    assert train(out="it").folder == folder


def test_a_file_is_no_folder():
    Path("mine").write_text("important")
    with pytest.raises(InvalidValueError, match="`out` must be a folder, but 'mine' is a file"):
        train(out="mine")
    assert Path("mine").read_text() == "important"
