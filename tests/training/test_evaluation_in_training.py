"""Evaluation changes nothing, its results survive interruptions, and the best policy is kept."""

import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import esbas
from esbas import cli, seeding
from esbas._internal import archive
from esbas.errors import EsbasError, SaveFileError
from esbas.training import TrainingConfig, open_folder
from esbas.training.policies.policy_file import BEST, StoredPolicy, read_policy, write_policy
from esbas.training.policies.scoring import Scorer
from esbas.training.reports.evaluations import EvaluationSummary
from esbas.training.runs import evaluation, one_run
from esbas.training.runs.episode_log import Episodes, read_evaluations
from esbas.training.runs.one_run import SaveOptions, train_seed
from training import lane
from training.programs import (
    SMALL,
    assert_equal,
    assert_same,
    numbers,
    plan_of_config,
    train_without_report,
)

LEARNERS = SMALL.format(0.001), SMALL.format(0.01), "training.odd_learners:Wandering"
LANE = "tabular_q(learning_rate=0.5, epsilon=1.0)", "training.odd_learners:Stuck"
SAVING = SaveOptions(tensorboard=False, checkpoint_every=1e9)


def trained(out: Path, task: str = "CartPole-v1", *, report: bool = False, **options: Any) -> Path:
    settings = {
        "learners": LEARNERS,
        "steps": 400,
        "tensorboard": False,
        "out": out,
        "eval_every": 120,
        "eval_episodes": 2,
    }
    (esbas.train if report else train_without_report)(task, **settings | options)
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


def test_the_best_policy_is_that_of_an_evaluation(whole: Path) -> None:
    rows, kept = read_evaluations(run_of(whole)), read_policy(run_of(whole) / "best.npz")
    assert (kept.learner, kept.steps, kept.mean) in [
        (row.learner, row.steps, row.mean) for row in rows
    ]
    assert len(kept.rescored) >= 1
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["best policy"]["re-scored"]["mean"] == pytest.approx(np.mean(kept.rescored))
    played = sum(row.played for row in rows) + kept.rescored_steps
    assert summary["evaluation steps"] == summary["runs"]["0"]["evaluation steps"] == played
    assert f"{played:,} evaluation steps" in (whole / "report.html").read_text()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed after an evaluation"])
def test_an_interrupted_run_ends_with_the_same_evaluations(
    whole: Path, tmp_path: Path, kill: bool
) -> None:
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
    assert (run_of(tmp_path) / "evaluations.csv").read_bytes() == (
        run_of(whole) / "evaluations.csv"
    ).read_bytes()
    one, other = (archive.read(run_of(each) / "best.npz", "policy") for each in (tmp_path, whole))
    assert_equal(one, other)


def test_learners_that_fail_or_are_stuck_are_recorded_and_never_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = [f"training.odd_learners:{name}" for name in ("Failing", "Outside", "Compact")]
    out = trained(
        tmp_path / "f", "tests/Lane-v0", learners=(*LANE, *odd), steps=300, eval_every=200
    )
    rows = {row.learner: row for row in read_evaluations(run_of(out))}  # the last ones
    outside = "A policy must act within the action space, but acted outside the action space: 99"
    problems = {name: row.problem for name, row in rows.items() if row.problem}
    stuck = rows["Stuck"].played
    assert problems == {
        "Stuck": f"an episode did not end within the {stuck} steps that the evaluation had left",
        "Failing": "RuntimeError: no greedy policy today",
        "Outside": f"SpaceError: {outside}: fix the policy.",
    }
    assert stuck <= evaluation.FEWEST_STEPS
    assert math.isnan(rows["Failing"].mean)
    assert read_policy(run_of(out) / "best.npz").learner not in problems
    lonely = trained(
        tmp_path / "lonely", "tests/Lane-v0", learners=(odd[0],), steps=50, report=True
    )
    assert not (run_of(lonely) / "best.npz").exists()
    sentence = (
        "No best policy: no learner could be evaluated (RuntimeError: no greedy policy today)."
    )
    assert sentence in " ".join((lonely / "report.html").read_text().split())


def test_an_isolated_learner_has_the_same_evaluations(tmp_path: Path) -> None:
    results = []
    for settings in ("", ", isolate=True, learn_timeout=60.0"):
        config = TrainingConfig(
            "tests/Lane-v0",
            learners=(f"tabular_q(learning_rate=0.5, epsilon=1.0{settings})",),
            steps=40,
            eval_every=20,
        )
        folder = tmp_path / f"it{settings[:5]}"
        train_seed(plan_of_config(config), 0, folder, saving=SAVING, report=lambda _: None)
        kept = read_policy(run_of(folder) / "best.npz")
        results.append((read_evaluations(run_of(folder)), kept.learner, kept.steps, kept.rescored))
    assert results[0] == results[1]
    assert results[0][3]


def test_what_acting_needs_is_kept_and_no_more(tmp_path: Path) -> None:
    out = trained(
        tmp_path / "f", "tests/Lane-v0", learners=("training.odd_learners:Compact",), steps=60
    )
    kept = read_policy(run_of(out) / "best.npz")
    assert (kept.whole, list(kept.state)) == (False, ["counts"])
    assert (
        (run_of(out) / "best.npz").stat().st_size
        < 4000
        < (run_of(out) / "checkpoint.npz").stat().st_size
    )
    assert kept.rescored == (1.0,) * len(kept.rescored)  # it walks to the right


def test_the_best_is_the_smallest_of_an_objective_to_minimize(tmp_path: Path) -> None:
    learners = "training.odd_learners:Wandering", "tabular_q(learning_rate=0.5, epsilon=1.0)"
    out = trained(
        tmp_path / "f", "tests/Lane-v0", learners=learners, steps=200, objective="shortest"
    )
    kept = read_policy(run_of(out) / "best.npz")
    assert (kept.learner, kept.mean, set(kept.rescored)) == (
        "tabular Q",
        lane.CELLS - 1,
        {lane.CELLS - 1},
    )


def test_callbacks_and_the_status_get_the_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from esbas.training.callbacks import Callback
    from esbas.training.display import tensorboard

    monkeypatch.setattr(one_run, "REPORT_EVERY", 0.0)
    found = []
    played = []

    class Recorder(Callback):
        def on_evaluation(self, evaluation: Any) -> None:
            found.append(evaluation)

    monkeypatch.setattr(tensorboard, "TensorBoardWriter", Recorder)
    plan = TrainingConfig("tests/Lane-v0", learners=LANE, steps=100, eval_every=50, eval_episodes=3)
    plan = plan_of_config(plan)
    train_seed(
        plan,
        0,
        tmp_path,
        saving=SaveOptions(),
        report=lambda status: played.append(status.evaluated),
    )
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
        ("evaluations.csv", "HEADER\n5,a,1,,1,1,9,\n", "a row at step 5 has the mean ''"),
        (
            "best.npz",
            "no zip",
            "The best policy in .* cannot be read: .* damaged .* or remove it and",
        ),
        ("best.npz", None, "The best policy in .* cannot be read: There is no save file"),
    ],
)
def test_damaged_files_are_refused(
    whole: Path, tmp_path: Path, file: str, content: str | None, sentence: str
) -> None:
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
    with pytest.raises(
        SaveFileError, match=r"must have a policy of the evaluations .* has that of 'another'"
    ):
        train_seed(open_folder(out, trust=True).plan, 0, out, saving=SAVING, report=lambda _: None)
    for change in ({"steps": -1}, {"rescored": ["x"]}, {"state": 3}):
        archive.write(path, "policy", archive.read(path, "policy") | change)
        with pytest.raises(EsbasError, match=r"The policy in .* must have"):
            read_policy(path)


class Right:
    """Walks straight to the goal."""

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return 1


class Left:
    """Never ends an episode."""

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return 0


def lane_scorer(policies: dict[str, Any], *, budget: float, limit: int = 100) -> Scorer:
    return Scorer(
        lane.Lane(),
        esbas.total_return(),
        policies,
        stream=lambda number: seeding.generator(0, number),
        limit=limit,
        budget=budget,
    )


def test_rounds_stay_within_the_budget() -> None:
    def score(budget: float) -> list[int]:
        scorer = lane_scorer({"a": Right, "b": Right}, budget=budget)
        scorer.play(5)
        return [len(each.values) for each in scorer.scores.values()]

    round_steps = 2 * (lane.CELLS - 1)
    assert score(math.inf) == [5, 5]
    assert score(round_steps) == [1, 1]
    assert score(2 * round_steps - 1) == [1, 1]
    assert score(2 * round_steps) == [2, 2]
    assert score(2) == [0, 0]


def test_stuck_policies_stay_within_the_budget_and_leave_steps_to_the_others() -> None:
    scorer = lane_scorer(
        {"a": Left, "b": Left, "c": Right, "d": Left, "e": Right}, budget=50, limit=1000
    )
    scorer.play(100)
    assert sum(score.played for score in scorer.scores.values()) <= 50
    assert list(scorer.valid) == ["c", "e"]
    cut = "an episode did not end within the 10 steps that the evaluation had left"
    assert scorer.scores["a"].problem == cut
    assert all(score.values for score in scorer.valid.values())


def test_a_round_that_the_budget_cuts_is_not_counted() -> None:
    class Late(Right):
        """Waits in its second episode."""

        episodes = 0

        def start(self) -> Any:
            self.episodes += 1
            return Left() if self.episodes == 2 else self

    scorer = lane_scorer({"a": Right, "b": Late}, budget=40)
    scorer.play(5)
    assert [len(score.values) for score in scorer.scores.values()] == [1, 1]
    assert [score.problem for score in scorer.scores.values()] == ["", ""]
    assert sum(score.played for score in scorer.scores.values()) == 40


@pytest.mark.parametrize("every", [0, 100])
@pytest.mark.parametrize("steps", [300, 2000, 4000])
def test_the_evaluation_of_stuck_policies_stays_within_a_share_of_the_training(
    tmp_path: Path, every: int, steps: int
) -> None:
    stuck = [f"training.odd_learners:Stuck(name={name!r})" for name in ("b", "c", "d")]
    learners = *LANE, "training.odd_learners:Wandering", *stuck
    out = trained(
        tmp_path / "it", "tests/Lane-v0", learners=learners, steps=steps, eval_every=every
    )
    rows = read_evaluations(run_of(out))
    kept = read_policy(run_of(out) / "best.npz")
    assert kept.learner in {"tabular Q", "Wandering"}
    played: dict[int, int] = {}
    for row in rows:
        played[row.steps] = played.get(row.steps, 0) + row.played
    *earlier, last = played
    trained_steps = last
    share = max(evaluation.END_SHARE * trained_steps, evaluation.FEWEST_STEPS)
    assert played[last] + kept.rescored_steps <= share
    # Evaluations in between take at most as many steps as the training since the last one.
    assert bool(earlier) == bool(every)
    assert all(played[step] <= every for step in earlier)
    cut = [row.problem for row in rows if row.learner == "Stuck" and row.steps == last]
    assert cut[0].startswith(("an episode did not end within", "it was not played"))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("where", ["_duel", "_score_again", "_write_best"])
def test_a_run_that_is_killed_while_its_best_policy_is_scored_ends_with_the_same_files(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """`where` is what the kill comes before. An earlier policy is in best.npz then."""
    for name in ("config.json", "portfolio.toml", "spaces.json"):
        shutil.copy(whole / name, tmp_path / name)
    plan = open_folder(tmp_path, trust=True).plan
    original = getattr(evaluation.Evaluator, where)

    def kill(evaluator: Any, *arguments: Any) -> Any:
        if evaluator._run.done:
            raise Killed
        return original(evaluator, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation.Evaluator, where, kill)
        with pytest.raises(Killed):
            train_seed(plan, 0, tmp_path, saving=SAVING, report=lambda _: None)
    train_seed(plan, 0, tmp_path, saving=SAVING, report=lambda _: None)
    same = (run_of(tmp_path) / "evaluations.csv").read_bytes()
    assert same == (run_of(whole) / "evaluations.csv").read_bytes()
    one, other = (archive.read(run_of(each) / "best.npz", "policy") for each in (tmp_path, whole))
    assert_equal(one, other)


def test_a_lucky_policy_of_an_earlier_evaluation_has_to_win_again(tmp_path: Path) -> None:
    out = trained(
        tmp_path / "it", "tests/Lane-v0", learners=LANE[:1], steps=400, objective="shortest"
    )
    path = run_of(out) / "best.npz"
    steps = [row.steps for row in read_evaluations(run_of(out))]
    lucky = archive.read(path, "policy") | {"steps": steps[0], "mean": 0.0, "rescored": []}
    archive.write(path, "policy", lucky)
    clock = run_of(out) / "clock.json"
    clock.write_text(clock.read_text().replace("true", "false"))
    train_seed(open_folder(out).plan, 0, out, saving=SAVING, report=lambda _: None)
    kept = read_policy(path)
    assert (kept.steps, kept.mean) == (steps[-1], lane.CELLS - 1)
    assert set(kept.rescored) == {lane.CELLS - 1}


class FailingAfterTraining(gymnasium.Wrapper):
    """Fails when the steps of the training have been taken."""

    taken = 0

    def reset(self, **options: Any) -> Any:
        if self.taken >= 60:
            raise OSError("the robot is tired")
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.taken += 1
        return super().step(action)


def test_an_environment_that_fails_in_an_evaluation_does_not_end_the_run(tmp_path: Path) -> None:
    config = TrainingConfig(
        "tests/Lane-v0", learners=LANE[:1], steps=60, wrappers=[FailingAfterTraining]
    )
    train_seed(plan_of_config(config), 0, tmp_path, saving=SAVING, report=lambda _: None)
    assert [row.problem for row in read_evaluations(run_of(tmp_path))] == [
        "OSError: the robot is tired"
    ]


def episodes_of(values: list[float]) -> Episodes:
    """Episodes of one step each."""
    count = len(values)
    return Episodes(
        steps=np.arange(1, count + 1),
        learners=np.array(["a"] * count),
        values=np.array(values),
        lengths=np.ones(count, np.int64),
        epochs=np.zeros(count, np.int64),
        terminated=np.ones(count, np.bool_),
        truncated=np.zeros(count, np.bool_),
    )


def summary_of(tmp_path: Path, values: list[float], *, maximize: bool = True) -> EvaluationSummary:
    count = len(values)
    (tmp_path / "clock.json").write_text(
        json.dumps({"seconds": 1.0, "episodes": count, "steps": count, "finished": True})
    )
    run = episodes_of(values)
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
    run = episodes_of([0.0] * 3)
    unfinished = EvaluationSummary({0: run}, {0: tmp_path}, esbas.total_return())
    assert (summary.learnt, unfinished.learnt) == (False, None)
    assert "learning" not in " ".join(unfinished.sentences())


@pytest.mark.parametrize(("fresh", "learnt"), [(2, None), (20, True)])
def test_a_best_policy_that_played_too_little_leaves_it_open(
    tmp_path: Path, fresh: int, learnt: bool | None
) -> None:
    """The ends of a run with 20 episodes are alike, and its best policy is far better."""
    values = [float(number % 10) for number in range(20)]
    assert summary_of(tmp_path, values).learnt is False
    best = StoredPolicy(
        learner="a",
        algorithm="dqn",
        seed=0,
        steps=20,
        mean=100.0,
        whole=False,
        state={},
        rescored=(100.0,) * fresh,
        rescored_steps=fresh,
    )
    write_policy(tmp_path / BEST, best)
    # 1 of the 66 ways to choose 2 of 12 ranks is more than 0.005.
    assert summary_of(tmp_path, values).learnt is learnt


def test_bad_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--eval-every", "-1"], ["--eval-episodes", "0"]):
        assert (
            cli.main(
                [
                    "train",
                    "CartPole-v1",
                    "--learners",
                    "random",
                    "--out",
                    str(tmp_path / "f"),
                    *words,
                ]
            )
            == 2
        )
        assert words[0][2:].replace("-", "_") in capsys.readouterr().err
    assert not (tmp_path / "f").exists()
