"""`esbas evaluate --member all`, and members that cannot play without exploration."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from esbas.errors import InvalidValueError, NotEpisodicError
from esbas.training import Train
from esbas.training.commands.evaluate import Evaluate, main
from training import lane
from training.programs import train_without_report as train


def trained(folder: Path, **options: Any) -> Path:
    train(Train("tests/Lane-v0", tensorboard=False, out=folder, **options))
    return folder


def test_all_members_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    members = ("tabular_q(rate=0.5, epsilon=1.0)", "training.odd_learners:Stuck", "training.odd_learners:Wandering")
    folder = trained(tmp_path / "f", members=members, episodes=15)
    capsys.readouterr()
    main(Evaluate(folder, member="all", episodes=3, trust=True))
    found = {row["learner"]: row for row in json.loads((folder / "evaluation.json").read_text())["members"]}
    assert list(found) == ["tabular Q", "Stuck", "Wandering"]
    assert (found["tabular Q"]["mean return"]["mean"], found["tabular Q"]["mean length"]) == (1.0, lane.CELLS - 1)
    assert found["Stuck"]["mean return"] is None
    assert found["Stuck"]["problem"].startswith("an episode did not end within")
    with (folder / "evaluation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["learner"] for row in rows] == ["tabular Q"] * 3 + ["Wandering"] * 3
    assert "3 episodes of each member without exploration" in capsys.readouterr().out
    assert not (folder / "evaluation.gif").exists()
    with pytest.raises(InvalidValueError, match="one member is shown or recorded"):
        main(Evaluate(folder, member="all", render=True, trust=True))


def test_a_policy_that_is_stuck_is_an_error(tmp_path: Path) -> None:
    folder = trained(tmp_path / "f", members=("training.odd_learners:Stuck",), max_steps=3000, episodes=3)
    with pytest.raises(NotEpisodicError, match=r"max_steps=3000 of the training, but did not: .*try --explore"):
        main(Evaluate(folder, episodes=1, member="Stuck", trust=True))
    with pytest.raises(NotEpisodicError, match=r"a member must be able to play, but none is \(Stuck: an episode did not end"):
        main(Evaluate(folder, episodes=1, trust=True))
    main(Evaluate(folder, episodes=1, explore=True, trust=True))
