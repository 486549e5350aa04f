import io

import pytest

from esbas.errors import InvalidValueError
from esbas.experiments import play
from esbas.experiments.envs import UserModel, read_dialogues


def typed(monkeypatch, capsys, lines, **settings):
    """The output for a person who types these lines."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    play.Play(**{"seed": 4} | settings).run()
    return capsys.readouterr().out


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(play, "TRAINING", 40)


def test_person_as_system_sees_only_what_the_system_knows(monkeypatch, capsys):
    seen = typed(monkeypatch, capsys, ["r", "r", "bad", "E"], side="system", dialogues=1)
    during, after = seen.split("The whole dialogue:")
    assert "You are the system. Your costs: A " in during
    assert "The user's costs" not in during
    assert "understood with score" in during
    assert "understood:" not in during
    assert "Please type one of" in during
    assert "The user's costs" in after
    assert "System: Let us stop here.\nNo agreement.\n" in after
    assert "No agreement.\nReward 0.00 after 3 system acts: worth 0.9^3 of it, 0.00.\n" in after


def test_person_as_system_can_agree(monkeypatch, capsys, tmp_path):
    log = tmp_path / "log.jsonl"
    for seed in range(8):
        typed(monkeypatch, capsys, ["r", "y"], side="system", dialogues=1, seed=seed, log=log)
    dialogues = list(read_dialogues(log))
    assert len(dialogues) == 8
    assert {dialogue.acts[-1].act for dialogue in dialogues} == {"accept"}


@pytest.mark.usefixtures("quick")
def test_person_as_user_negotiates_with_a_trained_policy(monkeypatch, capsys, tmp_path):
    log = tmp_path / "log.jsonl"
    seen = typed(monkeypatch, capsys, ["a", *["b"] * 60], dialogues=2, log=log)
    assert seen.startswith("The system trains on 40 dialogues")
    assert "You are the user. Your costs: A " in seen
    assert seen.count("The whole dialogue:") == 2
    assert seen.endswith("Goodbye.\n")
    assert (
        "costs" not in seen.split("The whole dialogue:")[0].split("The system has other costs.")[1]
    )
    assert len(list(read_dialogues(log))) == 2


@pytest.mark.usefixtures("quick")
def test_asks_after_each_dialogue_whether_to_continue(monkeypatch, capsys):
    seen = typed(monkeypatch, capsys, ["h"] + ["a", "h"] * 40)
    assert "Another dialogue? (y, n)" in seen
    assert seen.endswith("Goodbye.\n")  # at the end of the input


def test_q_quits_in_the_middle(monkeypatch, capsys, tmp_path):
    log = tmp_path / "log.jsonl"
    seen = typed(monkeypatch, capsys, ["r", "q"], side="system", log=log)
    assert "The whole dialogue:" not in seen
    assert seen.endswith("Goodbye.\n")
    assert not log.exists()


def test_same_seed_same_game(monkeypatch, capsys):
    games = [
        typed(monkeypatch, capsys, ["r", "n", "e"], side="system", dialogues=1, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert games[0] == games[1] != games[2]


def test_policy_gets_better_by_training(capsys):
    play._trained(0)
    first, last = (
        float(word)
        for word in capsys.readouterr().out.replace("Trained:", "").split()
        if word[:2] in ("0.", "1.")
    )
    assert last > first + 0.2


def test_a_user_can_be_fitted_to_typed_dialogues(monkeypatch, capsys, tmp_path):
    log = tmp_path / "log.jsonl"
    typed(monkeypatch, capsys, ["n", "n", "n", "e"] * 400, side="system", dialogues=300, log=log)
    assert UserModel.fit(read_dialogues(log)).parameters.slope > 0


@pytest.mark.parametrize("settings", [{"dialogues": 0}, {"log": "nowhere/log.jsonl"}, {"seed": -1}])
def test_bad_settings_raise_a_clear_error(monkeypatch, capsys, settings, tmp_path):
    if "log" in settings:
        settings = {"log": tmp_path / settings["log"]}
    with pytest.raises(InvalidValueError, match=next(iter(settings))):
        typed(monkeypatch, capsys, ["q"], **{"side": "system"} | settings)
