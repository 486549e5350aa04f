"""A learner that repeats random actions."""

import math
from collections import Counter
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import play
from esbas.errors import InvalidValueError
from esbas.learners import PersistentRandom
from esbas.specs.portfolios.recipe import recipe_of
from esbas.testing import Corridor, check_learner

SPACES = [
    gym.spaces.Discrete(3),
    gym.spaces.Discrete(3, start=5),
    gym.spaces.Box(-2.0, 3.0, (2,)),
    gym.spaces.Box(-np.inf, np.inf, (1,)),
    gym.spaces.MultiDiscrete([2, 3]),
    gym.spaces.Dict(speed=gym.spaces.Box(0.0, 1.0, (1,)), gear=gym.spaces.Discrete(4)),
]


class Anything(gym.Env):
    """Ten steps with any actions, which it changes if it can."""

    observation_space = gym.spaces.Discrete(2)

    def __init__(self, action_space):
        self.action_space = action_space
        self.taken = []

    def reset(self, *, seed=None, options=None):
        self.taken = []
        return 0, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(repr(action))
        if isinstance(action, np.ndarray):
            action[:] = 0
        return len(self.taken) % 2, 0.0, len(self.taken) == 10, False, {}


class Scripted:
    """A generator whose numbers are given, in the order of the calls."""

    def __init__(self, *numbers):
        self._numbers = list(numbers)

    def integers(self, count):
        assert self._numbers[0] < count
        return self._numbers.pop(0)

    def zipf(self, exponent):
        assert exponent == 2.5
        return self._numbers.pop(0)


def test_discrete_actions_by_hand():
    learner = PersistentRandom("it", action_space=gym.spaces.Discrete(4, start=-1), zeta=2.5)
    acting = learner.policy().start()
    rng = Scripted(3, 2, 0, 1, 2, 3)  # action 2 twice, -1 once, 1 three times
    drawn = [acting.act_with_log_prob(None, rng) for _ in range(6)]
    assert [action for action, _ in drawn] == [2, 2, -1, 1, 1, 1]
    assert [math.exp(log_prob) for _, log_prob in drawn] == pytest.approx(
        [1 / 4, 1, 1 / 4, 1 / 4, 1, 1]
    )


def test_continuous_actions_have_a_density_where_they_are_drawn():
    learner = PersistentRandom("it", action_space=gym.spaces.Box(-2.0, 3.0, (2,)), zeta=2.0)
    acting = learner.policy().start()
    rng = np.random.default_rng(0)
    before = None
    densities = Counter()
    for _ in range(200):
        action, log_prob = acting.act_with_log_prob(None, rng)
        repeated = before is not None and np.array_equal(action, before)
        before = action.copy()
        action[:] = 9.0  # as an environment might
        if repeated:
            assert math.isnan(log_prob)
        else:
            assert math.exp(log_prob) == pytest.approx(1 / 25)
        densities[repeated] += 1
    assert min(densities.values()) > 20


@pytest.mark.parametrize("zeta", [1.5, 2.0, 4.0])
def test_actions_change_as_often_as_the_distribution_says(zeta):
    draws = 4000
    learner = PersistentRandom("it", action_space=gym.spaces.Discrete(1000), zeta=zeta)
    rng = np.random.default_rng(0)
    policy = learner.policy()
    lengths = Counter()
    for _ in range(draws):
        acting = policy.start()
        first, _ = acting.act_with_log_prob(0, rng)
        length = 1
        while length < 5 and acting.act_with_log_prob(0, rng) == (first, 0.0):
            length += 1
        lengths[length] += 1
    total = sum(n**-zeta for n in range(1, 1_000_000))
    for n in range(1, 5):
        margin = 5 * math.sqrt(0.25 / draws)
        assert lengths[n] / draws == pytest.approx(n**-zeta / total, abs=margin)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_any_action_space(space):
    env = Anything(space)
    check_learner(lambda: PersistentRandom.for_env(env), env)
    (learner,) = recipe_of(["persistent_random"]).build(env, steps=10, seed=0)
    play(env, learner.policy(), rng=np.random.default_rng(0), seed=0)
    assert 1 < len(set(env.taken)) < 10  # actions are repeated, and they change


def test_it_is_a_learner_of_portfolios():
    env = gym.make("MountainCar-v0")
    texts = ["persistent_random", "persistent_random(zeta=3)", "random"]
    learners = recipe_of(texts).build(env, steps=10, seed=0)
    assert [each.name for each in learners] == [
        "persistent random",
        "persistent random zeta 3",
        "random",
    ]
    assert [each.stationary for each in learners] == [True, True, True]
    records = list(esbas.run(env, learners, "uniform", episodes=4, seed=0))
    assert len(records) == 4
    by_class = list(esbas.run(env, [PersistentRandom, "random"], "uniform", episodes=2, seed=0))
    assert {record.learner for record in by_class} <= {"persistent random", "random"}


def test_names_and_errors():
    assert PersistentRandom.for_env(Corridor()).name == "persistent random"
    assert PersistentRandom.for_env(Corridor(), zeta=1.5).name == "persistent random zeta 1.5"
    assert PersistentRandom.for_env(Corridor(), name="it", zeta=1.5).name == "it"
    with pytest.raises(InvalidValueError, match="`zeta` must be finite and greater than 1"):
        PersistentRandom.for_env(Corridor(), zeta=1.0)


def test_a_training_with_it(tmp_path):
    training = esbas.train(
        "FrozenLake-v1",
        learners=["persistent_random", "tabular_q(zeta=2)"],
        steps=300,
        out=tmp_path / "it",
        progress=False,
    )
    policy = training.policy("persistent random")
    policy.start()
    actions = [int(policy.act(0)) for _ in range(50)]
    changes = sum(one != two for one, two in pairwise(actions))
    assert 0 < changes < 30  # about 37 without repetitions
    report = (tmp_path / "it" / "report.html").read_text(encoding="utf-8")
    assert "random actions, each of them repeated; it learns nothing" in report
    assert "random actions are taken n times in a row" in report
