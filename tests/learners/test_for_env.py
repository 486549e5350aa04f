"""Learners that are built for an environment, and their names."""

import doctest
import importlib.util
import inspect

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas.errors import InvalidValueError, SpaceError, UnknownNameError
from esbas.learners import (
    DQN,
    Constant,
    DoubleQ,
    ExpectedSARSA,
    FittedQ,
    LinearFQI,
    QLambda,
    SB3Learner,
    SharedReplay,
    TabularQ,
    linear_fqi,
    naming,
)
from esbas.learners import fitted_q as fqi
from esbas.learners.dqn import learner as dqn
from esbas.learners.tabular import double_q, q_lambda
from esbas.learners.tabular import table as tabular
from esbas.specs.portfolios.algorithms import find_algorithm
from esbas.testing import Corridor, check_learner

LAKE, CART, PENDULUM = (gym.make(name) for name in ("FrozenLake-v1", "CartPole-v1", "Pendulum-v1"))
TABLES = {
    TabularQ: "tabular Q",
    DoubleQ: "double Q",
    QLambda: "Q(lambda)",
    ExpectedSARSA: "expected SARSA",
}
needs_sb3 = pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None, reason="needs esbas[sb3]"
)


def features(observation):
    return np.array([1.0, float(observation)])


def test_the_documented_loop_works():
    learners = [TabularQ.for_env(LAKE, learning_rate=rate) for rate in (0.02, 0.1, 0.5)]
    assert [learner.name for learner in learners] == [
        f"tabular Q learning_rate {rate}" for rate in (0.02, 0.1, 0.5)
    ]
    records = list(esbas.run(LAKE, learners, esbas.SSBAS, episodes=50, seed=0))
    assert {record.learner for record in records} == {learner.name for learner in learners}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_have_the_size_of_the_environment(kind):
    learner = kind.for_env(LAKE, learning_rate=0.5, gamma=0.9)
    assert type(learner) is kind
    assert learner.table.shape == (16, 4)
    assert (learner.gamma, learner.name) == (0.9, f"{TABLES[kind]} learning_rate 0.5, gamma 0.9")
    assert repr(learner) == f"<{kind.__name__} {learner.name!r}>"
    assert [kind.for_env(LAKE).name, kind.for_env(LAKE, name="mine").name] == [TABLES[kind], "mine"]
    check_learner(lambda: kind.for_env(Corridor()), Corridor())


def test_options_of_subclasses_are_passed_on():
    assert QLambda.for_env(LAKE, trace_decay=0.5).trace_decay == 0.5
    one, again, other = (DoubleQ.for_env(LAKE, seed=seed) for seed in (1, 1, 2))
    # the seed of a run does not change names
    assert {one.name, again.name, other.name} == {"double Q"}
    draws = [learner._rng.random() for learner in (one, again, other)]
    assert draws[0] == draws[1] != draws[2]


def test_a_class_of_your_own_has_its_own_title():
    class Mine(TabularQ):
        def __init__(self, name, *, own=1, **options):
            super().__init__(name, **options)
            self.own = own

    learner = Mine.for_env(LAKE, own=3, learning_rate=0.5)
    assert (learner.name, learner.own, learner.table.shape) == (
        "Mine own 3, learning_rate 0.5",
        3,
        (16, 4),
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.02, "0.02"),
        (1e-05, "1e-05"),
        (1 / 3, "0.3333333333333333"),
        (np.float64(0.5), "0.5"),
        (True, "true"),
        ((1.0, 0.1, 500), "(1, 0.1, 500)"),
        (features, "features"),
        (lambda episode: 1 / episode, "lambda"),
        (object(), "object"),
        ({"net_arch": [64]}, "{'net_arch': [64]}"),
        (None, "None"),
    ],
)
def test_values_in_names_are_the_same_in_every_process(value, words):
    assert TabularQ.for_env(LAKE, name=None).name == "tabular Q"
    assert naming.derived_name("it", {"option": value}) == f"it option {words}"


def test_learners_that_differ_in_no_option_need_names():
    learners = [TabularQ.for_env(LAKE), TabularQ.for_env(LAKE)]
    with pytest.raises(
        InvalidValueError,
        match="Learners must have different names, but two are named 'tabular Q': rename one",
    ):
        esbas.run(LAKE, learners)


def test_dqns_have_a_memory_of_their_own_unless_they_share_one():
    alone, other = (DQN.for_env(CART, n_steps=n, hidden=(8,)) for n in (1, 3))
    assert [alone.name, other.name] == ["DQN n_steps 1, hidden (8)", "DQN n_steps 3, hidden (8)"]
    assert alone.replay is not other.replay
    assert alone.observation_space == CART.observation_space
    replay = SharedReplay(CART, buffer_size=100)
    shared = [
        DQN.for_env(CART, replay=replay, learning_rate=rate, learning_starts=10)
        for rate in (1e-3, 2e-3)
    ]
    assert all(learner.replay is replay for learner in shared)
    assert [learner.name for learner in shared] == [
        f"DQN learning_rate {rate}, learning_starts 10" for rate in (0.001, 0.002)
    ]
    assert len(list(esbas.run(CART, shared, "ssbas", episodes=3, keep_data=False))) == 3


def test_a_memory_of_another_environment_is_refused():
    with pytest.raises(
        SpaceError,
        match=(
            "`replay` must have the observation_space of the environment, "
            r"Discrete\(16\), but has Box"
        ),
    ):
        DQN.for_env(LAKE, replay=SharedReplay(CART, buffer_size=100))


def test_linear_fqi_reads_the_actions():
    learner = LinearFQI.for_env(LAKE, features, ridge=0.1)
    assert (learner.action_space.n, learner.ridge, learner.name) == (
        4,
        0.1,
        "linear FQI features features, ridge 0.1",
    )
    assert len(list(esbas.run(LAKE, [learner], esbas.ESBAS, episodes=5))) == 5


def test_fitted_q_reads_both_spaces():
    pytest.importorskip("sklearn")
    learner = FittedQ.for_env(
        CART, "ExtraTreesRegressor", options={"n_estimators": 5}, gamma=0.9, seed=3
    )
    assert learner.name == "FQI regressor ExtraTreesRegressor, n_estimators 5, gamma 0.9"
    assert (learner.observation_space, learner.action_space) == (
        CART.observation_space,
        CART.action_space,
    )
    from sklearn.linear_model import Ridge

    assert FittedQ.for_env(CART, Ridge(alpha=2.0)).name == "FQI regressor Ridge(alpha=2.0)"


@needs_sb3
def test_models_of_stable_baselines3_are_named_after_their_algorithm():
    from stable_baselines3 import SAC

    settings = {"total_steps": 100, "replay": SharedReplay(PENDULUM, buffer_size=100)}
    named, given = (SB3Learner.for_env(PENDULUM, model, **settings) for model in ("sac", SAC))
    assert [named.name, given.name] == ["SAC", "SAC"]
    fast = SB3Learner.for_env(PENDULUM, "td3", options={"learning_rate": 0.01}, **settings)
    assert (fast.name, fast.model.learning_rate, repr(fast)) == (
        "TD3 learning_rate 0.01",
        0.01,
        "<SB3Learner 'TD3 learning_rate 0.01'>",
    )
    assert fast.replay is named.replay
    titles = [SB3Learner.for_env(CART, key, total_steps=100).name for key in ("dqn", "qrdqn")]
    assert titles == [find_algorithm(f"sb3.{key}").title for key in ("dqn", "qrdqn")]
    with pytest.raises(SpaceError, match="Learner 'SAC' must fit the environment, but SAC reports"):
        SB3Learner.for_env(CART, "sac", total_steps=100)
    with pytest.raises(
        UnknownNameError, match="There is no algorithm of Stable-Baselines3 named 'ppo'"
    ):
        SB3Learner.for_env(CART, "ppo", total_steps=100)


VECTORS = "use a learner for vectors such as DQN, or number them with a wrapper"
WRONG = {
    "a table for vectors": (
        lambda: TabularQ.for_env(CART),
        SpaceError,
        (
            "^TabularQ needs the observations 0, ..., n - 1, "
            rf"but the observation space is Box\(.*\): {VECTORS}"
        ),
    ),
    "a table for continuous actions": (
        lambda: DoubleQ.for_env(
            gym.wrappers.TransformObservation(PENDULUM, lambda seen: 0, gym.spaces.Discrete(1))
        ),
        SpaceError,
        (
            "^DoubleQ needs the actions 0, ..., n - 1, "
            r"but the action space is Box\(.*use a learner for continuous actions"
        ),
    ),
    "a table for observations in parts": (
        lambda: TabularQ.for_env(gym.make("Blackjack-v1")),
        SpaceError,
        "the observation space is Tuple.*: wrap the environment in esbas.envs.DiscreteObservations",
    ),
    "a table that does not start at 0": (
        lambda: TabularQ.for_env(
            gym.wrappers.TransformObservation(
                LAKE, lambda seen: seen + 1, gym.spaces.Discrete(16, start=1)
            )
        ),
        SpaceError,
        (
            r"the observation space is Discrete\(16, start=1\): "
            "wrap the environment in esbas.envs.DiscreteObservations"
        ),
    ),
    "a DQN for continuous actions": (
        lambda: DQN.for_env(PENDULUM),
        SpaceError,
        (
            "^DQN needs the actions 0, ..., n - 1, "
            r"but the action space is Box\(.*such as SB3Learner with 'sac'"
        ),
    ),
    "a DQN for observations in parts": (
        lambda: DQN.for_env(gym.make("Blackjack-v1")),
        SpaceError,
        (
            "^DQN needs observations that are numbers or arrays, "
            "but the observation space is Tuple.*FlattenObservation"
        ),
    ),
    "linear FQI for continuous actions": (
        lambda: LinearFQI.for_env(PENDULUM, features),
        SpaceError,
        "^LinearFQI needs the actions",
    ),
    "a name": (
        lambda: TabularQ.for_env("FrozenLake-v1"),
        InvalidValueError,
        (
            "^An environment must have `observation_space` and `action_space`, "
            "but got 'FrozenLake-v1': pass for example"
        ),
    ),
    "a vector": (
        lambda: TabularQ.for_env(gym.make_vec("FrozenLake-v1", num_envs=2)),
        InvalidValueError,
        "^Vector environments are not supported, but got SyncVectorEnv: pass a single environment",
    ),
    "an unknown option": (
        lambda: TabularQ.for_env(LAKE, learning_rat=0.1),
        UnknownNameError,
        r"There is no option of TabularQ named 'learning_rat': did you mean 'learning_rate'\?",
    ),
    "an option of another class": (
        lambda: TabularQ.for_env(LAKE, seed=1),
        UnknownNameError,
        "no option of TabularQ named 'seed'",
    ),
    "what the environment says": (
        lambda: TabularQ.for_env(LAKE, states=3),
        UnknownNameError,
        "named 'states'",
    ),
    "a bad value": (
        lambda: TabularQ.for_env(LAKE, learning_rate=2),
        InvalidValueError,
        "^`learning_rate` must be greater than 0 and at most 1, but got 2",
    ),
}


@pytest.mark.parametrize(("make", "error", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_refused_with_a_sentence(make, error, message):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


TYPED = {
    TabularQ: tabular.TabularOptions,
    ExpectedSARSA: tabular.TabularOptions,
    DoubleQ: double_q.DoubleQOptions,
    QLambda: q_lambda.QLambdaOptions,
    LinearFQI: linear_fqi.LinearFQIOptions,
    FittedQ: fqi.FittedQOptions,
    DQN: dqn.DQNOptions,
}


@pytest.mark.parametrize(("kind", "typed"), TYPED.items(), ids=lambda each: each.__name__)
def test_type_checkers_know_the_options_of_the_constructor(kind, typed):
    parameters = inspect.signature(kind).parameters.values()
    own = {
        each.name: each.annotation
        for each in parameters
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    for name in ("states", "actions", "replay", "observation_space", "action_space", "options"):
        own.pop(name, None)
    assert inspect.get_annotations(typed, eval_str=True) == own


def test_titles_are_those_of_portfolios():
    for name, kind in (
        ("dqn", DQN),
        ("fqi", FittedQ),
        ("tabular_q", TabularQ),
        ("double_q", DoubleQ),
    ):
        assert find_algorithm(name).title == kind.title
    for name, kind in (("q_lambda", QLambda), ("expected_sarsa", ExpectedSARSA)):
        assert find_algorithm(name).title == kind.title


def test_learners_describe_themselves():
    assert repr(Constant("right", lambda seen: 1)) == "<Constant 'right'>"
    assert repr(DQN.__new__(DQN)) == "<DQN ''>"  # also before it is built


def test_documented_names_are_right():
    assert doctest.testmod(naming).failed == 0
