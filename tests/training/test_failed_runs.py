"""Runs without a result end with an exit code and a sentence that names the cause."""

import csv

import pytest

import broken_envs
import esbas
from esbas import cli
from esbas.errors import BrokenEnvError, NoLearnerError, TrainingError
from esbas.training import TrainingConfig
from esbas.training.runs.one_run import SaveOptions, is_finished, train_seed
from esbas.training.runs.working import LearnerWatch, watch_of
from training.programs import assert_same, numbers, plan_of_config

QUIET = ["--no-tensorboard", "--no-progress"]


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Skip the report, which takes longer than these trainings. `monkeypatch.undo` restores it."""
    monkeypatch.setattr("esbas.training.train.write_report", lambda *_: None)


def train(out, env="CartPole-v1", *words, learners=("random",), budget=("--steps", "2000")):
    """Return the exit code of a training."""
    return cli.main(
        ["train", env, "--out", str(out), "--learners", *learners, *budget, *QUIET, *words]
    )


def broken(*names):
    return [f"training.broken_learners:{name}" for name in names]


def lengths(out, seed=0):
    with (out / "runs" / f"seed-{seed}" / "episodes.csv").open(newline="") as file:
        return [int(row["length"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ("broken_envs:OtherShape", "'OtherShape' must return observations of the shape (2,)"),
        ("broken_envs:NotFiniteLate", "'NotFiniteLate' must return observations that are finite"),
        ("broken_envs:RewardNotFinite", "'RewardNotFinite' must return finite rewards"),
        ("broken_envs:OldStep", "'OldStep' must return 5 values"),
        ("broken_envs:OldReset", "'OldReset' must return an observation and a dictionary"),
        ("broken_envs:WithoutActions", "An environment needs an `action_space`"),
        ("broken_envs:WithoutObservations", "An environment needs an `observation_space`"),
        ("broken_envs:tests/WithoutActions-v0", "An environment needs an `action_space`"),
    ],
)
def test_a_broken_environment_has_its_exit_code(tmp_path, capsys, env, found):
    assert train(tmp_path / "t", env) == cli.BROKEN_ENV == 4
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("esbas: ")
    assert found in last


def test_one_of_several_runs_in_a_broken_environment(tmp_path, capsys):
    options = ["--seeds", "0", "1", "--jobs", "2"]
    assert train(tmp_path / "t", "broken_envs:OldStep", *options) == 4
    assert "The environment 'OldStep' must return 5 values" in capsys.readouterr().err


def test_a_broken_environment_is_an_exception_in_python(tmp_path):
    with pytest.raises(BrokenEnvError, match="'NotFinite' must return observations"):
        esbas.train(
            "broken_envs:NotFinite",
            learners="random",
            steps=100,
            out=tmp_path / "t",
            progress=False,
            tensorboard=False,
        )


def test_a_run_without_a_learner_that_acts_ends_early(tmp_path, capsys):
    out = tmp_path / "t"
    assert train(out, learners=broken("CannotAct", "ActsOutside")) == cli.NO_LEARNER == 3
    *_, last = capsys.readouterr().err.splitlines()
    assert "The run of seed 0 failed, because no learner was able to act in the last 2" in last
    assert "'ValueError: no action today' (in `act` of 'CannotAct', " in last
    assert f"`esbas resume {out} --trust` continues" in last  # it imports the learners
    assert sum(lengths(out)) < 1000
    # It fails again, after one more episode.
    before = len(lengths(out))
    assert cli.main(["resume", str(out), "--trust", *QUIET]) == 3
    assert len(lengths(out)) == before + 1


class Failing(broken_envs.Sound):
    def step(self, action):
        raise OSError("the robot is unplugged")


@pytest.mark.parametrize(
    ("env", "remedy"),
    [
        ("training.test_failed_runs:Failing", "`esbas resume '{out}' --trust`"),
        (lambda: Failing(), "the same call of `esbas.train`"),  # no command can build it
    ],
)
def test_the_remedy_is_what_has_to_be_typed(tmp_path, env, remedy):
    out = tmp_path / "with a space"
    with pytest.raises(TrainingError) as caught:
        esbas.train(env, learners="random", steps=50, out=out, progress=False, tensorboard=False)
    assert str(caught.value).endswith(f"fix the error, then {remedy.format(out=out)} continues.")


@pytest.mark.parametrize(
    ("learner", "options", "cause"),
    [
        ("CannotStep", ["--steps", "500"], "all learners were dismissed in the last 2"),
        ("CannotLearn", ["--steps", "500"], "all learners were dismissed in the last 2"),
        ("CannotLearn", ["--episodes", "5"], "no learner was able to learn in 5 episodes"),
        ("CannotAct", ["--episodes", "1"], "no learner was able to act in the last episode"),
        (
            # The learner comes back within the second half of its last epoch.
            "CannotLearn",
            ["--episodes", "120", "--selector", "esbas"],
            "no learner was able to learn in 120 episodes",
        ),
    ],
)
def test_a_run_in_which_no_learner_learns_has_failed(tmp_path, capsys, learner, options, cause):
    out = tmp_path / "t"
    assert train(out, learners=broken(learner), budget=options) == 3
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith(f"esbas: The run of seed 0 failed, because {cause}")
    assert "then train again in another folder" in message
    # Whoever continues the finished training gets the same answer.
    assert cli.main(["resume", str(out), "--trust", *QUIET]) == 3
    assert capsys.readouterr().err.splitlines()[-1] == message


def test_one_learner_that_works_is_enough(tmp_path):
    works = "training.odd_learners:Wandering"
    for number, bad in enumerate(("CannotAct", "CannotStep", "CannotLearn")):
        assert train(tmp_path / str(number), learners=[*broken(bad), works]) == 0
        assert train(tmp_path / f"r{number}", learners=[*broken(bad), "random"]) == 0


def test_no_sign_of_learning_is_a_result(tmp_path):
    assert train(tmp_path / "t") == 0


def test_a_run_without_learners_is_an_exception_in_python_and_has_a_report(tmp_path, monkeypatch):
    monkeypatch.undo()
    out = tmp_path / "t"
    with pytest.raises(NoLearnerError, match="no learner was able to act"):
        esbas.train(
            "CartPole-v1",
            learners=broken("CannotAct"),
            steps=300,
            seeds=[0, 1],
            out=out,
            progress=False,
            tensorboard=False,
        )
    assert lengths(out, seed=1)  # one run that fails does not stop the others
    assert (out / "report.html").is_file()


def test_the_log_tells_the_same_as_the_run(tmp_path):
    out = tmp_path / "t"
    assert train(out, learners=broken("CannotLearn", "CannotStep")) == 3
    directory = out / "runs" / "seed-0"
    names = ["CannotLearn", "CannotStep"]
    assert watch_of(directory, names).unable_at_end().startswith("all learners were dismissed")
    assert watch_of(directory, [*names, "another"]).unable_at_end() == ""


def test_a_learner_that_failed_only_at_first_works():
    class Fault:
        learner = "a"
        where = "learn"
        message = "x"
        dismissed = 1

    watch = LearnerWatch(["a"])
    for number in range(1, 31):
        faults = [Fault] if number == 2 else []
        watch.add(number, "a", length=10, steps=10 * number, epoch=0, faults=faults)
    assert watch.unable_at_end() == ""


@pytest.mark.parametrize("learner", ["LeavesInAct", "LeavesInStep", "LeavesAtOnce"])
def test_an_exit_of_a_learner_is_not_a_success(tmp_path, capsys, learner):
    assert train(tmp_path / "t", learners=broken(learner)) == 2
    assert "SystemExit" in capsys.readouterr().err


def test_an_exit_of_an_environment_is_not_a_success(tmp_path, capsys):
    assert train(tmp_path / "t", "broken_envs:Leaving") == 2
    assert "SystemExit: 0" in capsys.readouterr().err
    assert train(tmp_path / "u", "broken_envs:Leaving", "--seeds", "0", "1", "--jobs", "2") == 2


def test_an_exit_while_a_policy_is_evaluated_is_not_a_success(tmp_path, monkeypatch, capsys):
    out = tmp_path / "t"
    assert train(out, "broken_envs:Sound") == 0
    monkeypatch.setattr("broken_envs.Sound.step", lambda *_: exit(0))
    assert cli.main(["evaluate", str(out), "--trust"]) == 2
    assert "code that it called raised SystemExit(0)" in capsys.readouterr().err


def test_the_help_lists_the_exit_codes(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    for code in (0, cli.INVALID, cli.NO_LEARNER, cli.BROKEN_ENV, cli.INTERRUPTED):
        assert f"\n  {code:<5}" in text


def test_a_training_without_ends_keeps_what_was_learnt(tmp_path, monkeypatch, capsys):
    monkeypatch.undo()
    out = tmp_path / "t"
    words = ["train", "broken_envs:Endless", "--out", str(out), "--no-tensorboard"]
    words += ["--learners", "dqn", "random", "--steps", "3000"]
    assert cli.main(words) == 0
    shown = capsys.readouterr()
    assert "Episode 1 has not ended after 1,500 steps" in shown.err
    assert "give --max-episode-steps 1000" in shown.err
    assert "Episode 1 was cut after 3,000 steps" in shown.err
    # 3,000 / 2 * 0.6 steps of the race, for two episodes of each of two learners.
    assert "fresh episodes, each cut after 225 steps" in shown.out
    assert lengths(out) == [3000]
    assert (out / "report.html").is_file()
    assert (out / "runs" / "seed-0" / "best.npz").is_file()
    assert cli.main(["evaluate", str(out), "--trust", "--episodes", "2"]) == 0
    assert cli.main(["evaluate", str(out), "--trust", "--learner", "all", "--episodes", "2"]) == 0


def test_max_episode_steps_is_a_time_limit(tmp_path):
    limited = tmp_path / "limited"
    wrapped = tmp_path / "wrapped"
    env = "broken_envs:Endless(ends=3)"
    assert train(limited, env, "--max-episode-steps", "300", learners=["dqn"]) == 0
    wrapper = "TimeLimit(max_episode_steps=300)"
    assert train(wrapped, env, "--wrappers", wrapper, learners=["dqn"]) == 0
    assert lengths(limited) == [5, 5, 5, *[300] * 7]
    for name in ("runs/seed-0/episodes.csv", "runs/seed-0/evaluations.csv"):
        assert (limited / name).read_text() == (wrapped / name).read_text()


def test_episodes_as_a_budget_are_cut_at_the_limit(tmp_path):
    out = tmp_path / "t"
    budget = ["--episodes", "3", "--max-episode-steps", "40"]
    assert train(out, "broken_envs:Endless", budget=budget) == 0
    assert lengths(out) == [40] * 3


def test_a_run_without_ends_continues_with_the_same_results(tmp_path):
    config = TrainingConfig("broken_envs:EndlessByChance", learners=["dqn"], steps=1600)
    plan = plan_of_config(config)
    saving = SaveOptions(tensorboard=False)
    train_seed(plan, 0, tmp_path / "whole", saving=saving, report=lambda _: None)
    stopped = tmp_path / "stopped"
    while not is_finished(stopped, 0):  # after every episode
        train_seed(plan, 0, stopped, saving=saving, report=lambda _: None, stop=lambda: True)
    assert lengths(tmp_path / "whole")[-2:] == [5, 1000]
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "stopped"))
    for name in ("evaluations.csv", "best.npz"):
        files = [tmp_path / out / "runs" / "seed-0" / name for out in ("whole", "stopped")]
        assert files[0].read_bytes() == files[1].read_bytes()
