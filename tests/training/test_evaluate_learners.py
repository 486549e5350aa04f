"""`esbas evaluate --learner all`, and learners that cannot play without exploration."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from esbas.cli.evaluate import Evaluate, main
from esbas.errors import InvalidValueError, NotEpisodicError
from training import lane
from training.programs import train_without_report as train


def trained(folder: Path, **options: Any) -> Path:
    train("tests/Lane-v0", tensorboard=False, out=folder, **options)
    return folder


def test_all_learners_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learners = (
        "tabular_q(learning_rate=0.5, epsilon=1.0)",
        "training.odd_learners:Stuck",
        "training.odd_learners:Wandering",
    )
    folder = trained(tmp_path / "f", learners=learners, episodes=15)
    capsys.readouterr()
    main(Evaluate(folder, learner="all", episodes=3, trust=True))
    found = {
        row["learner"]: row
        for row in json.loads((folder / "evaluation.json").read_text())["learners"]
    }
    assert list(found) == ["tabular Q", "Stuck", "Wandering"]
    assert (found["tabular Q"]["mean return"]["mean"], found["tabular Q"]["mean length"]) == (
        1.0,
        lane.CELLS - 1,
    )
    assert found["Stuck"]["mean return"] is None
    assert found["Stuck"]["problem"].startswith("an episode did not end within")
    with (folder / "evaluation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["learner"] for row in rows] == ["tabular Q"] * 3 + ["Wandering"] * 3
    assert "3 episodes of each learner without exploration" in capsys.readouterr().out
    assert not (folder / "evaluation.gif").exists()
    with pytest.raises(InvalidValueError, match="One learner can be shown or recorded"):
        main(Evaluate(folder, learner="all", render=True, trust=True))


def test_a_policy_that_is_stuck_is_an_error(tmp_path: Path) -> None:
    folder = trained(
        tmp_path / "f",
        learners=("training.odd_learners:Stuck",),
        max_episode_steps=3000,
        episodes=3,
    )
    with pytest.raises(
        NotEpisodicError,
        match=r"`max_episode_steps` of the training .3,000.: .*try to explore",
    ):
        main(Evaluate(folder, episodes=1, learner="Stuck", trust=True))
    with pytest.raises(
        NotEpisodicError,
        match=r"No learner was able to play \(Stuck: an episode did not end",
    ):
        main(Evaluate(folder, episodes=1, trust=True))
    main(Evaluate(folder, episodes=1, explore=True, trust=True))
