"""Observations that are normalized by constants from a warm-up of random steps."""

import json
import math
import zipfile

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import esbas
from esbas import cli
from esbas.envs import NormalizedObservations
from esbas.errors import EsbasError, InvalidValueError, SaveFileError, SpaceError
from esbas.specs.portfolios.recipe import read_recipe
from esbas.training import make_env, open_folder
from esbas.training.folder import command_line
from esbas.training.normalization import NORMALIZATION, WARM_UP_STEPS, measure, read_normalization
from training.programs import FOREIGN, SMALL, assert_same, numbers
from training.programs import train_without_report as train

ENV = "training.test_normalization:Sizes"
QUICK = {"learners": [SMALL.format(0.01)], "tensorboard": False, "progress": False}


class Sizes(gymnasium.Env):
    """Observations (1000 + 10 s, s / 1e6, 7) after s = 0, 1, 2, 3 steps; then the episode ends."""

    def __init__(self, space="floats", broken=""):
        self.observation_space = Box(-np.inf, np.inf, (3,), np.float64)
        if space == "dict":
            self.observation_space = Dict(far=Box(-1, 1e4, (3,), np.float64), near=Discrete(2))
        self.action_space = Discrete(2)
        self.broken = broken
        self.seeds = []

    def observation(self):
        found = np.array([1000 + 10 * self.time, self.time / 1e6, 7])
        if self.broken == "infinite" and self.time == 2:
            found[1] = np.inf
        if self.broken == "shape" and self.time == 2:
            found = found[:2]
        return {"far": found, "near": 1} if isinstance(self.observation_space, Dict) else found

    def reset(self, *, seed=None, options=None):
        self.time = 0
        self.seeds.append(seed)
        return self.observation(), {}

    def step(self, action):
        if self.broken == "step":
            raise RuntimeError("the valve is stuck")
        self.time += 1
        return self.observation(), float(action), self.time == 3, False, {}


def test_the_constants_are_those_computed_by_hand():
    """333 episodes with s = 0, 1, 2, 3, and one more with s = 0, 1: 1,334 observations."""
    env = Sizes()
    found = measure(env)
    assert found.steps == WARM_UP_STEPS == 1000
    count = 333 * 4 + 2
    first = (333 * (0 + 1 + 2 + 3) + 1) / count
    second = (333 * (0 + 1 + 4 + 9) + 1) / count
    deviation = math.sqrt(second - first**2)
    assert found.mean == pytest.approx([1000 + 10 * first, first / 1e6, 7], rel=1e-12)
    assert found.scale == pytest.approx([10 * deviation, deviation / 1e6, 1], rel=1e-9)
    assert len(set(env.seeds)) == 334
    assert measure(Sizes()) == found


def test_observations_are_shifted_scaled_and_cut_off():
    env = NormalizedObservations(Sizes(), mean=[1000, 0, 7], scale=[10, 1e-6, 1])
    assert env.observation_space == Box(-100, 100, (3,), np.float64)
    assert env.reset()[0].tolist() == [0, 0, 0]
    assert env.step(0)[0].tolist() == [1, 1, 0]
    assert env.step(0)[0].tolist() == pytest.approx([2, 2, 0])
    assert env.observation(np.array([9999.0, -1.0, 8.0])).tolist() == [100, -100, 1]
    assert env.observation(np.array([np.inf, np.nan, 8.0])).tolist()[0] == np.inf
    assert np.isnan(env.observation(np.array([np.inf, np.nan, 8.0]))[1])


def test_the_type_of_floats_stays():
    wrapped = NormalizedObservations(make_env("CartPole-v1"), mean=[0] * 4, scale=[2] * 4)
    observation, _ = wrapped.reset(seed=0)
    assert observation.dtype == wrapped.observation_space.dtype == np.float32
    assert wrapped.observation_space.contains(observation)


def test_a_component_with_rounding_errors_only_is_not_scaled():
    class Noisy(Sizes):
        def observation(self):
            return np.array([1e9 + self.time / 1e3, 1e-12 * self.time, -5e-324 * self.time])

    found = measure(Noisy())
    assert found.scale[0] == 1
    assert 1e-13 < found.scale[1] < 1e-11
    assert found.scale[2] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": [0], "scale": [1, 1, 1]}, "`mean` .* must be a list of 3 finite numbers"),
        ({"mean": [0, 0, 0], "scale": [1, math.inf, 1]}, "`scale` .* must be a list of 3 finite"),
        ({"mean": [0, 0, 0], "scale": [1, 0, 1]}, "`scale` .* must be positive"),
    ],
)
def test_wrong_constants_are_refused_in_one_sentence(options, message):
    with pytest.raises(InvalidValueError, match=message):
        NormalizedObservations(Sizes(), **options)


@pytest.mark.parametrize(
    ("env", "learners", "message"),
    [
        ("FrozenLake-v1", ["tabular_q"], r"is Discrete\(16\): remove the option"),
        ("FrozenLake-v1", [SMALL.format(0.1)], r"is Discrete\(16\): remove the option"),
        (f"{ENV}(broken='infinite')", [SMALL.format(0.1)], "component 1 was infinite, NaN or too"),
        (f"{ENV}(broken='shape')", [SMALL.format(0.1)], r"shape \(2,\), but its observation space"),
        (f"{ENV}(broken='step')", [SMALL.format(0.1)], "RuntimeError: the valve is stuck: correct"),
    ],
)
def test_other_observations_are_refused_in_one_sentence(tmp_path, env, learners, message):
    with pytest.raises(EsbasError, match=message):
        train(env, learners=learners, normalize_observations=True, out=tmp_path / "it")
    assert not (tmp_path / "it").exists()


def test_images_are_refused_in_a_short_sentence():
    class Image(Sizes):
        observation_space = Box(0, 255, (40, 40, 3), np.uint8)

        def __init__(self):
            pass

    with pytest.raises(SpaceError, match=r"is a Box of uint8 with shape \(40, 40, 3\): remove"):
        measure(Image())
    Image.observation_space = Box(0, 1, (101, 100), np.float32)
    with pytest.raises(SpaceError, match=r"at most 10,000 components .* has 10,100"):
        measure(Image())


def test_frames_that_are_stored_once_are_refused(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[replay]\nstack = 3\n[[learner]]\nalgorithm = "dqn"\n')
    with pytest.raises(InvalidValueError, match="cannot be used with stacked frames"):
        train(ENV, portfolio=path, normalize_observations=True, out=tmp_path / "it")


def test_all_parts_of_a_training_use_the_stored_constants(tmp_path, capsys):
    out = tmp_path / "it"
    training = train(
        ENV, normalize_observations=True, steps=300, seeds=[0, 1], jobs=2, out=out, **QUICK
    )
    notes = [line for line in capsys.readouterr().err.splitlines() if "normalized" in line]
    assert len(notes) == 1
    assert "1,000 steps with random actions, which are not part of the budget" in notes[0]
    constants = json.loads((out / NORMALIZATION).read_text())
    assert constants["mean"][2] == 7
    assert "--normalize-observations --" in command_line(training.config) + " --"
    opened = open_folder(out, trust=True)
    env, wrappers = opened.plan.wrapped_env()
    assert isinstance(env, NormalizedObservations)
    assert wrappers[-1].startswith("NormalizedObservations(mean=[")
    assert env.mean.tolist() == constants["mean"]
    assert training.evaluate(episodes=2).mean >= 0

    policy = training.policy()
    raw = np.array([1010, 1e-6, 7])
    assert policy.observation_space == Sizes().observation_space
    assert policy.act(raw) in (0, 1)
    with np.load(training.export(tmp_path / "policy.npz")) as file:
        exported = dict(file)
    assert exported["observation_mean"].tolist() == constants["mean"]
    assert exported["observation_scale"].tolist() == constants["scale"]
    assert exported["observation_limit"] == 100
    for step in range(4):
        raw = np.array([1000 + 10 * step, step / 1e6, 7])
        x = np.clip((raw - constants["mean"]) / constants["scale"], -100, 100).astype(np.float32)
        hidden = np.maximum(x @ exported["weight0"] + exported["bias0"], 0)
        values = hidden @ exported["weight1"] + exported["bias1"]
        assert policy.act(raw) == values.argmax()
        assert esbas.load_policy(out, trust=True).act(raw) == values.argmax()


def test_the_stored_constants_stay_when_a_training_continues(tmp_path, monkeypatch):
    """They come from the folder: another warm-up could differ, as that of a real machine does."""
    options = {**QUICK, "normalize_observations": True, "checkpoint_every": 0}
    train(ENV, steps=600, seeds=[0, 1], out=tmp_path / "whole", **options)
    train(ENV, steps=300, out=tmp_path / "parts", **options)

    def fail(env):
        pytest.fail("the warm-up was played again")

    monkeypatch.setattr("esbas.training.runs.plan.measure", fail)
    longer = ["--steps", "600", "--seeds", "1", "--trust", "--no-tensorboard"]
    assert cli.main(["resume", str(tmp_path / "parts"), *longer]) == 0
    for seed in (0, 1):
        assert_same(numbers(tmp_path / "whole", seed), numbers(tmp_path / "parts", seed))
    (tmp_path / "parts" / NORMALIZATION).unlink()
    with pytest.raises(SaveFileError, match=r"it has no normalization\.json: restore it"):
        open_folder(tmp_path / "parts", trust=True)


@pytest.mark.parametrize(
    "change", [{"scale": [1, -1, 1]}, {"mean": [0]}, {"steps": "x"}, {"mean": ["import"]}]
)
def test_damaged_constants_are_refused(tmp_path, change):
    out = tmp_path / "it"
    train(ENV, normalize_observations=True, steps=30, out=out, **QUICK)
    path = out / NORMALIZATION
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(EsbasError, match=r"normalization\.json"):
        open_folder(out, trust=True)


def test_a_portfolio_can_normalize_observations(tmp_path):
    path = tmp_path / "p.toml"
    learner = '[[learner]]\nalgorithm = "dqn"\nhidden = [8]\n'
    path.write_text(f"normalize_observations = true\n{learner}")
    out = tmp_path / "it"
    train(ENV, portfolio=path, steps=30, out=out, tensorboard=False, progress=False)
    plan = open_folder(out, trust=True).plan
    assert not plan.config.normalize_observations
    assert isinstance(plan.env(), NormalizedObservations)
    with pytest.raises(InvalidValueError, match="`normalize_observations` must be True or False"):
        read_recipe(f"normalize_observations = 1\n{learner}", source="text")


def test_dict_observations_are_flattened_first(tmp_path):
    out = tmp_path / "it"
    train(f"{ENV}(space='dict')", normalize_observations=True, steps=30, out=out, **QUICK)
    _, wrappers = open_folder(out, trust=True).plan.wrapped_env()
    assert wrappers[0] == "FlattenObservation"
    assert wrappers[1].startswith("NormalizedObservations")
    policy = esbas.load_policy(out, trust=True)
    assert policy.act({"far": np.array([1000.0, 0, 7]), "near": 1}) in (0, 1)


def test_learners_start_from_an_earlier_training_with_its_constants(tmp_path):
    first, plain, second = (tmp_path / name for name in ("first", "plain", "second"))
    train(ENV, normalize_observations=True, steps=60, out=first, **QUICK)
    train(ENV, steps=60, out=plain, **QUICK)
    path = first / NORMALIZATION  # as if another warm-up had been played
    constants = json.loads(path.read_text())
    path.write_text(json.dumps(constants | {"mean": [999.0, 0.0, 7.0]}))
    options = {"steps": 60, **QUICK}
    train(ENV, normalize_observations=True, start_from=first, out=second, **options)
    assert read_normalization(second).mean == (999.0, 0.0, 7.0)
    with pytest.raises(InvalidValueError, match="add --normalize-observations, which takes over"):
        train(ENV, start_from=first, out=tmp_path / "no", **options)
    with pytest.raises(InvalidValueError, match="was trained without normalized observations"):
        train(ENV, normalize_observations=True, start_from=plain, out=tmp_path / "no", **options)
    with pytest.raises(SpaceError, match="are for 3 components, but the observations have 4"):
        train(
            "CartPole-v1",
            normalize_observations=True,
            start_from=first,
            out=tmp_path / "no",
            **options,
        )


def test_a_model_of_stable_baselines3_has_its_constants_in_its_archive(tmp_path):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import DQN

    out = tmp_path / "it"
    training = train(
        ENV,
        learners=FOREIGN[:1],
        normalize_observations=True,
        steps=60,
        out=out,
        tensorboard=False,
        progress=False,
    )
    path = training.export(tmp_path / "policy.zip")
    with zipfile.ZipFile(path) as archive:
        constants = json.loads(archive.read(NORMALIZATION))
    model = DQN.load(path)
    policy = training.policy()
    for step in range(4):
        raw = np.array([1000 + 10 * step, step / 1e6, 7])
        seen = (raw - constants["mean"]) / constants["scale"]
        seen = np.clip(seen, -constants["limit"], constants["limit"])
        assert model.predict(seen, deterministic=True)[0] == policy.act(raw)
