"""`esbas export`: the exported policy, played without esbas, takes the same actions."""

import base64
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import cli
from esbas.errors import InvalidValueError
from esbas.learners import LinearFQI, TabularQ
from esbas.training import recipe_of
from esbas.training.policies.exporting import export
from esbas.training.policies.layers import Layer
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import greedy
from training.programs import FOREIGN, SMALL
from training.programs import train_without_report as train

COUNT = 200
PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
ALONE = """
import sys
sys.modules.update(dict.fromkeys(("esbas", "torch", "gymnasium")))  # cannot be imported
import player
for name in sys.argv[1:]:
    policy, seen = player.load(name + ".npz"), player.np.load(name + "-observations.npy")
    values = [player.action_values(policy, observation) for observation in seen]
    player.np.save(name + "-values.npy", values)
    print(*(player.act(policy, observation) for observation in seen))
"""
STORED = StoredPolicy(
    learner="it", algorithm="dqn", seed=0, steps=9, mean=0.0, whole=True, state={}
)


def observations(space: Any) -> Any:
    rng = np.random.default_rng(1)
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(int(space.n), size=COUNT) + int(space.start)
    if space.dtype == np.uint8:
        bright = rng.integers(256, size=(COUNT, 1, 1, 1)) * (
            rng.random((COUNT, *space.shape)) < 0.1
        )
        return bright.astype(np.uint8)
    return rng.normal(size=(COUNT, *space.shape)).astype(np.float32)


def played_alone(folder: Path, *names: str) -> list[list[int]]:
    """The actions of the documented player in a process without esbas."""
    (code,) = re.findall(r"```python\n(# player\.py\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (folder / "player.py").write_text(code)
    command = [sys.executable, "-c", ALONE, *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [list(map(int, line.split())) for line in done.stdout.splitlines()]


def test_networks_and_tables_are_played_with_numpy_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {}
    every_value = {}
    train(
        "CartPole-v1",
        learners=(SMALL.format(0.01),),
        steps=150,
        tensorboard=False,
        out=tmp_path / "it",
    )
    assert cli.main(["export", str(tmp_path / "it"), "--out", str(tmp_path / "trained.npz")]) == 0
    assert "DQN, seed 0, after 1" in " ".join(capsys.readouterr().out.split())
    seen = observations(gym.make("CartPole-v1").observation_space)
    np.save(tmp_path / "trained-observations.npy", seen)
    policy = esbas.load_policy(tmp_path / "it")
    expected["trained"] = [policy.act(each) for each in seen]
    images = gym.spaces.Box(0, 255, (12, 10, 3), np.uint8)
    for name, space, text in (
        ("images", images, "dqn(hidden=[8], convolutions=[[4, 3, 2], [5, 2, 1]])"),
        (
            "frames",
            gym.spaces.Box(0, 255, (3, 12, 10), np.uint8),
            "dqn(hidden=[8], convolutions=[[4, 3, 2]])",
        ),
        ("labels", gym.spaces.Discrete(7, start=2), "dqn(hidden=[8])"),
        ("table", gym.spaces.Discrete(30), "tabular_q"),
    ):
        spaces = {"observation_space": space, "action_space": gym.spaces.Discrete(3)}
        (learner,) = recipe_of([text]).build(Layer("", **spaces), steps=10, seed=3)
        if isinstance(learner, TabularQ):
            learner.table[:] = np.random.default_rng(0).normal(size=learner.table.shape)
        exported = export(learner, STORED, [Layer("", **spaces)])
        assert exported.suffix == ".npz"
        (tmp_path / f"{name}.npz").write_bytes(exported.content)
        seen = observations(space)
        rng = np.random.default_rng(0)
        np.save(tmp_path / f"{name}-observations.npy", seen)
        expected[name] = [int(greedy(learner).act(each, rng)) for each in seen]
        every_value[name] = np.array([greedy(learner).values(each) for each in seen])
    assert played_alone(tmp_path, *expected) == list(expected.values())
    # all actions of an untrained network may be the same: the values differ
    for name, values in every_value.items():
        np.testing.assert_allclose(
            np.load(tmp_path / f"{name}-values.npy"), values, rtol=1e-4, atol=1e-6
        )
        assert values.std(axis=0).min() > 1e-4
    assert len(set(expected["trained"])) == 2


def test_a_model_of_stable_baselines3_is_loaded_by_its_own_class(tmp_path: Path) -> None:
    from stable_baselines3 import DQN

    out = tmp_path / "it"
    train("CartPole-v1", learners=(FOREIGN[0],), steps=120, tensorboard=False, out=out)
    assert cli.main(["export", str(out)]) == 0
    with zipfile.ZipFile(out / "policy.zip") as file:
        data = json.loads(file.read("data"))
    texts = [
        each[":serialized:"]
        for each in data.values()
        if isinstance(each, dict) and ":serialized:" in each
    ]
    pickles = list(map(base64.b64decode, texts))
    assert pickles
    assert not any(b"esbas" in each for each in pickles)
    model = DQN.load(out / "policy.zip")
    policy = esbas.load_policy(out)
    seen = observations(model.observation_space)
    actions = model.predict(seen, deterministic=True)[0].tolist()
    assert actions == [policy.act(each) for each in seen]
    assert len(set(actions)) > 1


def test_the_description_says_where_the_policy_comes_from(tmp_path: Path) -> None:
    out = tmp_path / "it"
    wrappers = ("TimeLimit(max_episode_steps=50)",)
    train(
        "FrozenLake-v1",
        learners=("tabular_q",),
        steps=100,
        tensorboard=False,
        out=out,
        wrappers=wrappers,
    )
    assert cli.main(["export", str(out), "--learner", "tabular Q"]) == 0
    with np.load(out / "policy.npz", allow_pickle=False) as file:
        about = json.loads(str(file["description"]))
        table = file["table"]
    assert (about["learner"], about["algorithm"], about["wrappers"]) == (
        "tabular Q",
        "tabular_q",
        list(wrappers),
    )
    assert table.shape == (16, 4)
    assert about["observation_space"] == {"space": "Discrete", "n": 16, "start": 0}


def test_linear_values_have_their_weights() -> None:
    learner = LinearFQI("it", lambda observation: np.ones(2), actions=3)
    layers = [Layer("", gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(3))]
    with pytest.raises(
        InvalidValueError, match="cannot be exported, because it has not learnt yet"
    ):
        export(learner, STORED, layers)
    learner.weights = np.arange(6.0).reshape(3, 2)
    with np.load(io.BytesIO(export(learner, STORED, layers).content)) as file:
        assert file["weights"].tolist() == learner.weights.tolist()


def test_what_cannot_be_exported_is_said_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "it"
    train("CartPole-v1", learners=("random",), steps=50, tensorboard=False, out=out)
    capsys.readouterr()
    for words, sentence in (
        ([], "'random' is another learner (random): in Python, esbas.load_policy(folder) plays it"),
        (["--learner", "randm"], "did you mean 'random'?"),
        (["--seed", "7"], "`seed` must be one of the seeds"),
    ):
        assert cli.main(["export", str(out), *words]) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
    assert not list(out.glob("policy.*"))
