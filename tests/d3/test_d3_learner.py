"""Members of d3rlpy (`make test-d3rlpy`)."""

import inspect
import itertools
import random

import d3rlpy
import gymnasium as gym
import numpy as np
import pytest
import torch

import esbas
from esbas import seeding
from esbas._internal.spaces import Discrete
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, UnknownNameError
from esbas.learners.d3rlpy import hooks
from esbas.learners.d3rlpy.learner import D3Learner, D3Options
from esbas.learners.d3rlpy.names import CONTINUOUS, DISCRETE
from esbas.testing import Corridor, check_learner

CART, PENDULUM = (
    gym.make("CartPole-v1", max_episode_steps=20),
    gym.make("Pendulum-v1", max_episode_steps=12),
)
SMALL = {"hidden": [8], "batch_size": 8, "updates_per_step": 0.3}
EVERY = [*((name, CART) for name in DISCRETE), *((name, PENDULUM) for name in CONTINUOUS)]
# the last draws candidates
SOME = [
    ("double_dqn", CART),
    ("sac", CART),
    ("td3", PENDULUM),
    ("sac", PENDULUM),
    ("bcq", PENDULUM),
]


def member(algorithm, env, name="it", **settings):
    return D3Learner(
        name,
        algorithm,
        observation_space=env.observation_space,
        action_space=env.action_space,
        **SMALL | settings,
    )


def collect(env, episodes=4, seed=0):
    """Episodes of random actions."""

    class Random:
        def act(self, observation, rng):
            return esbas._internal.spaces.random_action(env.action_space, rng)

    data = esbas.TrajectorySet()
    for number in range(episodes):
        rng, reset_seed = seeding.episode(seed, number)
        data.append(esbas.play(env, Random(), rng=rng, seed=reset_seed))
    return data


def parts_of(learner):
    return hooks.state_of(learner.model)["parts"]


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, item in one.items():
            assert_same(item, other[key])
    elif isinstance(one, list):
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("algorithm", "env"), SOME)
def test_keeps_the_contract_of_learners(algorithm, env):
    check_learner(lambda: member(algorithm, env), env, episodes=2, draws=50)


def test_keeps_the_contract_of_learners_with_discrete_observations():
    env = Corridor(3, max_episode_steps=8)
    check_learner(lambda: member("dqn", env), env, episodes=2, draws=50)


@pytest.mark.parametrize(("algorithm", "env"), EVERY)
def test_every_algorithm_learns_and_continues_identically_after_loading(tmp_path, algorithm, env):
    data = collect(env)
    learner = member(algorithm, env)
    twin = member(algorithm, env, seed=1)
    fresh = parts_of(learner)
    learner.learn(data)
    steps = sum(len(data[i]) for i in range(4))
    assert hooks.state_of(learner.model)["gradient_steps"] == int(0.3 * steps) > 5
    with pytest.raises(AssertionError):
        assert_same(fresh, parts_of(learner))
    esbas._internal.archive.write(tmp_path / "it", "learner", learner.state_dict())
    twin.load_state_dict(esbas._internal.archive.read(tmp_path / "it", "learner"))
    for trajectory in collect(env, seed=5).since(0):
        data.append(trajectory)
    for each in (learner, twin):
        each.learn(data)
    assert_same(learner.state_dict(), twin.state_dict())


@pytest.mark.parametrize(("algorithm", "env"), SOME)
def test_takes_the_same_gradient_steps_as_d3rlpy_on_the_same_transitions(algorithm, env):
    learner = member(algorithm, env, updates_per_step=0.5)
    data = collect(env)
    learner.learn(data)
    torch.manual_seed(seeding.integer(0, "d3", "it", "torch"))
    rng = seeding.generator(0, "d3", "it", "batches")
    config = hooks.configuration(
        algorithm, discrete=env is CART, options=None, hidden=[8], owner="it"
    )
    if env is PENDULUM:
        config.action_scaler = d3rlpy.preprocessing.MinMaxActionScaler(minimum=-2.0, maximum=2.0)
    alone = config.create()
    alone.create_impl(env.observation_space.shape, 2 if env is CART else 1)
    transitions = [
        theirs(step) for trajectory in data.since(0) for step in trajectory.transitions()
    ]
    for _ in range(len(transitions) // 2):
        drawn = [transitions[i] for i in rng.integers(len(transitions), size=8)]
        alone.update(d3rlpy.dataset.TransitionMiniBatch.from_transitions(drawn))
    assert_same(hooks.state_of(alone)["parts"], parts_of(learner))


def theirs(step):
    action = np.asarray(step.action).reshape(-1)
    reward = np.array([step.reward], np.float32)
    rest = {"next_action": action, "interval": 1, "rewards_to_go": reward}
    return d3rlpy.dataset.Transition(
        observation=step.observation,
        action=action,
        reward=reward,
        next_observation=step.next_observation,
        terminal=float(step.terminated),
        **rest,
    )


@pytest.mark.parametrize("selector", [esbas.ESBAS, esbas.SSBAS])
@pytest.mark.parametrize(
    ("env", "algorithms"), [(CART, ["double_dqn", "cql"]), (PENDULUM, ["sac", "bcq"])]
)
def test_a_resumed_run_is_bit_identical(tmp_path, selector, env, algorithms):
    def parts():
        return env, [member(name, env, name=name) for name in algorithms], selector(algorithms)

    whole_parts, first_parts, later_parts = parts(), parts(), parts()
    whole = list(esbas.run(*whole_parts, episodes=14, seed=3))
    run = esbas.run(*first_parts, episodes=14, seed=3)
    first = list(itertools.islice(run, 9))
    run.save(tmp_path / "run")
    torch.manual_seed(99)  # other draws must not matter
    assert first + list(esbas.resume(tmp_path / "run", *later_parts)) == whole
    assert not any(record.faults for record in whole)
    for one, other in zip(whole_parts[1], later_parts[1], strict=True):
        assert_same(one.state_dict(), other.state_dict())


def test_the_global_generators_are_unchanged():
    def states():
        legacy = np.random.get_state(legacy=False)  # noqa: NPY002
        return [
            legacy["state"]["key"].tolist(),
            legacy["state"]["pos"],
            torch.get_rng_state().tolist(),
            random.getstate(),
        ]

    before = states()
    learner = member("bcq", PENDULUM)
    learner.learn(collect(PENDULUM))
    learner.policy().act(PENDULUM.reset(seed=0)[0], np.random.default_rng(0))
    assert states() == before


def test_a_truncated_episode_bootstraps():
    spaces = {"observation_space": Discrete(2), "action_space": Discrete(1)}
    options = {"gamma": 0.5, "learning_rate": 0.02, "target_update_interval": 10}
    for terminated, expected in ((True, 0.0), (False, 0.5)):
        data = esbas.TrajectorySet()
        data.append(
            esbas.Trajectory(
                np.array([0, 1]), np.array([0]), np.array([0.0]), terminated, not terminated
            )
        )
        data.append(esbas.Trajectory(np.array([1, 0]), np.array([0]), np.array([1.0]), True, False))
        learner = D3Learner(
            "it", "dqn", hidden=[8], updates_per_step=100, options=options, **spaces
        )
        learner.learn(data)
        value = learner.model.predict_value(np.eye(2, dtype=np.float32)[:1], np.array([0]))
        assert value == pytest.approx([expected], abs=0.05)


def test_gradient_steps_are_in_proportion_to_the_transitions():
    data = esbas.TrajectorySet()
    learner = member("dqn", CART)
    total = 0
    for trajectory in collect(CART, 6).since(0):
        data.append(trajectory)
        learner.learn(data)
        learner.learn(data)  # nothing is new
        total += len(trajectory)
        assert learner.state_dict()["model"]["gradient_steps"] == int(0.3 * total)


def test_learns_the_corridor_in_epochs():
    env = Corridor(slip=0.0)
    options = {"learning_rate": 0.01, "target_update_interval": 20}
    learner = member(
        "double_dqn",
        env,
        hidden=[16],
        batch_size=32,
        updates_per_step=1.0,
        epsilon=(1.0, 0.0, 300),
        options=options,
    )
    lengths = [
        record.length
        for record in esbas.run(env, [learner], esbas.ESBAS(["it"], epochs=[50, 10]), episodes=60)
    ]
    assert lengths[50:] == [4] * 10


class Aim(gym.Env):
    """One step: the closer to (1, 7.5), the larger the reward."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(
        np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32)
    )

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        off = (action - [1.0, 7.5]) / [2.0, 5.0]
        return np.zeros(1, np.float32), float(-(off**2).sum()), True, False, {}


def test_learns_to_aim_with_actions_of_any_range():
    options = {"actor_learning_rate": 0.01, "critic_learning_rate": 0.01}
    learner = member("td3", Aim(), hidden=[32], batch_size=64, updates_per_step=8, options=options)
    learner.learn(collect(Aim(), 200))
    aimed = learner.greedy_policy().act(np.zeros(1, np.float32), np.random.default_rng(0))
    assert aimed == pytest.approx([1.0, 7.5], abs=1.0)
    assert aimed.dtype == np.float32


def test_exploration_follows_the_transitions():
    seen = CART.reset(seed=0)[0]
    data = collect(CART)
    learner = member("dqn", CART, epsilon=(1.0, 0.2, 10))
    both = np.array([seen, seen]), np.arange(2)
    assert np.exp(learner.policy().log_probs(*both)) == pytest.approx([0.5, 0.5])
    learner.learn(data)
    assert sorted(np.exp(learner.policy().log_probs(*both))) == pytest.approx([0.1, 0.9])
    assert sorted(np.exp(learner.greedy_policy().log_probs(*both))) == [0.0, 1.0]
    # clipped noise has no density
    assert not hasattr(member("td3", PENDULUM).policy(), "log_probs")


def test_noise_is_in_halves_of_the_range():
    seen = PENDULUM.reset(seed=0)[0]
    learner = member("td3", PENDULUM, noise=(0.2, 0.1, 10))
    for expected in (0.2 * 2, 0.1 * 2):
        policy = learner.policy()
        best = learner.greedy_policy().act(seen, np.random.default_rng(0))
        noise = [policy.act(seen, np.random.default_rng(k)) - best for k in range(300)]
        assert np.std(noise) == pytest.approx(expected, rel=0.2)
        learner.learn(collect(PENDULUM))


def test_a_configuration_is_equivalent_to_a_name_with_options():
    network = d3rlpy.models.VectorEncoderFactory(hidden_units=[8])
    config = d3rlpy.algos.DQNConfig(learning_rate=0.01, encoder_factory=network, batch_size=8)
    one = member("dqn", CART, options={"learning_rate": 0.01})
    other = member(config, CART, hidden=None, batch_size=None)
    assert one.batch_size == other.batch_size == 8
    for each in (one, other):
        each.learn(collect(CART))
    assert_same(one.state_dict(), other.state_dict())


def test_divergence_raises():
    learner = member("dqn", CART, options={"learning_rate": 1e30})
    with pytest.raises(DivergenceError, match="The losses of learner 'it' became infinite or NaN"):
        learner.learn(collect(CART))


def test_refuses_data_that_have_shrunk():
    learner = member("dqn", CART)
    learner.learn(collect(CART))
    with pytest.raises(InvalidValueError, match="The data must only grow, but a learner that has"):
        learner.learn(collect(CART, 2))


SCALED = d3rlpy.algos.DQNConfig(reward_scaler=d3rlpy.preprocessing.ConstantShiftRewardScaler(1.0))


@pytest.mark.parametrize(
    ("algorithm", "env", "settings", "error", "sentence"),
    [
        (
            "doubledqn",
            CART,
            {},
            UnknownNameError,
            "no algorithm of d3rlpy named 'doubledqn': did you mean 'double_dqn'",
        ),
        (
            "td3",
            CART,
            {},
            SpaceError,
            "of learner 'it' must fit the environment, but d3rlpy's td3 is for continuous actions",
        ),
        (
            "dqn",
            PENDULUM,
            {},
            SpaceError,
            "of learner 'it' must fit the environment, but d3rlpy's dqn is for discrete actions",
        ),
        (
            d3rlpy.algos.TD3Config(),
            CART,
            {"hidden": None},
            SpaceError,
            "TD3Config is for continuous actions",
        ),
        (
            d3rlpy.algos.ReBRACConfig(),
            PENDULUM,
            {"hidden": None},
            InvalidValueError,
            "that learn from single transitions",
        ),
        (
            d3rlpy.algos.DQNConfig(),
            CART,
            {},
            InvalidValueError,
            "`options` and `hidden` are for algorithms that are given by name",
        ),
        (SCALED, CART, {"hidden": None}, InvalidValueError, "Scalers are not supported, but got "),
        (
            "dqn",
            CART,
            {"options": {"learning": 0.1}},
            UnknownNameError,
            "no option of d3rlpy's dqn named 'learning': did you mean",
        ),
        (
            "dqn",
            CART,
            {"options": {"batch_size": 8}},
            InvalidValueError,
            "`options` must not contain batch_size",
        ),
        ("dqn", CART, {"noise": 0.1}, InvalidValueError, "`noise` is for Box actions"),
        ("td3", PENDULUM, {"epsilon": 0.1}, InvalidValueError, "`epsilon` is for discrete actions"),
        (
            "td3",
            PENDULUM,
            {"noise": -0.1},
            InvalidValueError,
            r"`noise` must be .* \(first, last, transitions\)",
        ),
        (
            "dqn",
            CART,
            {"updates_per_step": 0},
            InvalidValueError,
            "`updates_per_step` must be greater than 0",
        ),
        ("dqn", CART, {"batch_size": 0}, InvalidValueError, "`batch_size` must be at least 1"),
        (
            "td3",
            CART,
            {"action_space": gym.spaces.Box(-np.inf, np.inf, (1,))},
            SpaceError,
            "Box with bounds, but are Box",
        ),
        (
            "td3",
            CART,
            {"action_space": gym.spaces.MultiBinary(3)},
            SpaceError,
            "Box with bounds, but are MultiBinary",
        ),
        (
            "dqn",
            CART,
            {"observation_space": gym.spaces.Dict({})},
            SpaceError,
            "The observations of learner 'it' must be",
        ),
    ],
)
def test_bad_input_raises_a_clear_error(algorithm, env, settings, error, sentence):
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    with pytest.raises(error, match=sentence):
        D3Learner("it", algorithm, **{"hidden": [8]} | spaces | settings)


def test_a_learner_is_built_for_an_environment():
    learner = D3Learner.for_env(CART, "double_dqn", **SMALL, seed=3)
    assert learner.name == "d3rlpy double_dqn hidden (8), batch_size 8, updates_per_step 0.3"
    assert (learner.observation_space, learner.action_space) == (
        CART.observation_space,
        CART.action_space,
    )
    faster = D3Learner.for_env(PENDULUM, "td3", options={"actor_learning_rate": 0.01}, **SMALL)
    assert faster.name.startswith("d3rlpy td3 actor_learning_rate 0.01, hidden (8)")
    assert D3Learner.for_env(PENDULUM, "td3", name="mine", **SMALL).name == "mine"
    with pytest.raises(UnknownNameError, match="There is no option of D3Learner named 'batch'"):
        D3Learner.for_env(CART, "dqn", batch=8)


def test_type_checkers_know_the_options_of_the_constructor():
    parameters = inspect.signature(D3Learner).parameters.values()
    own = {each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(D3Options.__annotations__) == own - {"observation_space", "action_space", "options"}
