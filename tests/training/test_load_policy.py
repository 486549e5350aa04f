"""`esbas.load_policy`: the policy without its task; spaces as plain data."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Text, Tuple

import esbas
from esbas.errors import (
    EsbasError,
    InvalidValueError,
    SaveFileError,
    SpaceError,
    TrustError,
    UnknownNameError,
)
from esbas.training import open_folder
from esbas.training.policies.policy_file import read_policy, write_policy
from esbas.training.policies.space_data import LARGEST, fitted, from_data, to_data
from training import lane
from training.programs import SMALL
from training.programs import train_without_report as train

SPACES = {
    "discrete": Discrete(5, start=-2),
    "uniform box": Box(0, 255, (84, 84, 3), np.uint8),
    "box": Box(np.array([-1, -np.inf], np.float32), np.array([1, np.inf], np.float32)),
    "matrix": Box(np.array([[0.0, 1.0]]), np.array([[2.0, 3.0]]), dtype=np.float64),
    "wide integers": Box(-(2**63), 2**63 - 1, (1,), np.int64),
    "multi-discrete": MultiDiscrete([[3, 4], [5, 6]], start=[[0, 1], [0, 0]]),
    "multi-binary": MultiBinary([2, 3]),
    "tuple": Tuple([Discrete(3), Box(-1, 1, (2,))]),
    "dict": Dict([("b", Discrete(3)), ("a", Tuple([MultiBinary(2)]))]),
    "text": Text(9, min_length=2, charset="abc"),
}


@pytest.mark.parametrize("kind", SPACES)
def test_spaces_survive_as_plain_data(kind: str) -> None:
    space = SPACES[kind]
    again = from_data(json.loads(json.dumps(to_data(space), allow_nan=False)), "it")
    assert (again, type(again), again.dtype) == (space, type(space), space.dtype)
    if isinstance(space, Dict):
        assert list(again.spaces) == list(space.spaces)  # in order, for flattened observations


def test_the_data_of_an_image_are_short_and_unknown_spaces_are_described() -> None:
    assert len(json.dumps(to_data(SPACES["uniform box"]))) < 100
    graph = from_data(to_data(Graph(Discrete(2), None)), "it")
    assert graph.contains("anything")
    assert graph == from_data(to_data(graph) | {"space": "other"}, "it")


@pytest.mark.parametrize(
    "data",
    [
        3,
        {},
        {"space": "Sphere"},
        {"space": "Discrete", "n": 0, "start": 0},
        {"space": "Discrete", "n": 3},
        {"space": "Box", "shape": [LARGEST, 2], "dtype": "float32", "low": 0, "high": 1},
        {"space": "Box", "shape": [2], "dtype": "object", "low": 0, "high": 1},
        {"space": "Box", "shape": [2], "dtype": "float32", "low": [0, 0, 0], "high": 1},
        {"space": "Box", "shape": [2], "dtype": "float32", "low": "x", "high": 1},
        {"space": "Box", "shape": [2], "dtype": "uint8", "low": "-inf", "high": 1},
        {"space": "Box", "shape": [2], "dtype": "int8", "low": 0, "high": 2**40},
        {"space": "MultiDiscrete", "nvec": [2, "x"], "start": [0, 0], "dtype": "int64"},
        {"space": "MultiDiscrete", "nvec": [], "start": [], "dtype": "int64"},
        {"space": "MultiBinary", "n": [-1]},
        {"space": "MultiBinary", "n": 2**60},
        {"space": "Dict", "spaces": [["a"]]},
        {"space": "Tuple", "spaces": [{"space": "Discrete", "n": 1.5, "start": 0}]},
        {"space": "Text", "min_length": 5, "max_length": 2, "characters": "a"},
    ],
)
def test_hostile_data_raise_one_sentence(data: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"\b[Ii]t\b") as caught:
        from_data(data, "it")
    assert "\n" not in str(caught.value)


def test_observations_are_converted_or_refused() -> None:
    image = Box(0, 255, (2, 2), np.uint8)
    # outside of its bounds, as tasks may be
    assert fitted(SPACES["box"], [3, 4]).dtype == np.float32
    assert fitted(image, [[1, 2], [3, 4]]).dtype == np.uint8
    assert fitted(SPACES["tuple"], [np.int64(2), [0.5, 0]])[0] == 2
    assert fitted(Dict({"a": Discrete(2)}), {"a": 1}) == {"a": 1}
    for space, value in (
        (image, [[1.5, 2], [3, 4]]),
        (image, [[256, 2], [3, 4]]),
        (image, [[1, 2], [3]]),
        (SPACES["box"], "text"),
        (SPACES["box"], [1.0]),
        (SPACES["discrete"], 3),
        (SPACES["discrete"], 0.5),
        (SPACES["multi-discrete"], [[9, 9], [9, 9]]),
        (SPACES["tuple"], (1,)),
        (SPACES["dict"], {"a": 1}),
        (SPACES["text"], "z"),
    ):
        with pytest.raises(SpaceError, match="An observation must be in") as caught:
            fitted(space, value)
        assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("loaded") / "cartpole"
    learners = SMALL.format(0.01), SMALL.format(0.001)
    wrappers = "TimeLimit(max_episode_steps=60)", "ReshapeObservation(shape=[2, 2])"
    train(
        "CartPole-v1",
        learners=learners,
        steps=200,
        seeds=(3, 4),
        tensorboard=False,
        out=out,
        wrappers=wrappers,
    )
    return out


@pytest.fixture
def folder(trained_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a training; no environment can be made."""
    out = Path(shutil.copytree(trained_once, tmp_path / "it"))

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("an environment was made")

    monkeypatch.setattr(gym, "make", refuse)
    return out


def test_a_loaded_policy_acts_as_the_best_one_on_the_observations_of_the_task(folder: Path) -> None:
    policy = esbas.load_policy(folder)
    kept = {seed: read_policy(folder / "runs" / f"seed-{seed}" / "best.npz") for seed in (3, 4)}
    best = max(kept.values(), key=lambda each: each.expected)
    assert (policy.name, policy.seed, policy.steps) == (best.learner, best.seed, best.steps)
    assert (
        repr(policy)
        == f"<policy of {best.learner!r}, seed {best.seed}, after {best.steps:,} steps>"
    )
    assert policy.observation_space.shape == (4,)  # before the wrappers
    assert policy.action_space == Discrete(2)
    plan = open_folder(folder).plan
    learner = best.build(plan, observation_space=Box(-1, 1, (2, 2)), action_space=Discrete(2))
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    expected = [int(learner.values(each.reshape(2, 2)).argmax()) for each in observations]
    assert (
        [policy.act(each) for each in observations]
        == expected
        == [policy.act(each.tolist()) for each in observations]
    )
    assert policy.start() is None


def test_a_learner_is_loaded_from_the_checkpoint(folder: Path) -> None:
    name = "DQN learning_rate 0.001"
    policy = esbas.load_policy(str(folder), learner=name, seed=4)
    assert (policy.name, policy.seed, policy.steps >= 200) == (name, 4, True)
    assert policy.act([0, 0, 0, 0], np.random.default_rng(0)) in (0, 1)
    with pytest.raises(UnknownNameError, match="did you mean"):
        esbas.load_policy(folder, learner="DQN learning_rate 0.0011")
    with pytest.raises(InvalidValueError, match="`seed` must be one of the seeds"):
        esbas.load_policy(folder, seed=5)
    with pytest.raises(SpaceError, match="An observation must be in"):
        policy.act([0, 0, 0])


def test_before_the_first_evaluation_a_learner_must_be_named(folder: Path) -> None:
    for path in folder.glob("runs/*/best.npz"):
        path.unlink()
    with pytest.raises(
        SaveFileError,
        match=r"none was evaluated yet: `esbas resume .*`, "
        r"or name a learner \('DQN .*' was in control most",
    ):
        esbas.load_policy(folder)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "must be JSON"),
        ("[]", "must be a dictionary"),
        ('{"layers": []}', "The wrappers in .* are .* instead of the last ones of"),
        ('{"layers": [{"wrapper": "", "observation": {}, "action": {}}]}', "must have"),
        (None, "A policy needs the spaces of its environment"),
    ],
)
def test_damaged_spaces_are_refused(folder: Path, content: str | None, sentence: str) -> None:
    path = folder / "spaces.json"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(EsbasError, match=sentence) as caught:
        esbas.load_policy(folder)
    assert "\n" not in str(caught.value)


def test_a_state_that_does_not_fit_is_refused(folder: Path) -> None:
    for path in folder.glob("runs/*/best.npz"):
        write_policy(path, dataclasses.replace(read_policy(path), state={"weights": np.zeros(3)}))
    with pytest.raises(SaveFileError, match=r"cannot load its saved policy") as caught:
        esbas.load_policy(folder)
    assert "\n" not in str(caught.value)


class Recorder:
    """A policy that remembers what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        self.seen.append(observation)
        return np.array([0.5], np.float32)


def test_stateless_wrappers_are_applied_up_to_the_last_one_with_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = "RescaleAction(min_action=-1, max_action=1)", "FlattenObservation"
    for wrappers, shape, action in (
        (outer, (3,), 1.0),  # half of the task's maximum, 2
        ((*outer, "FrameStackObservation(stack_size=2)", "FlattenObservation"), (2, 3), 0.5),
        (("TimeAwareObservation", *outer), (4,), 1.0),
    ):
        out = tmp_path / str(len(wrappers)) / wrappers[0][:4]
        train(
            "Pendulum-v1",
            learners=("random",),
            episodes=1,
            tensorboard=False,
            out=out,
            wrappers=wrappers,
        )
        policy = esbas.load_policy(out)
        recorder = Recorder()
        assert policy.observation_space.shape == shape
        monkeypatch.setattr(policy, "_acting", recorder)
        observation = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert policy.act(observation) == pytest.approx([action])
        assert recorder.seen[0].tolist() == observation.ravel().tolist()
        assert policy.action_space.high.item() == (1.0 if shape == (2, 3) else 2.0)


def test_folders_that_name_modules_need_trust(tmp_path: Path) -> None:
    out = tmp_path / "it"
    train(
        "tests/Lane-v0",
        learners=("training.odd_learners:Compact",),
        steps=60,
        tensorboard=False,
        out=out,
    )
    with pytest.raises(TrustError, match="trust=True"):
        esbas.load_policy(out)
    assert esbas.load_policy(out, trust=True).act(lane.CELLS - 2) == 1


def test_the_name_is_found_without_a_heavier_import() -> None:
    code = (
        "import sys, esbas; assert 'esbas.training' not in sys.modules; "
        "print(hasattr(esbas, 'load_polizy'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert callable(esbas.load_policy)
