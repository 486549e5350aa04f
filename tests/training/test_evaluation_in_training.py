"""Evaluation during training: it changes nothing, its results survive interruptions, and the best policy is kept."""

import dataclasses
import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esbas
from esbas import archive, cli, seeding
from esbas.errors import EsbasError, SaveFileError
from esbas.training import Train, open_folder
from esbas.training import main as train
from esbas.training.policies.policy_file import read_policy
from esbas.training.policies.scoring import Scorer
from esbas.training.reports.evaluations import EvaluationSummary
from esbas.training.runs import one_run
from esbas.training.runs.episode_log import Episodes, read_evaluations
from esbas.training.runs.one_run import SaveOptions, train_seed
from training import lane
from training.programs import SMALL, assert_equal, assert_same, numbers, train_without_report

MEMBERS = SMALL.format(0.001), SMALL.format(0.01), "training.odd_learners:Wandering"
LANE = "tabular_q(rate=0.5, epsilon=1.0)", "training.odd_learners:Stuck"
SAVING = SaveOptions(tensorboard=False, checkpoint_every=1e9)


def trained(out: Path, task: str = "CartPole-v1", *, report: bool = False, **options: Any) -> Path:
    config = Train(task, members=MEMBERS, steps=400, tensorboard=False, out=out, eval_every=120, eval_episodes=2)
    (train if report else train_without_report)(dataclasses.replace(config, **options))
    return out


def run_of(out: Path) -> Path:
    return out / "runs" / "seed-0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("evaluated") / "whole", report=True)


def test_evaluation_does_not_change_the_training(whole: Path, tmp_path: Path) -> None:
    rare = trained(tmp_path / "rare", eval_every=0)
    assert_same(numbers(whole), numbers(rare))
    rows = read_evaluations(run_of(whole))
    steps = [row.steps for row in rows[::3]]
    assert [step // 120 for step in steps[:3]] == [1, 2, 3]
    assert {row.learner for row in read_evaluations(run_of(rare))} == {row.learner for row in rows}
    assert {row.steps for row in read_evaluations(run_of(rare))} == {steps[-1]}


def test_the_best_policy_is_that_of_the_best_evaluation(whole: Path) -> None:
    rows, kept = read_evaluations(run_of(whole)), read_policy(run_of(whole) / "best.npz")
    best = max(rows, key=lambda row: row.mean)
    assert (kept.learner, kept.steps, kept.mean) == (best.learner, best.steps, best.mean)
    assert len(kept.rescored) >= 2
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["best policy"]["re-scored"]["mean"] == pytest.approx(np.mean(kept.rescored))
    played = sum(row.played for row in rows) + kept.rescored_steps
    assert summary["evaluation steps"] == summary["runs"]["0"]["evaluation steps"] == played
    assert f"{played:,} evaluation steps" in (whole / "report.html").read_text()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed after an evaluation"])
def test_an_interrupted_run_ends_with_the_same_evaluations(whole: Path, tmp_path: Path, kill: bool) -> None:
    for name in ("config.json", "portfolio.toml", "spaces.json"):
        shutil.copy(whole / name, tmp_path / name)
    plan = open_folder(tmp_path, trust=True).plan

    def go(stop: Any) -> None:
        train_seed(plan, 0, tmp_path, saving=SAVING, report=lambda _: None, stop=stop)

    count = itertools.count(1)
    go(lambda: next(count) == 7)
    if kill:  # without a checkpoint, after the last evaluation

        def die() -> bool:
            if len({row.steps for row in read_evaluations(run_of(tmp_path))}) == 3:
                raise KeyboardInterrupt
            return False

        with pytest.raises(KeyboardInterrupt):
            go(die)
        with (run_of(tmp_path) / "evaluations.csv").open("a") as file:
            file.write("999,DQN ra")
    go(lambda: False)
    assert (run_of(tmp_path) / "evaluations.csv").read_bytes() == (run_of(whole) / "evaluations.csv").read_bytes()
    one, other = (archive.read(run_of(each) / "best.npz", "policy") for each in (tmp_path, whole))
    assert_equal(one, other)


def test_members_that_fail_or_are_stuck_are_recorded_and_never_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = [f"training.odd_learners:{name}" for name in ("Failing", "Outside", "Compact")]
    out = trained(tmp_path / "f", "tests/Lane-v0", members=(*LANE, *odd), steps=300, eval_every=200)
    rows = {row.learner: row for row in read_evaluations(run_of(out))}  # the last ones
    outside = "a policy must act within the action space, but acted outside the action space: 99"
    problems = {name: row.problem for name, row in rows.items() if row.problem}
    assert problems == {
        "Stuck": "an episode did not end within 1,000 steps",
        "Failing": "RuntimeError: no greedy policy today",
        "Outside": f"SpaceError: {outside}: fix the policy",
    }
    assert rows["Stuck"].played == 1000
    assert math.isnan(rows["Failing"].mean)
    assert read_policy(run_of(out) / "best.npz").learner not in problems
    lonely = trained(tmp_path / "lonely", "tests/Lane-v0", members=(odd[0],), steps=50, report=True)
    assert not (run_of(lonely) / "best.npz").exists()
    assert "No best policy: no member could be evaluated (RuntimeError: no greedy policy today)." in capsys.readouterr().out


def test_an_isolated_member_has_the_same_evaluations(tmp_path: Path) -> None:
    results = []
    for settings in ("", ", isolate=True, time_limit=60.0"):
        config = Train("tests/Lane-v0", members=(f"tabular_q(rate=0.5, epsilon=1.0{settings})",), steps=40, eval_every=20)
        folder = tmp_path / f"it{settings[:5]}"
        train_seed(config.plan(config.recipe()), 0, folder, saving=SAVING, report=lambda _: None)
        kept = read_policy(run_of(folder) / "best.npz")
        results.append((read_evaluations(run_of(folder)), kept.learner, kept.steps, kept.rescored))
    assert results[0] == results[1]
    assert results[0][3]


def test_what_acting_needs_is_kept_and_no_more(tmp_path: Path) -> None:
    out = trained(tmp_path / "f", "tests/Lane-v0", members=("training.odd_learners:Compact",), steps=60)
    kept = read_policy(run_of(out) / "best.npz")
    assert (kept.whole, list(kept.state)) == (False, ["counts"])
    assert (run_of(out) / "best.npz").stat().st_size < 4000 < (run_of(out) / "checkpoint.npz").stat().st_size
    assert kept.rescored == (1.0,) * len(kept.rescored)  # it walks to the right


def test_the_best_is_the_smallest_of_an_objective_to_minimise(tmp_path: Path) -> None:
    members = "training.odd_learners:Wandering", "tabular_q(rate=0.5, epsilon=1.0)"
    out = trained(tmp_path / "f", "tests/Lane-v0", members=members, steps=200, objective="shortest")
    kept = read_policy(run_of(out) / "best.npz")
    assert (kept.learner, kept.mean, set(kept.rescored)) == ("tabular Q", lane.CELLS - 1, {lane.CELLS - 1})


def test_callbacks_and_the_status_get_the_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from esbas.training.callbacks import Callback
    from esbas.training.display import tensorboard

    monkeypatch.setattr(one_run, "REPORT_EVERY", 0.0)
    found, played = [], []

    class Recorder(Callback):
        def on_evaluation(self, evaluation: Any) -> None:
            found.append(evaluation)

    monkeypatch.setattr(tensorboard, "TensorBoardWriter", Recorder)
    plan = Train("tests/Lane-v0", members=LANE, steps=100, eval_every=50, eval_episodes=3)
    plan = plan.plan(plan.recipe())
    train_seed(plan, 0, tmp_path, saving=SaveOptions(), report=lambda status: played.append(status.evaluated))
    rows = [row for row in read_evaluations(run_of(tmp_path)) if row.episodes]
    assert [(each.learner, each.steps, np.mean(each.values), each.played) for each in found] == [
        (row.learner, row.steps, row.mean, row.played) for row in rows
    ]
    assert sorted(played) == played
    assert played[0] == 0 < sum(row.played for row in rows) <= played[-1]
    assert len(set(played)) > 100  # also within episodes


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("evaluations.csv", "steps,learner\n", "its columns must be"),
        ("evaluations.csv", "HEADER\n5,a,1,x,1,1,9,\n", "'x' in column 'mean'"),
        ("evaluations.csv", "HEADER\n5,a,1,,1,1,9,\n", "the mean of row 1 is ''"),
        ("evaluations.csv", "HEADER\n9,a,1,1,1,1,9,\n5,a,1,1,1,1,9,\n", "step 5 comes after step 9"),
        ("best.npz", "no zip", "the best policy must be in .* damaged .* or remove it and"),
        ("best.npz", None, "the best policy must be in .* there is none"),
    ],
)
def test_damaged_files_are_refused(whole: Path, tmp_path: Path, file: str, content: str | None, sentence: str) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "it"))
    header = (run_of(out) / "evaluations.csv").read_text().splitlines()[0]
    if content is None:
        (run_of(out) / file).unlink()
    else:
        (run_of(out) / file).write_text(content.replace("HEADER", header))
    with pytest.raises(SaveFileError, match=sentence) as caught:
        train_seed(open_folder(out, trust=True).plan, 0, out, saving=SAVING, report=lambda _: None)
    assert "\n" not in str(caught.value)


def test_a_best_policy_of_another_evaluation_is_refused(whole: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "it"))
    path = run_of(out) / "best.npz"
    archive.write(path, "policy", archive.read(path, "policy") | {"learner": "another"})
    with pytest.raises(SaveFileError, match=r"must have the policy of .* but has that of 'another'"):
        train_seed(open_folder(out, trust=True).plan, 0, out, saving=SAVING, report=lambda _: None)
    for change in ({"steps": -1}, {"rescored": ["x"]}, {"state": 3}):
        archive.write(path, "policy", archive.read(path, "policy") | change)
        with pytest.raises(EsbasError, match=r"the policy in .* must have"):
            read_policy(path)


def test_rounds_stay_within_the_allowance() -> None:
    def score(allowance: float, at_least: int = 1) -> list[int]:
        right = type("Right", (), {"act": lambda self, observation, rng: 1})
        scorer = Scorer(lane.Lane, esbas.total_return(), stream=lambda number: seeding.generator(0, number), limit=100)
        found = scorer.score({"a": right, "b": right}, episodes=5, allowance=allowance, at_least=at_least)
        scorer.close()
        return [len(each.values) for each in found.values()]

    round_steps = 2 * (lane.CELLS - 1)
    assert score(math.inf) == [5, 5]
    assert score(0) == [1, 1]
    assert score(2 * round_steps - 1) == [1, 1]
    assert score(2 * round_steps) == [2, 2]
    assert score(0, at_least=3) == [3, 3]


def test_a_task_that_fails_in_an_evaluation_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Train("tests/Lane-v0", members=LANE[:1], steps=60)
    plan = plan.plan(plan.recipe())
    tasks = []
    make = type(plan).task

    def task(self: Any, **options: Any) -> Any:
        tasks.append(make(self, **options))
        if len(tasks) > 1:
            raise OSError("only one at a time")
        return tasks[-1]

    monkeypatch.setattr(type(plan), "task", task)
    train_seed(plan, 0, tmp_path, saving=SAVING, report=lambda _: None)
    assert [row.problem for row in read_evaluations(run_of(tmp_path))] == ["OSError: only one at a time"]


def summary_of(tmp_path: Path, values: list[float], *, maximize: bool = True) -> EvaluationSummary:
    count = len(values)
    (tmp_path / "clock.json").write_text(json.dumps({"seconds": 1.0, "episodes": count, "steps": count, "finished": True}))
    run = Episodes(
        np.arange(1, count + 1), np.array(["a"] * count), np.array(values), np.ones(count, np.int64), np.zeros(count, np.int64)
    )
    objective = esbas.Objective(name="value", function=lambda _: 0.0, maximize=maximize)
    return EvaluationSummary({0: run}, {0: tmp_path}, objective)


def test_whether_anything_was_learnt(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=100).tolist()
    assert summary_of(tmp_path, flat).learnt is False
    assert "No sign of learning" in " ".join(summary_of(tmp_path, flat).sentences())
    assert summary_of(tmp_path, [0.0] * 100).learnt is False
    rising = [*flat[:50], *(value + 2 for value in flat[50:])]
    assert summary_of(tmp_path, rising).learnt is True
    assert summary_of(tmp_path, rising, maximize=False).learnt is False
    clock = tmp_path / "clock.json"
    summary = summary_of(tmp_path, flat)
    clock.write_text(clock.read_text().replace("true", "false"))
    run = Episodes(np.arange(1, 4), np.array(["a"] * 3), np.zeros(3), np.ones(3, np.int64), np.zeros(3, np.int64))
    unfinished = EvaluationSummary({0: run}, {0: tmp_path}, esbas.total_return())
    assert (summary.learnt, unfinished.learnt) == (False, None)
    assert "learning" not in " ".join(unfinished.sentences())


def test_bad_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--eval-every", "-1"], ["--eval-episodes", "0"]):
        assert cli.main(["train", "CartPole-v1", "--members", "random", "--out", str(tmp_path / "f"), *words]) == 2
        assert words[0][2:].replace("-", "_") in capsys.readouterr().err
    assert not (tmp_path / "f").exists()
