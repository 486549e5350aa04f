"""Members of Stable-Baselines3, compared with `model.learn()`, and in portfolios."""

import copy
import itertools
import random
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

import esbas
from esbas import seeding
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, UnknownNameError
from esbas.learners import Constant
from esbas.learners.dqn.learner import DQN
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.sb3.learner import SB3Learner

STEPS = 120
NORMAL = NormalActionNoise(np.zeros(1), np.full(1, 0.1))
WANDERING = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.3))
SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [16]},
    "batch_size": 16,
    "learning_starts": 30,
    "train_freq": 3,
}
SYNCED: dict[str, Any] = SMALL | {"target_update_interval": 20, "exploration_fraction": 0.4}
CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "DQN": ("CartPole-v1", stable_baselines3.DQN, SYNCED),
    "DQN, 3 steps": ("CartPole-v1", stable_baselines3.DQN, SYNCED | {"n_steps": 3}),
    "DQN, discrete observations": ("FrozenLake-v1", stable_baselines3.DQN, SYNCED),
    "QRDQN": ("CartPole-v1", sb3_contrib.QRDQN, SYNCED),
    "SAC": ("Pendulum-v1", stable_baselines3.SAC, SMALL),
    "TD3": ("Pendulum-v1", stable_baselines3.TD3, SMALL | {"action_noise": NORMAL}),
    "DDPG": (
        "Pendulum-v1",
        stable_baselines3.DDPG,
        SMALL | {"train_freq": (1, "episode"), "action_noise": WANDERING},
    ),
    "TQC": ("Pendulum-v1", sb3_contrib.TQC, SMALL),
}


class InOrder(gym.Wrapper[Any, Any, Any, Any]):
    """Episode n starts from seed n; the last one is truncated after `STEPS` steps in total."""

    def __init__(self, task: str) -> None:
        super().__init__(gym.make(task, max_episode_steps=35))
        self._episodes = self._steps = 0

    def reset(self, **_: Any) -> Any:
        self._episodes += 1
        return self.env.reset(seed=self._episodes)

    def step(self, action: Any) -> Any:
        seen, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        return seen, reward, terminated, truncated or self._steps == STEPS, info


def build(case: str, env: Any, *, seed: int = 3, **more: Any) -> Any:
    _, algorithm, options = CASES[case]
    return algorithm("MlpPolicy", env, seed=seed, **copy.deepcopy(options), **more)


def weights(model: Any) -> dict[str, Any]:
    return {name: tensor.numpy().copy() for name, tensor in model.policy.state_dict().items()}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def play(
    env: Any, learners: list[Any], *, steps: int = STEPS, actor: str | None = None, seed: int = 0
) -> list[Any]:
    names = [learner.name for learner in learners]
    selector = esbas.Fixed(names, arm=actor) if actor else esbas.SSBAS(names)
    records = list(esbas.run(env, learners, selector, steps=steps, seed=seed, keep_data=False))
    assert [record.faults for record in records if record.faults] == []
    return records


@pytest.mark.parametrize("case", CASES)
def test_a_portfolio_of_one_is_bit_identical_to_learning_alone(case: str) -> None:
    task = CASES[case][0]
    alone = build(case, InOrder(task), buffer_size=80)  # the memory overflows
    alone.learn(STEPS)
    env = InOrder(task)
    model = build(case, InOrder(task), buffer_size=1)
    learner = SB3Learner("it", model, replay=SharedReplay(env, buffer_size=80), total_steps=STEPS)
    np.random.seed(99)  # noqa: NPY002  # other draws must not matter
    torch.manual_seed(99)
    play(env, [learner])
    assert alone.num_timesteps == model.num_timesteps == STEPS
    assert alone._n_updates == model._n_updates > 2
    assert_same(weights(alone), weights(model))


def test_a_class_with_options_makes_the_same_model() -> None:
    options = {"policy": "MlpPolicy"} | copy.deepcopy(SYNCED)
    env = InOrder("CartPole-v1")
    learner = SB3Learner(
        "it",
        "dqn",
        replay=SharedReplay(env, buffer_size=200),
        total_steps=STEPS,
        options=options,
        seed=8,
    )
    play(env, [learner])
    alone = build("DQN", InOrder("CartPole-v1"), seed=seeding.integer(8, "sb3", "it"))
    alone.learn(STEPS)
    assert_same(weights(alone), weights(learner.model))


def portfolio(
    task: str, algorithms: list[Any], options: dict[str, Any], **more: Any
) -> tuple[Any, list[SB3Learner]]:
    env = gym.make(task, max_episode_steps=50)
    replay = SharedReplay(env, buffer_size=1000)
    members = [
        SB3Learner(f"{k}", each, replay=replay, total_steps=300, options=options, **more)
        for k, each in enumerate(algorithms)
    ]
    return env, members


def test_passive_members_keep_their_schedules_and_targets() -> None:
    env, (active, passive) = portfolio("CartPole-v1", ["dqn", "qrdqn"], SYNCED)
    before = {name: array for name, array in weights(passive.model).items() if "target" in name}
    records = play(env, [active, passive], steps=150, actor="0")
    steps = sum(record.length for record in records)
    assert active.model.num_timesteps == passive.model.num_timesteps == steps
    assert passive.model._n_updates == sum(1 for n in range(3, steps + 1, 3) if n > 30)
    model: Any = passive.model
    assert model.exploration_rate == 0.01  # where its schedule ends
    after = weights(passive.model)
    assert all((after[name] != array).any() for name, array in before.items())
    assert len(active.replay) == steps


@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_what_a_member_learns_does_not_depend_on_other_members(task: str) -> None:
    discrete = task == "CartPole-v1"
    learned = []
    for company in ([], ["qrdqn", "dqn"] if discrete else ["td3", "tqc"]):
        env, members = portfolio(
            task, ["dqn" if discrete else "sac", *company], SYNCED if discrete else SMALL
        )
        actor = Constant(
            "actor", lambda seen: int(seen[2] > 0) if discrete else np.array([seen[1]], np.float32)
        )
        play(env, [actor, *members], steps=70, actor="actor")
        learned.append(weights(members[0].model))
    assert_same(*learned)


def test_members_share_one_memory_with_true_ends_and_scaled_actions() -> None:
    env = gym.make("Pendulum-v1", max_episode_steps=20)
    replay = SharedReplay(env, buffer_size=1000)
    members: list[Any] = [
        SB3Learner(name, name, replay=replay, total_steps=60, options=SMALL)
        for name in ("sac", "td3", "ddpg")
    ]
    actor = Constant("actor", lambda _: np.array([1.0], np.float32))
    seen: list[esbas.Transition] = []
    actor_and_witness = [actor, *members]
    members[0].step = lambda transition, step=members[0].step: (
        seen.append(transition),
        step(transition),
    )[1]
    play(env, actor_and_witness, steps=60, actor="actor")
    assert replay.added == len(seen) == 60
    with members[1]._generators:
        sample = members[1].model.replay_buffer.sample(64)
    assert (sample.actions == 0.5).all()  # 1 in [-2, 2]
    assert (sample.dones == 0).all()  # truncated, not terminated
    ends = {tuple(step.next_observation) for step in seen if step.truncated}
    assert ends & {tuple(row) for row in sample.next_observations.numpy()}


def test_the_global_generators_are_unchanged() -> None:
    np.random.seed(5)  # noqa: NPY002  # the global generator is intended
    np.random.normal()  # noqa: NPY002  # the generator keeps a second normal number
    torch.manual_seed(5)
    random.seed(5)

    def states() -> list[Any]:
        legacy = np.random.get_state(legacy=False)  # noqa: NPY002
        return [
            legacy["state"]["key"].tolist(),
            legacy["state"]["pos"],
            legacy["has_gauss"],
            legacy["gauss"],
            torch.get_rng_state().tolist(),
            random.getstate(),
        ]

    before = states()
    env, members = portfolio("Pendulum-v1", ["sac", "td3"], SMALL | {"action_noise": NORMAL})
    play(env, members, steps=40)
    assert states() == before


def test_options_may_be_shared_between_members() -> None:
    options: dict[str, Any] = {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 10}
    portfolio("CartPole-v1", ["qrdqn", "dqn"], options)
    assert options == {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 10}


def test_members_of_different_libraries_share_a_memory() -> None:
    env, members = portfolio("CartPole-v1", ["dqn"], SYNCED)
    own = DQN("own", replay=members[0].replay, hidden=(8,), batch_size=8, learning_starts=30)
    records = play(env, [own, *members], steps=100)
    assert own.replay.added == sum(record.length for record in records)


def test_learns_in_epochs_too() -> None:
    env, members = portfolio("CartPole-v1", ["dqn", "qrdqn"], SYNCED)
    names = [member.name for member in members]
    records = list(esbas.run(env, members, esbas.ESBAS(names), episodes=16))
    learnt = sum(record.length for record in records[:15])
    assert (
        members[0].replay.added
        == members[0].model.num_timesteps
        == members[1].model.num_timesteps
        == learnt
    )
    assert members[1].model._n_updates > 10
    assert not any(record.faults for record in records)


@pytest.mark.parametrize(
    ("task", "algorithms", "options"),
    [
        ("CartPole-v1", ["dqn", "qrdqn"], SYNCED),
        ("Pendulum-v1", ["sac", "ddpg", "tqc"], SMALL | {"action_noise": WANDERING}),
    ],
)
def test_a_resumed_run_is_bit_identical(
    tmp_path: Path, task: str, algorithms: list[str], options: dict[str, Any]
) -> None:
    def parts() -> tuple[Any, list[SB3Learner], esbas.Selector]:
        env = gym.make(task, max_episode_steps=20)
        replay = SharedReplay(env, buffer_size=60)
        members = [
            SB3Learner(name, name, replay=replay, total_steps=120, options=options)
            for name in algorithms
        ]
        return env, members, esbas.SSBAS(algorithms)

    whole_parts, first_parts, later_parts = parts(), parts(), parts()
    whole = [record.value for record in esbas.run(*whole_parts, episodes=6, keep_data=False)]
    run = esbas.run(*first_parts, episodes=6, keep_data=False)
    first = [record.value for record in itertools.islice(run, 4)]
    run.save(tmp_path / "run.npz")
    later = [record.value for record in esbas.resume(tmp_path / "run.npz", *later_parts)]
    assert first + later == whole
    for one, other in zip(whole_parts[1], later_parts[1], strict=True):
        assert_same(weights(one.model), weights(other.model))


def test_divergence_is_a_fault() -> None:
    env, members = portfolio("CartPole-v1", ["dqn"], SYNCED)
    with torch.no_grad():
        next(members[0].model.policy.parameters())[0, 0] = float("nan")
    records = list(esbas.run(env, members, esbas.SSBAS(["0"]), episodes=10))
    faults = [fault for record in records for fault in record.faults]
    assert faults[0].where == "step"
    assert faults[0].message.startswith(
        f"{DivergenceError.__name__}: The losses of learner '0' became infinite or NaN"
    )


def test_images_with_channels_last() -> None:
    space = gym.spaces.Box(0, 255, (36, 40, 3), np.uint8)

    class Pictures(gym.Env[Any, Any]):
        observation_space, action_space = space, gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self._picture(), {}

        def step(self, action: Any) -> Any:
            return self._picture(), float(action), bool(self.np_random.random() < 0.2), False, {}

        def _picture(self) -> Any:
            return self.np_random.integers(256, size=space.shape).astype(np.uint8)

    env = Pictures()
    options = {"learning_starts": 5, "batch_size": 4, "policy_kwargs": {"net_arch": []}}
    member = SB3Learner(
        "it", "dqn", replay=SharedReplay(env, buffer_size=50), total_steps=20, options=options
    )
    play(env, [member], steps=12)
    assert member.model._n_updates > 0
    buffer: Any = member.model.replay_buffer
    with member._generators:
        assert buffer.sample(4).observations.shape == (4, 3, 36, 40)


def test_a_member_for_another_task_is_named_before_anything_starts() -> None:
    cart = gym.make("CartPole-v1")
    pendulum = gym.make("Pendulum-v1")
    with pytest.raises(
        SpaceError, match="Learner 'mine' must fit the environment, but DQN reports"
    ):
        SB3Learner("mine", "dqn", replay=SharedReplay(pendulum, buffer_size=10), total_steps=10)
    model = stable_baselines3.SAC("MlpPolicy", pendulum, buffer_size=1)
    with pytest.raises(SpaceError, match="observation space of learner 'mine' must be that of the"):
        SB3Learner("mine", model, replay=SharedReplay(cart, buffer_size=10), total_steps=10)
    member = SB3Learner("mine", "dqn", replay=SharedReplay(cart, buffer_size=10), total_steps=10)
    with pytest.raises(SpaceError, match="'mine' must be the environment's"):
        esbas.run(pendulum, [member], esbas.SSBAS(["mine"]), episodes=1)


@pytest.mark.parametrize(
    ("model", "options", "error", "sentence"),
    [
        ("dqm", None, UnknownNameError, "did you mean 'dqn'"),
        (stable_baselines3.PPO, None, InvalidValueError, "off-policy"),
        (
            "sac",
            {"buffer_size": 10},
            InvalidValueError,
            "`options` must not contain env, buffer_size",
        ),
        (
            "sac",
            {"use_sde": True},
            InvalidValueError,
            "`options` must not contain .*, but got use_sde",
        ),
    ],
)
def test_bad_input_raises_a_clear_error(
    model: Any, options: Any, error: type[Exception], sentence: str
) -> None:
    replay = SharedReplay(gym.make("Pendulum-v1"), buffer_size=10)
    with pytest.raises(error, match=sentence):
        SB3Learner("it", model, replay=replay, total_steps=10, options=options)


def test_models_that_cannot_be_members_are_refused() -> None:
    replay = SharedReplay(gym.make("Pendulum-v1"), buffer_size=10)
    many = make_vec_env("Pendulum-v1", n_envs=2)
    for model, why in (
        (stable_baselines3.SAC("MlpPolicy", many, buffer_size=2), "it has 2 environments"),
        (
            stable_baselines3.SAC("MlpPolicy", "Pendulum-v1", buffer_size=1, use_sde=True),
            "explores with gSDE",
        ),
    ):
        with pytest.raises(InvalidValueError, match=why):
            SB3Learner("it", model, replay=replay, total_steps=10)
