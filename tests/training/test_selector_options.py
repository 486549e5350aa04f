"""Options of the selector in `esbas train`: scale, xi and epochs, also after a resume."""

import json
from pathlib import Path

import pytest

from esbas import cli
from esbas.errors import EsbasError, InvalidValueError
from esbas.specs.selectors import read_scale, read_selector
from esbas.training import open_folder

MEMBERS = ["--learners", "tabular_q(learning_rate=0.1)", "tabular_q(learning_rate=0.5)"]
QUICK = [
    "train",
    "FrozenLake-v1",
    *MEMBERS,
    "--episodes",
    "30",
    "--no-tensorboard",
    "--out",
    "here",
]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def selector_of(*options):
    assert cli.main([*QUICK, *options]) == 0
    return open_folder(Path("here")).plan.start(0).selector


def test_they_reach_the_selector_and_the_folder(tmp_path):
    selector = selector_of(
        "--selector", "esbas", "--xi", "0.5", "--epochs", "3", "5", "--scale", "0,1"
    )
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
    selector_of("--selector", "fixed:tabular Q learning_rate 0.5", "--epochs", "3", "5")
    rows = (tmp_path / "here" / "runs" / "seed-0" / "episodes.csv").read_text().splitlines()[1:]
    assert {row.split(",")[2] for row in rows} == {"tabular Q learning_rate 0.5"}
    assert [int(row.split(",")[5]) for row in rows][:9] == [0] * 3 + [1] * 5 + [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scale", "huge"], "`scale` must be auto, raw, or LOW,HIGH with LOW < HIGH"),
        (["--scale", "5,1"], "`scale` must be auto, raw, or LOW,HIGH with LOW < HIGH"),
        (["--selector", "ssbas", "--epochs", "3"], "selector 'ssbas' has no parameter `epochs`"),
        (["--selector", "uniform", "--xi", "2"], "selector 'uniform' has no parameter `xi`"),
        (["--selector", "esbas", "--epochs", "0"], "`epochs` must be at least 1"),
    ],
)
def test_what_does_not_fit_is_refused_before_there_is_a_folder(options, message, capsys, tmp_path):
    assert cli.main([*QUICK, *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "here").exists()


def test_a_scale_as_text():
    assert (read_scale("auto"), read_scale("raw"), read_scale("-1,2.5")) == (
        "auto",
        None,
        (-1.0, 2.5),
    )
    for text in ("", "1", "1,2,3", "nan,1", "a,b"):
        with pytest.raises(InvalidValueError, match="such as 0,500"):
            read_scale(text)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("ssbas(xi=1, fraction=0.25)", lambda selector: selector.bandit.xi == 1),
        ("esbas(epochs=[20, 20, 40])", lambda selector: not selector.online),
        ("Exp3(gamma=0.1)", lambda selector: selector.bandit.gamma == 0.1),
        ("kl-ucb(c=1, scale=[0, 1])", lambda selector: selector.bandit.c == 1),
        (
            "ucb1(xi=3, scale='raw', epochs=[4])",
            lambda selector: selector.bandit.xi == 3 and not selector.online,
        ),
        (
            "ssbas(bandit='kl-ucb')",
            lambda selector: type(selector.bandit).__name__.startswith("KLUCB") or selector.online,
        ),
        ("linear-thompson(ridge=2)", lambda selector: selector.online),
        ("fixed:a (b=1)", lambda selector: selector.ask().arm == "a (b=1)"),
        ("training.plugins:Patient(patience=3)", lambda selector: selector.patience == 3),
    ],
)
def test_options_in_the_text_reach_the_selector_or_its_bandit(text, check):
    assert check(read(text))


def read(text, **more):
    settings = {"scale": "auto", "xi": None, "epochs": (), "stationary": (), "seed": 0}
    return read_selector(text, ["a (b=1)", "c"], **settings | more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ucb", "There is no selector named 'ucb': did you mean 'ucb1'?"),
        ("exp3(gama=0.1)", "There is no option of exp3 named 'gama': did you mean 'gamma'?"),
        ("exp3(epoch=[3])", "There is no option of exp3 named 'epoch': did you mean 'epochs'?"),
        (
            "ssbas(epochs=[3])",
            (
                "There is no option of ssbas named 'epochs': choose one of 'xi', 'fraction', "
                "'bandit', 'scale'"
            ),
        ),
        ("ssbas(xi='a')", "`xi` of ssbas must be a number, but got 'a'"),
        ("ssbas(seed=3)", "`seed` of ssbas must not be given, because esbas sets it: remove it"),
        ("ucb1(memory=3)", "`memory` of ucb1 must not be given, because esbas sets it: remove it"),
        ("ssbas(bandit='klucbb')", "There is no bandit named 'klucbb': did you mean 'klucb'?"),
        ("ssbas(3)", "'ssbas(3)' must be a name with options and plain values such as"),
        ("training.plugins:Patient(patienc=3)", "did you mean 'patience'?"),
        (
            "training.plugins:Demanding",
            "Selector 'training.plugins:Demanding' must be created, but TypeError: ",
        ),
        ("training.plugins:BRIEF", "must name a selector or a bandit, but names"),
    ],
)
def test_wrong_options_in_the_text_are_explained(text, message):
    with pytest.raises(EsbasError) as caught:
        read(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "more"), [("ssbas(xi=1)", {"xi": 2.0}), ("ucb1(scale='raw')", {"scale": "0,1"})]
)
def test_an_option_is_given_once(text, more):
    with pytest.raises(
        InvalidValueError,
        match=r"^`\w+` is given twice, in .* and as --\w+: remove one\.$",
    ):
        read(text, **more)


def test_a_selector_with_options_is_continued(monkeypatch):
    monkeypatch.setattr("esbas.training.train.write_report", lambda *_: None)  # figures take time
    assert selector_of("--selector", "ssbas(xi=1)").bandit.xi == 1
    assert cli.main(["resume", "here", "--no-tensorboard"]) == 0
