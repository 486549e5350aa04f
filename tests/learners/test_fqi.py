"""Fitted Q iteration with regressors of scikit-learn."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import esbas
from esbas._internal.spaces import Discrete
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, UnknownNameError
from esbas.learners import LinearFQI
from esbas.learners.fitted_q import FittedQ
from esbas.testing import Corridor, OneStep, check_learner

PLANE = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)


def learner_for(env, regressor, **settings):
    return FittedQ(
        "it",
        regressor,
        observation_space=env.observation_space,
        action_space=env.action_space,
        **settings,
    )


def trajectory(seen, actions, rewards, *, terminated=True):
    return esbas.Trajectory(
        np.array(seen), np.array(actions), np.array(rewards, float), terminated, not terminated
    )


def data_of(*trajectories):
    data = esbas.TrajectorySet()
    for each in trajectories:
        data.append(each)
    return data


CHAIN = [  # the observations 0, 1, 2, and the end after 2; action 1 moves on, action 0 stays
    trajectory([0, 0, 1, 1, 2, 2, 3], [0, 1, 0, 1, 0, 1], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
]


@pytest.mark.parametrize(
    "regressor", [DecisionTreeRegressor(), LinearRegression(fit_intercept=False)]
)
def test_a_chain_by_hand(regressor):
    """With γ = 0.5, action 1 has the values 0.25, 0.5 and 1 at 0, 1 and 2, action 0 half of them.

    Each iteration adds one step.
    """
    expected = {
        1: [[0, 0], [0, 0], [0, 1]],
        2: [[0, 0], [0, 0.5], [0.5, 1]],
        3: [[0, 0.25], [0.25, 0.5], [0.5, 1]],
    }
    expected[4] = expected[9] = [[0.125, 0.25], [0.25, 0.5], [0.5, 1]]
    for iterations, rows in expected.items():
        space = {"observation_space": Discrete(4), "action_space": Discrete(2)}
        learner = FittedQ("it", regressor, gamma=0.5, iterations=iterations, **space)
        learner.learn(data_of(*CHAIN))
        assert [learner.values(seen) for seen in range(3)] == [
            pytest.approx(row, abs=1e-12) for row in rows
        ]


def test_a_truncated_episode_bootstraps():
    for terminated, expected in ((True, 3.0), (False, 3.0 + 0.5 * 2.0)):
        data = data_of(
            trajectory([0, 1], [0], [3.0], terminated=terminated), trajectory([1, 0], [0], [2.0])
        )
        learner = FittedQ(
            "it",
            DecisionTreeRegressor(),
            observation_space=Discrete(2),
            action_space=Discrete(1),
            gamma=0.5,
        )
        learner.learn(data)
        assert learner.values(0).item() == pytest.approx(expected)


def test_agrees_with_linear_fitted_q_iteration():
    rng, data = np.random.default_rng(0), esbas.TrajectorySet()
    for _ in range(60):
        steps = int(rng.integers(1, 7))
        data.append(
            trajectory(
                rng.normal(size=(steps + 1, 2)),
                rng.integers(0, 3, steps),
                rng.normal(size=steps),
                terminated=steps > 2,
            )
        )
    linear = LinearFQI(
        "linear",
        lambda seen: np.append(seen, 1.0),
        actions=3,
        gamma=0.9,
        ridge=1e-9,
        tolerance=0,
        max_iterations=20,
    )
    learner = FittedQ(
        "it",
        LinearRegression(),
        observation_space=PLANE,
        action_space=Discrete(3),
        gamma=0.9,
        iterations=20,
    )
    for each in (linear, learner):
        each.learn(data)
    for seen in rng.normal(size=(20, 2)):
        assert learner.values(seen) == pytest.approx(
            linear.weights @ np.append(seen, 1.0), rel=1e-6, abs=1e-6
        )


FAMILIES = {
    "tree": DecisionTreeRegressor(max_features=1),
    "forest": ExtraTreesRegressor(5),
    "boosting": HistGradientBoostingRegressor(max_iter=3),
    "neighbors": KNeighborsRegressor(1),
    "process": GaussianProcessRegressor(optimizer=None, alpha=1e-3),
    "linear": make_pipeline(StandardScaler(), LinearRegression()),
    "network": make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(4,), solver="sgd", max_iter=2)
    ),
}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_keeps_the_contract_of_learners_with_any_regressor(family):
    env = Corridor(4, max_episode_steps=12)
    check_learner(
        lambda: learner_for(env, FAMILIES[family], iterations=3, epsilon=0.3), env, draws=50
    )


def test_keeps_the_contract_of_learners_in_other_tasks():
    bandit = OneStep()  # every step ends the episode
    check_learner(lambda: learner_for(bandit, "LinearRegression"), bandit, draws=50)
    cart = gym.make("CartPole-v1")
    check_learner(
        lambda: learner_for(cart, DecisionTreeRegressor(max_depth=3), iterations=4), cart, draws=50
    )


def test_learns_the_corridor_in_epochs():
    env = Corridor(slip=0.0)
    learner = learner_for(
        env, "ExtraTreesRegressor", options={"n_estimators": 5}, epsilon=(1.0, 0.0, 300)
    )
    lengths = [
        record.length
        for record in esbas.run(env, [learner], esbas.ESBAS(["it"], epochs=[50, 10]), episodes=60)
    ]
    assert sum(lengths[:50]) >= 300
    assert lengths[50:] == [4] * 10


def test_fits_only_when_the_data_have_grown():
    env = Corridor(slip=0.0)
    sizes = []
    learner = learner_for(env, "DecisionTreeRegressor", growth=1.5, epsilon=0.5)
    run = esbas.run(env, [learner], esbas.Fixed(["it"], arm="it"), episodes=60)
    seen = [0]
    for record in run:
        if learner.fitted not in sizes:
            sizes.append(learner.fitted)
        seen.append(seen[-1] + record.length)
    assert set(sizes) <= set(seen)
    assert all(after >= 1.5 * before for before, after in itertools.pairwise(sizes[1:]))
    assert 4 < len(sizes) < 15
    wanted = [0]
    for size in seen[1:-1]:  # at the start of the next episode
        if size >= 1.5 * wanted[-1]:
            wanted.append(size)
    assert sizes == wanted


def probabilities(policy):
    """The probabilities of both actions at 0."""
    return np.exp(policy.log_probs(np.zeros(2, int), np.arange(2)))


def test_exploration_follows_the_transitions():
    learner = FittedQ(
        "it",
        "LinearRegression",
        observation_space=Discrete(4),
        action_space=Discrete(2),
        epsilon=(1, 0.2, 12),
    )
    assert probabilities(learner.policy()) == pytest.approx([0.5, 0.5])
    learner.learn(data_of(*CHAIN))  # 6 transitions
    assert probabilities(learner.policy()) == pytest.approx([0.3, 0.7])
    learner.learn(data_of(*CHAIN * 3))
    assert probabilities(learner.policy()) == pytest.approx([0.1, 0.9])
    assert probabilities(learner.greedy_policy()) == pytest.approx([0.0, 1.0])


def test_an_action_never_tried_has_no_value():
    learner = FittedQ(
        "it",
        "LinearRegression",
        observation_space=Discrete(2),
        action_space=Discrete(2),
        epsilon=0.5,
        gamma=0.5,
    )
    learner.learn(data_of(trajectory([0, 1, 0], [1, 1], [-1.0, -1.0])))
    assert learner.values(0) == pytest.approx([-np.inf, -1.5])
    assert probabilities(learner.policy()) == pytest.approx([0.25, 0.75])


def test_regressors_of_different_actions_and_members_draw_differently():
    def importances(name, seed=0):
        forest = ExtraTreesRegressor(3, max_features=1)
        learner = FittedQ(
            name, forest, observation_space=PLANE, action_space=Discrete(2), seed=seed, gamma=0.0
        )
        rng = np.random.default_rng(0)
        seen = rng.normal(size=(20, 2))
        rewards = rng.normal(size=20)
        steps = [
            trajectory([row, row], [action], [reward])
            for row, reward in zip(seen, rewards, strict=True)
            for action in (0, 1)
        ]
        learner.learn(data_of(*steps))
        return learner.values(np.zeros(2)).tolist()

    assert len({*importances("one"), *importances("other"), *importances("one", seed=1)}) == 6
    assert importances("one") == importances("one")


def test_a_policy_does_not_change_when_its_learner_continues_to_learn():
    learner = FittedQ(
        "it",
        "LinearRegression",
        observation_space=Discrete(4),
        action_space=Discrete(2),
        epsilon=0.0,
    )
    learner.learn(data_of(trajectory([2, 2], [0], [1.0]), trajectory([2, 3], [1], [0.0])))
    policy = learner.policy()
    learner.learn(data_of(*CHAIN * 4))
    rng = np.random.default_rng(0)
    assert (policy.act(2, rng), learner.policy().act(2, rng)) == (0, 1)


@pytest.mark.parametrize("selector", [esbas.SSBAS, esbas.ESBAS])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, selector):
    def parts():
        env = gym.make("CartPole-v1", max_episode_steps=40)
        space = {"observation_space": env.observation_space, "action_space": env.action_space}
        settings = {"iterations": 3, "epsilon": (1.0, 0.1, 300), "growth": 1.3} | space
        learners = [
            FittedQ("trees", ExtraTreesRegressor(3), **settings),
            FittedQ("neighbors", KNeighborsRegressor(1), **settings),
        ]
        return env, learners, selector([each.name for each in learners])

    whole = list(esbas.run(*parts(), episodes=40, seed=1))
    run = esbas.run(*parts(), episodes=40, seed=1)
    first = list(itertools.islice(run, 23))
    run.save(tmp_path / "run")
    assert first + list(esbas.resume(tmp_path / "run", *parts())) == whole
    assert not any(record.faults for record in whole)


def test_divergence_raises_and_leaves_the_learner_unchanged():
    """The next observation is three times the observation, so values triple and grow by 1."""
    space = {
        "observation_space": gym.spaces.Box(-9.0, 9.0, (1,), np.float64),
        "action_space": Discrete(1),
    }
    data = data_of(trajectory([[1.0], [3.0]], [0], [1.0], terminated=False))
    model = LinearRegression(fit_intercept=False)
    learner = FittedQ("it", model, gamma=1.0, iterations=5, **space)
    learner.learn(data)
    assert learner.values(np.ones(1)) == pytest.approx([1 + 3 + 9 + 27 + 81])
    endless = FittedQ("it", model, gamma=1.0, iterations=2000, **space)
    with pytest.raises(
        DivergenceError,
        match="The values of learner 'it' became infinite or NaN: lower `gamma`",
    ):
        endless.learn(data)
    assert endless.fitted == 0
    assert endless.values(np.ones(1)).tolist() == [0.0]


def test_refuses_data_that_have_shrunk():
    learner = FittedQ(
        "it", "LinearRegression", observation_space=Discrete(4), action_space=Discrete(2)
    )
    learner.learn(data_of(*CHAIN * 2))
    with pytest.raises(InvalidValueError, match="The data must only grow, but a learner that has"):
        learner.learn(data_of(*CHAIN))


MISSPELLED = "named 'ExtraTreesRegresor': did you mean 'ExtraTreesRegressor'"
UNKNOWN = "no regressor of scikit-learn named 'LogisticRegression'"
NEAREST = "did you mean 'n_estimators'"
PARAMETER = "reports: The 'n_estimators' parameter"
INVALID = "^The options of MultiOutputRegressor must be valid"
BY_NAME = "^`options` are for regressors that are given by name, but got {'positive': True}"
ITERATIONS = "^`iterations` must be at least 1, but got 0"
NO_REGRESSOR = "^`regressor` must be a regressor of scikit-learn, but got "
ACTIONS = r"^The actions of learner 'it' must be 0, 1, \.\.\., n - 1, but"
OBSERVATIONS = "^The observations of learner 'it' must be"
EPSILON = r"`epsilon` must be .* \(first, last, transitions\)"


@pytest.mark.parametrize(
    ("regressor", "settings", "error", "sentence"),
    [
        ("ExtraTreesRegresor", {}, UnknownNameError, MISSPELLED),
        ("LogisticRegression", {}, UnknownNameError, UNKNOWN),
        ("ExtraTreesRegressor", {"options": {"estimators": 3}}, UnknownNameError, NEAREST),
        ("ExtraTreesRegressor", {"options": {"n_estimators": -3}}, InvalidValueError, PARAMETER),
        (ExtraTreesRegressor(-3), {}, InvalidValueError, PARAMETER),
        ("MultiOutputRegressor", {}, InvalidValueError, INVALID),
        (LogisticRegression(), {}, InvalidValueError, NO_REGRESSOR),
        (LinearRegression, {}, InvalidValueError, NO_REGRESSOR),
        (LinearRegression(), {"options": {"positive": True}}, InvalidValueError, BY_NAME),
        ("LinearRegression", {"action_space": PLANE}, SpaceError, ACTIONS),
        ("LinearRegression", {"observation_space": gym.spaces.Dict({})}, SpaceError, OBSERVATIONS),
        ("LinearRegression", {"gamma": 1.1}, InvalidValueError, "between 0 and 1, but got 1.1"),
        ("LinearRegression", {"iterations": 0}, InvalidValueError, ITERATIONS),
        ("LinearRegression", {"growth": 0.9}, InvalidValueError, "`growth` must be at least 1"),
        ("LinearRegression", {"epsilon": (1.0, 0.1)}, InvalidValueError, EPSILON),
        ("LinearRegression", {"epsilon": 1.5}, InvalidValueError, "but got 1.5"),
    ],
)  # fmt: skip
def test_bad_input_raises_a_clear_error(regressor, settings, error, sentence):
    with pytest.raises(error, match=sentence):
        FittedQ(
            "it",
            regressor,
            **{"observation_space": Discrete(3), "action_space": Discrete(2)} | settings,
        )
