"""Runs whose replay memory is in files beside the checkpoint."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esbas
from esbas import cli
from esbas._internal import archive
from esbas.errors import InvalidValueError
from esbas.learners.dqn.replay import files as replay_files
from esbas.specs.portfolios.recipe import read_recipe
from esbas.training import Plan, TrainingConfig, recipe_of
from esbas.training.runs.one_run import SaveOptions, run_folder, train_seed
from esbas.training.train import save_options

SMALL = "dqn(hidden=[8], batch_size=8, learning_starts=20, learning_rate={})"
LEARNERS = [SMALL.format(0.001), SMALL.format(0.01)]
SAVING = SaveOptions(tensorboard=False, checkpoint_every=1e9)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_files, "LARGE", 0)


def plan_of(steps: int = 500) -> Plan:
    recipe = recipe_of(LEARNERS)
    smaller = read_recipe(f"{recipe.text}\n[replay]\nbuffer_size = 100\n", source="a test")
    return Plan(TrainingConfig("CartPole-v1", steps=steps), smaller)


def train_in_parts(plan: Plan, folder: Path, *, every: int) -> None:
    """Stop after every few episodes, with a checkpoint, until the budget is used up."""
    while True:
        played = 0

        def stop() -> bool:
            nonlocal played
            played += 1
            return played == every

        train_seed(plan, 0, folder, saving=SAVING, report=lambda status: None, stop=stop)
        if played < every:
            return


def assert_same_runs(plan: Plan, *folders: Path) -> None:
    logs = [(run_folder(folder, 0) / "episodes.csv").read_bytes() for folder in folders]
    assert logs[0] == logs[1]
    one, other = (
        plan.resume(run_folder(folder, 0) / "checkpoint.npz", 0).learners for folder in folders
    )
    for mine, yours in zip(one, other, strict=True):
        assert_same_learners(mine, yours)


def assert_same_learners(mine: Any, yours: Any) -> None:
    np.testing.assert_array_equal(mine.policy_state()["weights"], yours.policy_state()["weights"])
    assert mine.replay.added == yours.replay.added > 400
    for name, column in mine.replay._columns.items():
        np.testing.assert_array_equal(column, yours.replay._columns[name])


def test_a_run_that_is_interrupted_again_and_again_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of()
    whole = tmp_path / "whole"
    parts = tmp_path / "parts"
    train_seed(plan, 0, whole, saving=SAVING, report=lambda status: None)
    train_in_parts(plan_of(250), parts, every=3)
    write = archive.write

    def killed(path: Any, kind: str, state: dict[str, Any]) -> None:
        if kind == "run":
            raise KeyboardInterrupt  # when the rows are in their file, and the checkpoint is not
        write(path, kind, state)

    monkeypatch.setattr(archive, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        train_in_parts(plan, parts, every=3)
    monkeypatch.setattr(archive, "write", write)
    train_in_parts(plan, parts, every=5)
    assert_same_runs(plan, whole, parts)
    assert len(list((run_folder(parts, 0) / "replay").iterdir())) > 1


def test_a_checkpoint_does_not_contain_the_rows(tmp_path: Path) -> None:
    run = plan_of().start(0, folder=tmp_path / "replay")
    next(run)
    run.save(tmp_path / "checkpoint.npz")
    state = archive.read(tmp_path / "checkpoint.npz", "run")["roster"]
    replays = [entry["learner"]["replay"] for entry in state.values()]
    assert all("frames" not in replay for replay in replays)
    assert replays[0]["files"] is replays[1]["files"]
    assert len(list((tmp_path / "replay").iterdir())) == 1


def test_a_full_disk_ends_the_run_and_leaves_the_last_checkpoint_valid(tmp_path: Path) -> None:
    plan = plan_of()
    path = tmp_path / "checkpoint.npz"
    run = plan.start(0, folder=tmp_path / "replay")
    next(run)
    run.save(path)
    (tmp_path / "replay").rename(tmp_path / "kept")
    (tmp_path / "replay").touch()  # in the place of the folder
    next(run)
    with pytest.raises(esbas.errors.FileError, match="must be readable and writable"):
        run.save(path)
    (tmp_path / "replay").unlink()
    (tmp_path / "kept").rename(tmp_path / "replay")
    assert plan.resume(path, 0).number == 1


def test_policies_and_warm_starts_need_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    folder = tmp_path / "out" / "runs" / "seed-0" / "replay"
    words = [
        "train",
        "CartPole-v1",
        "--learners",
        *LEARNERS,
        "--steps",
        "200",
        "--no-tensorboard",
        "--eval-episodes",
        "1",
    ]
    assert cli.main([*words, "--out", str(out)]) == 0
    for path in folder.iterdir():
        path.unlink()
    name = recipe_of(LEARNERS).names[0]
    assert esbas.load_policy(out, learner=name).name == name
    assert cli.main(["evaluate", str(out), "--learner", "all", "--episodes", "1"]) == 0
    Plan(TrainingConfig("CartPole-v1", steps=200, start_from=out), recipe_of(LEARNERS)).start(
        0
    ).close()
    capsys.readouterr()
    assert cli.main(["resume", str(out), "--steps", "300"]) == 2
    assert "does not exist: restore it, or start again" in " ".join(capsys.readouterr().err.split())


def test_processes_are_the_cores_that_a_run_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esbas.training.train.usable_cores", lambda: 8)
    seeds = (0, 1, 2)
    assert save_options(TrainingConfig("CartPole-v1")).processes == 8
    assert save_options(TrainingConfig("CartPole-v1", seeds=seeds, jobs=2)).processes == 4
    assert save_options(TrainingConfig("CartPole-v1", seeds=seeds, jobs=20)).processes == 2
    assert save_options(TrainingConfig("CartPole-v1", processes=3, jobs=2)).processes == 3
    with pytest.raises(InvalidValueError, match="`processes` must be at least 1, but got 0"):
        TrainingConfig("CartPole-v1", processes=0)


def test_learners_share_one_memory_with_the_folder_and_the_processes_of_the_run(
    tmp_path: Path,
) -> None:
    recipe = read_recipe(
        f"{recipe_of(LEARNERS).text}\n[replay]\nclip_rewards = true\n", source="a test"
    )
    run = Plan(TrainingConfig("CartPole-v1"), recipe).start(
        0, folder=tmp_path / "replay", processes=3
    )
    learners: list[Any] = list(run.learners)
    assert {(each.replay.processes, each.replay.clip_rewards) for each in learners} == {(3, True)}
    assert not (tmp_path / "replay").exists()
    for option in ("folder = 'x'", "processes = 2", "env = 1"):
        with pytest.raises(InvalidValueError, match="because esbas sets it: remove it"):
            read_recipe(f"[[learner]]\nalgorithm = 'dqn'\n[replay]\n{option}\n", source="a test")
