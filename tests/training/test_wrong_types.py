"""Whatever is given to `esbas.train` by mistake: one sentence, before a folder is created."""

import dataclasses
import functools
import math
import os
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import esbas
from esbas.errors import EsbasError
from esbas.learners import DQN, Constant, TabularQ
from esbas.training import TrainingConfig


class NoLearner:
    """Has nothing of a learner."""


class NoSelector:
    """Has nothing of a selector."""


def makes_nothing(env, seed):
    """A function of the environment and the seed that returns no learners."""


def makes_a_number(env, seed):
    return 3


def fails(env, seed):
    raise RuntimeError("the model file is missing")


TWIN = Constant("twin", lambda observation: 0)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"env": 3}, "`env` must be the name of an environment"),
    ({"env": None}, "No environment is given"),
    ({"env": ""}, "No environment is given"),
    ({"env": ["CartPole-v1"]}, "`env` must be the name of an environment"),
    ({"env": {"id": "CartPole-v1"}}, "`env` must be the name of an environment"),
    ({"env": b"CartPole-v1"}, "`env` must be the name of an environment"),
    ({"env": SimpleNamespace()}, "`env` must be the name of an environment"),
    ({"env": lambda: 3}, "must be a gymnasium.Env"),
    ({"env": lambda needed: needed}, "must start"),
    ({"env": gymnasium.make_vec("CartPole-v1", num_envs=2)}, "with 2 environments"),
    ({"env": "CartPole-v99"}, "no environment named"),
    ({"env_kwargs": 3}, "`env_kwargs` must be a list"),
    ({"env_kwargs": "render_fps=3"}, "`env_kwargs` must be a list"),
    ({"env_kwargs": [3]}, "`env_kwargs` must be text"),
    ({"env_kwargs": {3: 4}}, "`env_kwargs` must have names of options"),
    ({"env_kwargs": {"sutton_barto_reward": object()}}, "plain values"),
    ({"learners": 3}, "`learners` must be a list"),
    ({"learners": []}, "`learners` must not be empty"),
    ({"learners": [TWIN, TWIN]}, "Learners must have different names"),
    ({"learners": ["dqn(rate=0.1)"]}, "did you mean 'learning_rate'?"),
    ({"callbacks": [NoLearner]}, "but got the class NoLearner"),
    ({"engine": "os:system"}, "The engine 'os:system' must be created without arguments"),
    ({"engine": NoSelector, "jobs": 2}, "An engine must have a method `map`"),
    ({"selector": lambda arms: 1 / 0}, "must be created, but ZeroDivisionError"),
    ({"objective": lambda: 1}, "`objective` must be an objective"),
    ({"out": "x" * 300}, "its name is too long"),
    ({"learners": [3]}, "`learners` must be a list of names of algorithms, learners"),
    ({"learners": {"a": "dqn"}}, "but got a dictionary"),
    ({"learners": [None]}, "but got None"),
    ({"learners": [NoLearner()]}, "but got a value of type NoLearner"),
    ({"learners": NoLearner}, "but got the class NoLearner, which has no method `policy`"),
    ({"learners": esbas.SSBAS}, "but got the class SSBAS"),
    ({"learners": makes_nothing}, "It must return a list of learners"),
    ({"learners": makes_a_number}, "It must return a list of learners"),
    ({"learners": fails}, "the model file is missing"),
    ({"learners": "dqm"}, "did you mean 'dqn'"),
    ({"learners": [b"dqn"]}, "`learners` must be a list of names"),
    ({"portfolio": 3}, "`portfolio` must be a path"),
    ({"portfolio": "nowhere.toml"}, "`portfolio` must be a file"),
    ({"portfolio": "nowhere.toml", "learners": "dqn"}, "Give `learners` or `portfolio`, not both"),
    ({"selector": 3}, "`selector` must be the name of a selector"),
    ({"selector": NoSelector}, "but got the class NoSelector"),
    ({"selector": ["ssbas"]}, "`selector` must be the name of a selector"),
    ({"selector": lambda arms: 3}, "selector"),
    ({"selector": esbas.SSBAS(["a", "b"])}, "arms"),
    ({"selector": functools.partial(esbas.SSBAS, xj=1)}, "xj"),
    ({"scale": 3}, "`scale` must be a list"),
    ({"scale": (3, 1)}, "LOW < HIGH"),
    ({"scale": (1, 2, 3)}, "two numbers"),
    ({"scale": ("a", "b")}, "`scale` must be a number, but got 'a'"),
    ({"xi": "much"}, "`xi` must be a number, but got 'much'"),
    ({"xi": math.inf}, "`xi` must be finite"),
    ({"epochs": 3}, "`epochs` must be a list"),
    ({"epochs": [0]}, "`epochs` must be at least 1"),
    ({"epochs": ["a"]}, "`epochs` must be a whole number"),
    ({"steps": "many"}, "`steps` must be a whole number such as 100000, 1e5, 100k, 2M or"),
    ({"steps": 0}, "`steps` must be at least 1"),
    ({"steps": 1.5}, "`steps` must be a whole number, but got 1.5"),
    ({"steps": True}, "`steps` must be a whole number, but got True"),
    ({"steps": math.nan}, "`steps` must be a whole number"),
    ({"steps": [1000]}, "`steps` must be a whole number"),
    ({"steps": np.array([1, 2])}, "`steps` must be a whole number"),
    ({"episodes": -1}, "`episodes` must be at least 1"),
    ({"steps": 10, "episodes": 10}, "Give `steps` or `episodes`, not both"),
    ({"minutes": 0}, "`minutes` must be greater than 0"),
    ({"minutes": "ten"}, "`minutes` must be a number"),
    ({"minutes": math.inf}, "`minutes` must be finite"),
    ({"until": "best"}, "`until` must be a number, but got 'best'"),
    ({"until": math.nan}, "`until` must be finite"),
    ({"until": True}, "`until` must be a number"),
    ({"normalize_observations": "yes"}, "`normalize_observations` must be True or False"),
    ({"objective": 3}, "`objective` must be the name of an objective"),
    ({"objective": "retrun"}, "did you mean 'return'"),
    ({"seeds": []}, "`seeds` must not be empty"),
    ({"seeds": "zero"}, "`seeds` must be whole numbers such as 0 1 2, 0,1,2 or 0-4"),
    ({"seeds": [1, 1]}, "`seeds` must be different"),
    ({"seeds": [-1]}, "`seeds` must be at least 0"),
    ({"seeds": [0.5]}, "`seeds` must be a whole number"),
    ({"seeds": {0, 1}}, "`seeds` must be a list"),
    ({"seeds": None}, "`seeds` must be a list"),
    ({"seeds": np.array(3.5)}, "`seeds` must be a list"),
    ({"wrappers": 3}, "`wrappers` must be a list"),
    ({"wrappers": [3]}, "`wrappers` must be text, classes, or functions"),
    ({"wrappers": "TimeLimt(max_episode_steps=5)"}, "did you mean 'TimeLimit'"),
    ({"wrappers": [lambda env: 3]}, "must be a gymnasium.Env"),
    ({"wrappers": ["none", "FlattenObservation"]}, "must be the only one"),
    ({"max_episode_steps": 0}, "`max_episode_steps` must be at least 1"),
    ({"learn_timeout": 0}, "`learn_timeout` must be greater than 0"),
    ({"eval_every": -1}, "`eval_every` must be at least 0"),
    ({"eval_episodes": 0}, "`eval_episodes` must be at least 1"),
    ({"start_from": 3}, "`start_from` must be a path"),
    ({"start_from": "nowhere"}, "nowhere"),
    ({"device": 3}, "`device` must be text"),
    ({"out": 3}, "`out` must be a path"),
    ({"out": ""}, "`out` must be a path"),
    ({"out": b"here"}, "`out` must be a path"),
    ({"jobs": 0}, "`jobs` must be at least 1"),
    ({"jobs": "two"}, "`jobs` must be a whole number"),
    ({"engine": 3}, "`engine` must be the name of an engine"),
    ({"engine": "proceses"}, "did you mean 'processes'"),
    ({"engine": "threads", "jobs": 2, "seeds": [0, 1]}, "in different processes"),
    ({"resources": 3}, "`resources` must be a list"),
    ({"resources": {"cpus": 2}}, "`resources` are for jobs on a cluster"),
    ({"processes": 0}, "`processes` must be at least 1"),
    ({"checkpoint_every": -1}, "`checkpoint_every` must be at least 0"),
    ({"checkpoint_every": "often"}, "`checkpoint_every` must be a number"),
    ({"tensorboard": "no"}, "`tensorboard` must be True or False"),
    ({"progress": 1}, "`progress` must be True or False"),
    ({"callbacks": 3}, "`callbacks` must be a list"),
    ({"callbacks": [3]}, "`callbacks` must be text, callbacks, or classes"),
    ({"callbacks": ["nowhere:Logger"]}, "nowhere"),
    ({"stepz": 3}, "did you mean 'steps'"),
]


def identity(case):
    return next(iter(case)) if isinstance(case, dict) else ""


@pytest.mark.parametrize(("options", "sentence"), WRONG, ids=identity)
def test_what_is_wrong_gets_one_sentence(options, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = {
        "env": "CartPole-v1",
        "learners": "random",
        "steps": 20,
        "tensorboard": False,
        "progress": False,
    }
    given = usual | options
    if "episodes" in options and "steps" not in options:
        del given["steps"]
    if "portfolio" in options and "learners" not in options:
        del given["learners"]
    with pytest.raises(EsbasError) as caught:
        esbas.train(**given)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("CartPole-v1", 20), {}, "Only `env` can be given without its name"),
        (("CartPole-v1",), {"env": "Acrobot-v1"}, "`env` is given twice"),
    ],
)
def test_options_are_given_by_name(arguments, options, sentence):
    with pytest.raises(EsbasError, match=sentence):
        esbas.train(*arguments, **options)


@pytest.mark.parametrize("function", [esbas.load_training, esbas.load_policy, esbas.compare])
def test_trust_is_true_or_false(function, tmp_path):
    with pytest.raises(EsbasError, match="`trust` must be True or False, but got 'no'"):
        function(tmp_path, trust="no")


def test_there_are_fifty_of_them():
    assert len(WRONG) >= 50
    tried = {name for options, _ in WRONG for name in options}
    assert tried >= {field.name for field in dataclasses.fields(TrainingConfig)}


@pytest.mark.parametrize(
    ("options", "field", "expected"),
    [
        ({"steps": 6e4}, "steps", 60_000),
        ({"steps": np.int64(7)}, "steps", 7),
        ({"seeds": 3}, "seeds", (3,)),
        ({"seeds": range(3)}, "seeds", (0, 1, 2)),
        ({"seeds": np.arange(2)}, "seeds", (0, 1)),
        ({"seeds": (each for each in (4, 5))}, "seeds", (4, 5)),
        ({"until": np.float32(1.5)}, "until", 1.5),
        ({"until": Fraction(1, 2)}, "until", 0.5),
        ({"scale": None}, "scale", "raw"),
        ({"scale": (0, 500)}, "scale", "0.0,500.0"),
        ({"selector": esbas.SSBAS}, "selector", "ssbas"),
        ({"selector": esbas.KalmanThompson}, "selector", "kalman-thompson"),
        ({"selector": None}, "selector", "kalman-thompson"),
        ({"objective": esbas.total_return}, "objective", "return"),
        ({"wrappers": gymnasium.wrappers.FlattenObservation}, "wrappers", ("FlattenObservation",)),
        ({"learners": TabularQ}, "learners", ("tabular_q",)),
        ({"learners": DQN}, "learners", ("dqn",)),
        ({"resources": {"cpus": 2, "memory": 4}}, "resources", ("cpus=2", "memory=4")),
        ({"out": Path("here")}, "out", "here"),
        (
            {"env_kwargs": {"sutton_barto_reward": True}},
            "env",
            "CartPole-v1(sutton_barto_reward=True)",
        ),
    ],
    ids=lambda case: str(case)[:40],
)
def test_several_forms_mean_the_same(options, field, expected):
    config = TrainingConfig("CartPole-v1", **options)
    assert getattr(config, field) == expected
    assert TrainingConfig.from_plain(config.to_plain()).to_plain() == config.to_plain()


def test_paths_may_be_any_object_with_a_path(tmp_path):
    class Elsewhere(os.PathLike):
        def __fspath__(self):
            return str(tmp_path / "it")

    assert TrainingConfig("CartPole-v1", out=Elsewhere()).folder == tmp_path / "it"
