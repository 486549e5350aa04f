"""Options of the selector in `esbas train`: scale, xi and epochs, also after a resume."""

import json
from pathlib import Path

import pytest

from esbas import cli
from esbas.errors import InvalidValueError
from esbas.training import open_folder
from esbas.training.selectors import read_scale

MEMBERS = ["--members", "tabular_q(rate=0.1)", "tabular_q(rate=0.5)"]
QUICK = ["train", "FrozenLake-v1", *MEMBERS, "--episodes", "30", "--no-tensorboard", "--out", "here"]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def selector_of(*options):
    assert cli.main([*QUICK, *options]) == 0
    return open_folder(Path("here")).plan.start(0).selector


def test_they_reach_the_selector_and_the_folder(tmp_path):
    selector = selector_of("--selector", "esbas", "--xi", "0.5", "--epochs", "3", "5", "--scale", "0,1")
    assert selector.bandit.xi == 0.5
    assert selector.bandit.spread == 1.0
    rows = (tmp_path / "here" / "runs" / "seed-0" / "episodes.csv").read_text().splitlines()[1:]
    epochs = [int(row.split(",")[5]) for row in rows]
    assert epochs == [0] * 3 + [1] * 5 + [2] * 10 + [3] * 12
    config = json.loads((tmp_path / "here" / "config.json").read_text())["config"]
    assert config["xi"] == 0.5
    assert config["epochs"] == [3, 5]
    assert config["scale"] == "0,1"
    assert cli.main(["resume", "here"]) == 0


def test_canonical_runs_can_have_the_epochs_of_esbas(tmp_path):
    selector_of("--selector", "fixed:tabular Q rate 0.5", "--epochs", "3", "5")
    rows = (tmp_path / "here" / "runs" / "seed-0" / "episodes.csv").read_text().splitlines()[1:]
    assert {row.split(",")[2] for row in rows} == {"tabular Q rate 0.5"}
    assert [int(row.split(",")[5]) for row in rows][:9] == [0] * 3 + [1] * 5 + [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scale", "huge"], "scale is auto, raw, or LOW,HIGH with LOW < HIGH"),
        (["--scale", "5,1"], "scale is auto, raw, or LOW,HIGH with LOW < HIGH"),
        (["--epochs", "3"], "the selector has a parameter epochs"),
        (["--selector", "uniform", "--xi", "2"], "the selector has a parameter xi"),
        (["--selector", "esbas", "--epochs", "0"], "epochs are positive integers"),
    ],
)
def test_what_does_not_fit_is_refused_before_there_is_a_folder(options, message, capsys, tmp_path):
    assert cli.main([*QUICK, *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "here").exists()


def test_a_scale_as_text():
    assert (read_scale("auto"), read_scale("raw"), read_scale("-1,2.5")) == ("auto", None, (-1.0, 2.5))
    for text in ("", "1", "1,2,3", "nan,1", "a,b"):
        with pytest.raises(InvalidValueError, match="such as 0,500"):
            read_scale(text)
