"""`LoadedPolicy.predict`: as in Stable-Baselines3, for one observation and for batches."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Text, Tuple
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import esbas
from esbas.errors import InvalidValueError, SpaceError
from esbas.training.policies.batches import batch_size, nth_of
from training.programs import SMALL
from training.programs import train_without_report as train

SAC = "sb3.sac(batch_size=8, learning_starts=20, policy_kwargs={'net_arch': [8]})"
PAIR = Dict({"a": Box(-1, 1, (3,)), "b": Tuple([Discrete(4), MultiBinary(2)])})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("predict")
    plans: dict[str, dict[str, Any]] = {
        "CartPole-v1": {
            "learners": (SMALL.format(0.01),),
            "wrappers": ("ReshapeObservation(shape=[2, 2])",),
        },
        "Pendulum-v1": {
            "learners": (SAC,),
            "wrappers": ("RescaleAction(min_action=-1, max_action=1)",),
        },
        "FrozenLake-v1": {"learners": ("tabular_q",)},
    }
    made = {}
    for name, options in plans.items():
        made[name] = root / name
        train(name, steps=250, tensorboard=False, out=made[name], **options)
    return made


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1"])
@pytest.mark.parametrize("count", [None, 1, 3])
def test_stable_baselines_evaluates_the_policy(
    folders: dict[str, Path], name: str, count: int | None
) -> None:
    policy = esbas.load_policy(folders[name])
    env: Any = gym.make(name) if count is None else make_vec_env(name, count, seed=0)
    mean, spread = evaluate_policy(policy, env, n_eval_episodes=3, warn=False)
    assert np.isfinite([mean, spread]).all()
    env.close()


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1"])
def test_predictions_are_the_actions_of_the_policy(folders: dict[str, Path], name: str) -> None:
    policy = esbas.load_policy(folders[name])
    same = esbas.load_policy(folders[name])
    space = gym.make(name).observation_space
    space.seed(0)
    observations = np.array([space.sample() for _ in range(40)])
    if name != "FrozenLake-v1":
        observations = np.clip(observations, -3, 3)
    actions, state = policy.predict(observations)
    assert state is None
    assert actions.shape == (40, *policy.action_space.shape)
    assert actions.dtype == policy.action_space.dtype
    expected = [same.act(each) for each in observations]
    np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=1e-6)
    one, _ = policy.predict(observations[7])
    assert isinstance(one, np.int64 | np.ndarray)
    assert one.shape == policy.action_space.shape
    assert policy.action_space.contains(one)
    assert policy.predict(observations[:0])[0].shape == (0, *policy.action_space.shape)


def test_a_script_with_one_environment_works(folders: dict[str, Path]) -> None:
    policy = esbas.load_policy(folders["FrozenLake-v1"])
    env = gym.make("FrozenLake-v1")
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated


def test_a_batch_takes_one_pass(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1"):
        policy = esbas.load_policy(folders[name])

        def refuse(*_: Any) -> None:
            raise AssertionError("one observation alone")

        monkeypatch.setattr(type(policy._policy), "act", refuse)
        shape = policy.observation_space.shape
        policy.predict(np.zeros((5, *shape), policy.observation_space.dtype))
        monkeypatch.undo()


class Screens(gym.Env[Any, Any]):
    """Random images; the episode ends after five steps."""

    observation_space = Box(0, 255, (12, 10, 3), np.uint8)
    action_space = Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.screen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.screen(), 1.0, self.steps == 5, False, {}

    def screen(self) -> Any:
        return self.np_random.integers(0, 256, (12, 10, 3), np.uint8)


def test_an_image_policy_predicts(tmp_path: Path) -> None:
    gym.register("tests/Screens-v0", Screens)
    try:
        learner = "dqn(hidden=[8], convolutions=[[4, 3, 2]], batch_size=4, learning_starts=10)"
        train(
            "tests/Screens-v0",
            learners=(learner,),
            steps=30,
            tensorboard=False,
            out=tmp_path / "it",
        )
    finally:
        del gym.registry["tests/Screens-v0"]
    policy = esbas.load_policy(tmp_path / "it")
    images = np.random.default_rng(0).integers(0, 256, (20, 12, 10, 3), np.uint8)
    assert policy.predict(images)[0].tolist() == [policy.act(image) for image in images]
    evaluate_policy(policy, make_vec_env(Screens, 2), n_eval_episodes=2, warn=False)


def test_what_cannot_be_predicted_gets_one_sentence(folders: dict[str, Path]) -> None:
    policy = esbas.load_policy(folders["CartPole-v1"])
    with pytest.raises(
        InvalidValueError, match=r"without its exploration, but got deterministic=False: use determ"
    ):
        policy.predict(np.zeros(4), deterministic=False)
    for wrong in (
        np.zeros(3),
        np.zeros((2, 2, 4)),
        np.zeros((4, 3)),
        0.0,
        [[1, 2], [3]],
        (np.zeros(4), {}),
    ):
        with pytest.raises(
            SpaceError, match=r"must have the shape \(4,\), or \(N, 4\) for a batch, but got"
        ) as caught:
            policy.predict(wrong)
        assert "\n" not in str(caught.value)
    with pytest.raises(SpaceError, match=r"but got the shape \(3,\)"):
        policy.predict(np.zeros(3))


@pytest.mark.parametrize(
    ("space", "value", "size"),
    [
        (Box(-1, 1, (3,)), np.zeros(3), None),  # exactly the shape of the space: a single one
        (Box(-1, 1, (3,)), np.zeros((3, 3)), 3),
        (Box(-1, 1, (3, 3)), np.zeros((3, 3)), None),
        (Box(-1, 1, ()), np.zeros(5), 5),
        (Discrete(4), 2, None),
        (Discrete(4), np.int64(2), None),
        (Discrete(4), np.array([1, 2]), 2),
        (PAIR, {"a": np.zeros(3), "b": (1, np.zeros(2))}, None),
        (PAIR, {"a": np.zeros((2, 3)), "b": (np.array([1, 2]), np.zeros((2, 2)))}, 2),
        (PAIR, {"a": np.zeros(3)}, None),  # a wrong structure, which `fitted` refuses
        (Text(4), "text", None),
    ],
)
def test_single_observations_and_batches_differ_by_shape(
    space: Any, value: Any, size: int | None
) -> None:
    assert batch_size(space, value) == size


def test_parts_of_different_sizes_are_refused() -> None:
    for pair in ((np.array([1, 2, 3]), np.zeros((2, 2))), (1, np.zeros((2, 2)))):
        with pytest.raises(SpaceError, match="batches of the same size"):
            batch_size(PAIR, {"a": np.zeros((2, 3)), "b": pair})


def test_one_observation_of_a_batch() -> None:
    batch = {"a": np.arange(6).reshape(2, 3), "b": (np.array([1, 2]), np.zeros((2, 2)))}
    one = nth_of(PAIR, batch, 1)
    assert one["a"].tolist() == [3, 4, 5]
    assert (one["b"][0], one["b"][1].tolist()) == (2, [0, 0])


class Counting:
    """A policy whose action says how many observations of the episode it has seen."""

    def __init__(self, *, own: bool) -> None:
        self.own = own  # whether each episode has an object of its own
        self.seen = 0

    def start(self) -> "Counting | None":
        self.seen = 0
        return Counting(own=True) if self.own else None

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        self.seen += 1
        return min(self.seen - 1, 1)


@pytest.fixture
def remembering(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(*, own: bool) -> Any:
        policy = esbas.load_policy(folders["CartPole-v1"])
        monkeypatch.setattr(policy, "_policy", Counting(own=own))
        policy.start()
        return policy

    return make


def test_a_policy_with_a_memory_has_one_per_episode(remembering: Any) -> None:
    policy = remembering(own=True)
    batch = np.zeros((2, 4))
    actions, state = policy.predict(batch, episode_start=[True, True])
    assert actions.tolist() == [0, 0]
    actions, state = policy.predict(batch, state=state, episode_start=[False, True])
    assert actions.tolist() == [1, 0]
    actions, state = policy.predict(batch, state=state)
    assert actions.tolist() == [1, 1]
    with pytest.raises(InvalidValueError, match="3 observations, 2 states and 3 episode starts"):
        policy.predict(np.zeros((3, 4)), state=state)


@pytest.mark.parametrize("own", [True, False])
def test_a_policy_with_a_memory_acts_alone(remembering: Any, own: bool) -> None:
    policy = remembering(own=own)
    assert [int(policy.predict(np.zeros(4))[0]) for _ in range(3)] == [0, 1, 1]
    policy.start()
    assert int(policy.predict(np.zeros(4))[0]) == 0
    action, state = policy.predict(np.zeros(4), episode_start=True)
    assert int(action) == 0
    assert int(policy.predict(np.zeros(4), state=state, episode_start=False)[0]) == 1
    env = make_vec_env("CartPole-v1", 1, seed=0)
    evaluate_policy(policy, env, n_eval_episodes=2, warn=False)


def test_a_policy_with_one_memory_refuses_batches(remembering: Any) -> None:
    with pytest.raises(
        InvalidValueError,
        match="remembers one episode at a time, but got a batch of 2 observations",
    ):
        remembering(own=False).predict(np.zeros((2, 4)))
