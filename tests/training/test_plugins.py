"""Learners, objectives, wrappers and engines outside the package, by `module:Class` or by name."""

import json

import gymnasium as gym
import pytest

from engine import plain
from esbas import Objective, cli
from esbas.errors import EsbasError, InvalidValueError, UnknownNameError
from esbas.objective import OBJECTIVES, make_objective
from esbas.specs.options import read_call
from esbas.specs.portfolios import read_recipe
from esbas.training import ALGORITHMS, make_env, recipe_of
from esbas.training.runs.episode_log import read_episodes
from training.plugins import BRIEF, Steady

TASK = gym.make("CartPole-v1")


def build(*members):
    return recipe_of(members).build(TASK, steps=10, seed=5)


@pytest.fixture
def registered(monkeypatch):
    """Names that a test registers are removed after it."""
    for registry in (ALGORITHMS, OBJECTIVES):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_titles", dict(registry._titles))


def test_a_learner_class_gets_its_name_the_task_and_its_options():
    first, second = build(
        "training.plugins:Steady(action=1, label='x')", "training.plugins:Plainest"
    )
    assert isinstance(first, Steady)
    assert (first.name, first.space, first.seed, first.label) == (
        "Steady",
        TASK.action_space,
        5,
        "x",
    )
    assert second.name == "Plainest"


def test_toml_names_a_learner_class_too():
    text = '[[learner]]\nalgorithm = "training.plugins:Steady"\nname = "a {action}"\n'
    text += "grid = { action = [0, 1] }\n"
    recipe = read_recipe(text, source="p.toml")
    assert recipe.names == ("a 0", "a 1")
    assert [learner.name for learner in recipe.build(TASK, steps=10, seed=0)] == ["a 0", "a 1"]


def test_a_class_is_registered_with_a_decorator(registered):
    assert ALGORITHMS.register("my steady")(Steady) is Steady
    (learner,) = build("my_steady(action=1)")
    assert isinstance(learner, Steady)
    with pytest.raises(UnknownNameError, match="did you mean 'my steady'"):
        build("my_stedy")


@pytest.mark.parametrize(
    ("member", "kind", "message"),
    [
        (
            "training.plugins:Steady(acton=1)",
            UnknownNameError,
            "no option of training.plugins:Steady named 'acton': did you mean",
        ),
        (
            "training.plugins:Steady(action='x')",
            InvalidValueError,
            "`action` of training.plugins:Steady must be a whole",
        ),
        (
            "training.plugins:Steady(seed=1)",
            InvalidValueError,
            "must not be given, because esbas sets it: remove it",
        ),
        (
            "training.plugins:Stedy",
            UnknownNameError,
            "There is no object in module 'training.plugins' named 'Stedy': did you mean",
        ),
        (
            "no_such_module:Steady",
            UnknownNameError,
            "There is no module named 'no_such_module': install it, or",
        ),
        (
            "training.plugins:Nameless",
            InvalidValueError,
            "The first argument of 'training.plugins:Nameless' must be the name of the learner",
        ),
        ("training.plugins:BRIEF", InvalidValueError, "The portfolio, [[learner]] number 1"),
        (
            "training.plugins:Misnamed",
            InvalidValueError,
            "A learner must have the name 'Misnamed' that it is created with, but got",
        ),
    ],
)
def test_a_class_that_does_not_fit_raises_a_clear_error(member, kind, message):
    with pytest.raises(kind) as caught:
        build(member)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_calls_may_name_a_module():
    assert read_call(" a.b:C(x={'k': 1}) ") == ("a.b:C", {"x": {"k": 1}})
    assert read_call("a:C") == ("a:C", {})
    for text in ("a:", ":C", "a:b:C", "a: C", "3:C"):
        with pytest.raises(InvalidValueError, match="must be a name, or a name with options"):
            read_call(text)


def test_objectives_are_found_by_name_and_by_module(registered):
    assert make_objective("shortest").maximize is False
    assert make_objective("training.plugins:brief").name == "brief"
    assert make_objective("training.plugins:BRIEF") is BRIEF
    function = make_objective("training.plugins:negative_length")
    assert isinstance(function, Objective)
    assert (function.name, function.maximize) == ("negative_length", True)
    OBJECTIVES.register("mine")(lambda: BRIEF)
    assert make_objective("mine") is BRIEF
    with pytest.raises(
        UnknownNameError, match="There is no objective named 'retrun': did you mean 'return'"
    ):
        make_objective("retrun")
    with pytest.raises(InvalidValueError, match="An objective must be a function"):
        make_objective("training.test_plugins:TASK")


def test_wrappers_are_found_by_module():
    wrapped = make_env(
        "CartPole-v1", wrappers=["gymnasium.wrappers:TimeLimit(max_episode_steps=3)"]
    )
    wrapped.reset(seed=0)
    assert [wrapped.step(0)[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(EsbasError, match="did you mean 'max_episode_steps'"):
        make_env("CartPole-v1", wrappers=["gymnasium.wrappers:TimeLimit(max_episode_step=3)"])


def test_a_training_with_plugins_only(tmp_path, capsys):
    out = tmp_path / "it"
    members = [
        "training.plugins:Steady(name='zero')",
        "training.plugins:Steady(name='one', action=1)",
    ]
    more = [
        "--objective",
        "training.plugins:negative_length",
        "--engine",
        "engine.plain:Plain",
        "--no-tensorboard",
    ]
    plain.started.clear()
    more += ["--selector", "ssbas"]  # plays every learner once first
    command = [
        "train",
        "CartPole-v1",
        "--learners",
        *members,
        "--episodes",
        "4",
        "--seeds",
        "0",
        "1",
        "--jobs",
        "2",
        *more,
    ]
    assert cli.main([*command, "--out", str(out)]) == 0
    assert plain.started == ["seed 0", "seed 1"]
    assert json.loads((out / "summary.json").read_text())["objective"] == "negative_length"
    episodes = read_episodes(out / "runs" / "seed-1")
    assert set(episodes.learners) == {"zero", "one"}
    assert (episodes.values == -episodes.lengths).all()
    plain.started.clear()
    (out / "runs" / "seed-1" / "clock.json").unlink()
    assert (
        cli.main(
            ["resume", str(out), "--engine", "engine.plain:Plain", "--no-tensorboard", "--trust"]
        )
        == 0
    )
    assert plain.started == ["seed 1"]
    capsys.readouterr()
    assert cli.main(["resume", str(out), "--engine", "proceses", "--trust"]) == 2
    assert "did you mean 'processes'" in capsys.readouterr().err
    assert cli.main(["resume", str(out), "--engine", "threads", "--jobs", "2", "--trust"]) == 2
    assert "use the engine processes, or jobs=1" in capsys.readouterr().err
