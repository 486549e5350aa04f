"""Actions that are numbered automatically: policies return those of the environment."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

import esbas
from esbas import cli
from esbas.training import open_folder
from training.programs import SMALL, assert_same, numbers
from training.programs import train_without_report as train

WANTED = {
    "MultiDiscrete": (MultiDiscrete([2, 3]), [1, 2]),
    "MultiDiscrete from 5": (MultiDiscrete([2, 3], start=[5, 0]), [6, 2]),
    "MultiBinary": (MultiBinary(2), [1, 0]),
    "Discrete from 1": (Discrete(3, start=1), 2),
    "Tuple": (Tuple([Discrete(2, start=1), Discrete(3)]), (2, 1)),
    "Dict": (Dict(arm=Discrete(2), hand=Discrete(2)), {"arm": 1, "hand": 0}),
}


def is_same(action, wanted):
    return action == wanted if isinstance(wanted, dict) else np.array_equal(action, wanted)


class Lock(gymnasium.Env):
    """One action opens the lock. An episode has ten attempts."""

    def __init__(self, kind="MultiDiscrete", *, as_vector=False):
        self.action_space, self.wanted = WANTED[kind]
        self.observation_space = Box(0, 1, (2,)) if as_vector else Discrete(2)
        self.observation = np.ones(2, np.float32) if as_vector else 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.attempts = 0
        return self.observation, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.attempts += 1
        opens = is_same(action, self.wanted)
        return self.observation, float(opens), False, self.attempts == 10, {}


@pytest.mark.parametrize("kind", WANTED)
def test_the_policy_returns_the_actions_of_the_environment(tmp_path, capsys, kind):
    name = f"training.test_converted_actions:Lock(kind={kind!r})"
    training = train(name, episodes=60, out=tmp_path / "it", tensorboard=False, progress=False)
    notes = [line for line in capsys.readouterr().err.splitlines() if "DiscreteActions" in line]
    assert len(notes) == 1
    assert notes[0].startswith("Actions are numbered from 0 to ")
    space, wanted = WANTED[kind]
    for policy in (training.policy(), esbas.load_policy(tmp_path / "it", trust=True)):
        assert policy.action_space == space
        assert is_same(policy.act(1), wanted)
        assert is_same(policy.predict(1)[0], wanted)
        assert space.contains(policy.act(1))
    assert training.config.wrappers == ()
    assert open_folder(tmp_path / "it", trust=True).plan.wrapped_env()[1] == ("DiscreteActions",)
    assert training.evaluate(episodes=2).mean == 10


def test_an_exported_policy_has_the_actions_of_the_environment(tmp_path, capsys):
    name = "training.test_converted_actions:Lock(as_vector=True)"
    learners = [SMALL.format(0.01), "sb3.dqn(learning_starts=10)"]
    training = train(
        name,
        learners=learners,
        episodes=3,
        out=tmp_path / "it",
        tensorboard=False,
        progress=False,
    )
    first, second = map(str, training.table()["learner"])
    with np.load(training.export(tmp_path / "policy.npz", learner=first)) as file:
        about = json.loads(str(file["description"]))
        actions = file["actions"]
    assert about["wrappers"] == ["DiscreteActions"]
    assert actions.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert cli.main(["export", str(tmp_path / "it"), "--learner", second, "--trust"]) == 0
    assert "is a number; the actions are [[0, 0], [0, 1]" in "".join(
        capsys.readouterr().out.split("\n")
    )


def test_exported_actions_with_several_parts_are_rows(tmp_path):
    name = "training.test_converted_actions:Lock(kind='Dict')"
    out = tmp_path / "it"
    training = train(name, episodes=3, out=out, tensorboard=False, progress=False)
    with np.load(training.export(tmp_path / "policy.npz")) as file:
        assert file["actions"].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_a_training_with_numbered_actions_continues_with_the_same_results(tmp_path):
    name = "training.test_converted_actions:Lock(kind='MultiDiscrete')"
    options = {"tensorboard": False, "progress": False}
    train(name, steps=400, out=tmp_path / "whole", **options)
    train(name, steps=200, out=tmp_path / "parts", **options)
    words = ["--steps", "400", "--trust", "--no-tensorboard"]
    assert cli.main(["resume", str(tmp_path / "parts"), *words]) == 0
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "parts"))
