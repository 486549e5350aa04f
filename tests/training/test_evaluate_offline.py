"""`esbas evaluate --offline`: values from the trajectories that a training kept."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esbas import cli
from esbas._internal import archive
from esbas.cli.evaluate import Evaluate, main
from esbas.errors import InvalidValueError, SaveFileError, UnknownNameError
from training import lane
from training.programs import train_without_report as train

LEARNERS = (
    "tabular_q(learning_rate=0.5, epsilon=0.5)",
    "tabular_q(learning_rate=0.4, epsilon=0.8)",
    "random",
)
FIRST = "tabular Q learning_rate 0.5, epsilon 0.5"
SECOND = "tabular Q learning_rate 0.4, epsilon 0.8"


def trained(folder: Path, **options: Any) -> Path:
    train(
        "tests/Lane-v0",
        tensorboard=False,
        out=folder,
        **{"learners": LEARNERS, "selector": "esbas"} | options,
    )
    return folder


def offline(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "offline.json").read_text()))


def scores(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["learner"], row["policy"]): row for row in offline(folder)["policies"]}


@pytest.mark.parametrize("objective", ["shortest", "discounted"])
def test_values_of_all_learners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objective: str
) -> None:
    folder = trained(tmp_path / "f", episodes=600, objective=objective)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    capsys.readouterr()
    assert cli.main(["evaluate", str(folder), "--offline"]) in (0, None)
    found = scores(folder)
    about = offline(folder)
    assert list(found) == [
        (FIRST, "exploring"),
        (FIRST, "greedy"),
        (SECOND, "exploring"),
        (SECOND, "greedy"),
        ("random", "exploring"),
    ]
    assert (about["frozen"], about["episodes without probabilities"], about["seed"]) == (True, 0, 0)
    best = lane.CELLS - 1 if objective == "shortest" else 0.99 ** (lane.CELLS - 2)
    assert found[FIRST, "greedy"]["value"] == pytest.approx(best)
    main(Evaluate(folder, learner="all", explore=True, episodes=200, eval_seed=1))
    played = json.loads((folder / "evaluation.json").read_text())["learners"]
    for row, name in zip(played, (FIRST, SECOND), strict=False):
        mean = next(value for key, value in row.items() if key.startswith("mean "))
        estimate = found[name, "exploring"]
        margin = mean["ci95"] + (estimate["high"] - estimate["low"]) / 2
        assert abs(estimate["value"] - mean["mean"]) < 1.5 * margin
    assert found[FIRST, "exploring"]["problem"] == ""
    with (folder / "offline.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [row["value"] for row in about["policies"]]
    assert "low and high are the ends of 95 % intervals" in capsys.readouterr().out
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_one_learner(tmp_path: Path) -> None:
    folder = trained(tmp_path / "f", episodes=60)
    main(Evaluate(folder, offline=True, learner=SECOND))
    assert list(scores(folder)) == [(SECOND, "exploring"), (SECOND, "greedy")]
    assert (
        "The effective sample size should be at least 50"
        in scores(folder)[SECOND, "exploring"]["problem"]
    )
    with pytest.raises(UnknownNameError, match="no learner named 'none'"):
        main(Evaluate(folder, offline=True, learner="none"))
    with pytest.raises(InvalidValueError, match="Nothing is played offline"):
        main(Evaluate(folder, offline=True, explore=True))


def test_policies_that_have_changed_since(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded probabilities are used, and a sentence says that the values are too good."""
    folder = trained(tmp_path / "f", episodes=60)
    path = folder / "runs" / "seed-0" / "checkpoint.npz"
    state = archive.read(path, "run")
    log_probs = state["data"]["columns"]["log_probs"]
    state["data"]["columns"]["log_probs"] = log_probs - 0.01
    archive.write(path, "run", state)
    main(Evaluate(folder, offline=True))
    assert not offline(folder)["frozen"]
    assert "have learnt from these episodes" in capsys.readouterr().out


def test_trajectories_that_were_not_kept(tmp_path: Path) -> None:
    folder = trained(tmp_path / "f", episodes=5, selector="ssbas")
    with pytest.raises(
        SaveFileError,
        match=r"The run of seed 0 .* has kept no trajectories, .* train with --selector esbas",
    ):
        main(Evaluate(folder, offline=True))


def test_probabilities_that_were_not_recorded(tmp_path: Path) -> None:
    folder = trained(tmp_path / "f", episodes=20)
    path = folder / "runs" / "seed-0" / "checkpoint.npz"
    state = archive.read(path, "run")
    state["data"]["columns"]["log_probs"] = np.full_like(
        state["data"]["columns"]["log_probs"], np.nan
    )
    archive.write(path, "run", state)
    with pytest.raises(
        SaveFileError,
        match="The run of seed 0 has no log-probabilities of actions",
    ):
        main(Evaluate(folder, offline=True))


def test_trajectories_of_another_task(tmp_path: Path) -> None:
    folder = trained(tmp_path / "f", episodes=20)
    path = folder / "runs" / "seed-0" / "checkpoint.npz"
    state = archive.read(path, "run")
    state["data"]["columns"]["observations"] = state["data"]["columns"]["observations"] + 1000
    archive.write(path, "run", state)
    main(Evaluate(folder, offline=True))
    assert "IndexError" in scores(folder)[FIRST, "exploring"]["problem"]
    state["data"]["columns"]["observations"] = state["data"]["columns"]["observations"][:-1]
    archive.write(path, "run", state)
    with pytest.raises(InvalidValueError, match="observations"):
        main(Evaluate(folder, offline=True))


def test_episodes_with_repeated_actions_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repeating = "tabular_q(learning_rate=0.5, epsilon=0.5, zeta=2.0)"
    folder = trained(tmp_path / "f", episodes=300, learners=(repeating, LEARNERS[1]))
    capsys.readouterr()
    assert cli.main(["evaluate", str(folder), "--offline"]) in (0, None)
    found = scores(folder)
    left_out = offline(folder)["episodes without probabilities"]
    assert left_out > 0
    note = f"{left_out} episodes were left out, because the probabilities of their actions are not"
    assert note in " ".join(capsys.readouterr().out.split())
    name = next(learner for learner, _ in found if "zeta" in learner)
    assert found[name, "exploring"]["problem"] == "has no probabilities of actions"
    assert found[name, "greedy"]["value"] is not None
