"""Random actions that are repeated: εz-greedy policies of tables and DQNs."""

import math
from functools import partial
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from esbas import ESBAS, SSBAS, SharedEvidence, play, resume, run
from esbas.errors import InvalidValueError
from esbas.isolation import Isolated
from esbas.learners import (
    DQN,
    DoubleQ,
    EpsilonGreedy,
    ExpectedSARSA,
    EZGreedy,
    QLambda,
    SharedReplay,
    TabularQ,
)
from esbas.learners.ez_greedy import LONGEST, draw_repetitions
from esbas.off_policy import per_decision
from esbas.specs.portfolios.recipe import recipe_of
from esbas.testing import Corridor, check_learner, check_policy

TABLES = [TabularQ, DoubleQ, QLambda, ExpectedSARSA]
VALUES = np.array([1.0, 3.0, 3.0, 0.0])
ZETA_2 = math.pi**2 / 6  # the sum of n^-2


class Scripted:
    """A generator whose numbers are given, in the order of the calls."""

    def __init__(self, *numbers):
        self._numbers = list(numbers)

    def random(self):
        return self._numbers.pop(0)

    def integers(self, count):
        assert self._numbers[0] < count
        return self._numbers.pop(0)

    def zipf(self, exponent):
        assert exponent == 2.0
        return self._numbers.pop(0)


def ez(epsilon=0.4, zeta=2.0, values=VALUES):
    return EZGreedy(EpsilonGreedy(lambda _: values, epsilon), zeta)


def test_an_episode_by_hand():
    # Action 3 is drawn for three steps. Then the second of the two best actions, then action 1 for
    # one step, then the first of the best.
    rng = Scripted(0.39, 3, 3, 0.4, 0.5, 0.0, 1, 1, 0.9, 0.1)
    acting = ez().start()
    drawn = [acting.act_with_log_prob(0, rng) for _ in range(6)]
    assert [action for action, _ in drawn] == [3, 3, 3, 2, 1, 1]
    # 0.4 / 4 for any action, and 0.6 / 2 more for each of the two best.
    expected = [0.1, 1.0, 1.0, 0.4, 0.4, 0.4]
    assert [math.exp(log_prob) for _, log_prob in drawn] == pytest.approx(expected)


def test_repetitions_have_the_zeta_distribution():
    rng = np.random.default_rng(0)
    draws = 20_000
    drawn = np.array([draw_repetitions(2.0, rng) for _ in range(draws)])
    for n in range(1, 6):
        expected = n**-2 / ZETA_2
        assert (drawn == n).mean() == pytest.approx(expected, abs=4 * math.sqrt(0.25 / draws))
    assert drawn.max() <= LONGEST
    assert {draw_repetitions(1.001, rng) for _ in range(200)} >= {LONGEST}


def brute_force(steps, repeated, left, epsilon, values, limit):
    """Return the probability of every sequence of `steps` actions, by summing over repetitions.

    `limit` is the number of repetitions that are told apart: more make no difference in so few
    steps.
    """
    if steps == 0:
        return {(): 1.0}
    found = {}

    def add(action, probability, repeats):
        rest = brute_force(steps - 1, action, repeats, epsilon, values, limit)
        for sequence, later in rest.items():
            key = (action, *sequence)
            found[key] = found.get(key, 0.0) + probability * later

    if left > 0:
        add(repeated, 1.0, left - 1)
        return found
    best = np.flatnonzero(values == values.max())
    for action in best:
        add(int(action), (1 - epsilon) / len(best), 0)
    for action in range(len(values)):
        rest = 1.0
        for n in range(1, limit):
            share = n**-2 / ZETA_2
            rest -= share
            add(action, epsilon / len(values) * share, n - 1)
        add(action, epsilon / len(values) * rest, limit - 1)
    return found


@pytest.mark.parametrize("values", [np.array([0.0, 1.0]), np.array([1.0, 1.0, 0.0])], ids=str)
def test_sequences_have_their_probabilities(values):
    policy = ez(epsilon=0.6, values=values)
    rng = np.random.default_rng(1)
    draws = 20_000
    counts = {}
    for _ in range(draws):
        acting = policy.start()
        sequence = tuple(acting.act(0, rng) for _ in range(3))
        counts[sequence] = counts.get(sequence, 0) + 1
    expected = brute_force(3, 0, 0, 0.6, values, 4)
    assert sum(expected.values()) == pytest.approx(1.0)
    for sequence, probability in expected.items():
        margin = 5 * math.sqrt(probability * (1 - probability) / draws)
        assert counts.get(sequence, 0) / draws == pytest.approx(probability, abs=margin)


def test_a_large_exponent_is_epsilon_greedy():
    policy = ez(zeta=1e6)
    rng = np.random.default_rng(0)
    acting = policy.start()
    drawn = [acting.act_with_log_prob(0, rng) for _ in range(4000)]
    assert {round(math.exp(log_prob), 9) for _, log_prob in drawn} == {0.1, 0.4}


def test_episodes_do_not_share_what_they_repeat():
    policy = ez()
    rng = Scripted(0.0, 3, 2, 0.0, 1, 3)  # action 3 for two steps, action 1 for three
    one = policy.start()
    two = policy.start()
    assert [each.act(0, rng) for each in (one, two, one, two, two)] == [3, 1, 3, 1, 1]


def test_the_contract_is_kept():
    check_policy(ez, gym.make("CliffWalking-v1", max_episode_steps=100))
    check_policy(partial(ez, values=np.array([np.nan, 1.0, 2.0, 3.0])), gym.make("FrozenLake-v1"))


@pytest.mark.parametrize("kind", TABLES)
def test_tables_repeat_random_actions(kind):
    env = Corridor(5, max_episode_steps=30)
    learner = kind.for_env(env, epsilon=1.0, zeta=1.2)
    policy = learner.policy()
    assert isinstance(policy, EZGreedy)
    assert isinstance(learner.greedy_policy(), EpsilonGreedy)
    trajectory = play(env, policy, rng=np.random.default_rng(0), seed=0)
    assert 0.0 in trajectory.log_probs  # repeated
    assert not np.isnan(trajectory.log_probs).any()
    check_learner(lambda: kind.for_env(env, zeta=2.0), env)
    assert isinstance(kind.for_env(env).policy(), EpsilonGreedy)


def test_dqns_repeat_random_actions():
    env = gym.make("CartPole-v1", max_episode_steps=40)
    learner = DQN.for_env(env, zeta=1.2)
    trajectory = play(env, learner.policy(), rng=np.random.default_rng(0), seed=0)
    assert 0.0 in trajectory.log_probs
    assert isinstance(learner.greedy_policy(), EpsilonGreedy)
    assert isinstance(DQN.for_env(env).policy(), EpsilonGreedy)
    check_learner(lambda: DQN.for_env(env, zeta=2.0, learning_starts=20), env, episodes=3)


def test_a_policy_follows_the_schedule_of_its_learner():
    env = SimpleNamespace(
        observation_space=gym.spaces.Box(-1, 1, (2,)), action_space=gym.spaces.Discrete(2)
    )
    learner = DQN("it", replay=SharedReplay(env), epsilon=(1.0, 0.0, 1), zeta=2.0)
    acting = learner.policy().start()
    trajectory = play(Points(), learner.policy(), rng=np.random.default_rng(0), seed=0)
    for transition in trajectory.transitions():
        learner.step(transition)
    _, log_prob = acting.act_with_log_prob(np.zeros(2, np.float32), np.random.default_rng(0))
    assert log_prob == 0.0  # the best action: exploration has ended


class Points:
    """An episode of three steps."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self._left = 3
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._left -= 1
        return np.full(2, 0.1 * self._left, np.float32), 0.0, self._left == 0, False, {}


@pytest.mark.parametrize("zeta", [1.0, 0.5, -2.0, math.inf, math.nan])
def test_exponents_are_checked(zeta):
    with pytest.raises(InvalidValueError, match="`zeta` must be finite and greater than 1"):
        TabularQ("q", states=3, actions=2, zeta=zeta)
    with pytest.raises(InvalidValueError, match="`zeta` must be finite and greater than 1"):
        DQN.for_env(gym.make("CartPole-v1"), zeta=zeta)


def learners():
    return [
        TabularQ("repeats", states=5, actions=2, epsilon=0.5, zeta=1.5),
        TabularQ("once", states=5, actions=2, epsilon=0.5),
    ]


@pytest.mark.parametrize("kind", [SSBAS, ESBAS])
def test_a_resumed_run_ends_identically(kind, tmp_path):
    env = partial(Corridor, 5, max_episode_steps=40)
    selector = partial(kind, ["repeats", "once"])
    whole = run(env(), learners(), selector(), episodes=30, seed=3)
    records = list(whole)
    saving = run(env(), learners(), selector(), episodes=30, seed=3)
    for number in range(29):
        next(saving)
        saving.save(tmp_path / "run.esbas")
        resumed = resume(tmp_path / "run.esbas", env(), learners(), selector())
        if number % 7 == 0:
            assert list(resumed) == records[number + 1 :]
            for one, other in zip(
                resumed.data.transitions(), whole.data.transitions(), strict=True
            ):
                np.testing.assert_array_equal(one, other)


def isolated():
    return Isolated(partial(TabularQ, "repeats", states=5, actions=2, epsilon=0.5, zeta=1.5))


def test_an_isolated_learner_does_the_same():
    env = partial(Corridor, 5, max_episode_steps=40)
    plain = run(env(), learners()[:1], SSBAS(["repeats"]), episodes=5, seed=3)
    list(plain)
    learner = isolated()
    try:
        other = run(env(), [learner], SSBAS(["repeats"]), episodes=5, seed=3)
        list(other)
    finally:
        learner.close()
    assert not hasattr(learner.policy(), "log_probs")
    for one, two in zip(plain.data.transitions(), other.data.transitions(), strict=True):
        np.testing.assert_array_equal(one, two)
    learner.close()


def test_shared_evidence_judges_it_by_its_own_episodes():
    env = Corridor(5, max_episode_steps=40)
    selector = SharedEvidence(["repeats", "once"])
    with pytest.warns(UserWarning, match="No log-probabilities from 'repeats'"):
        list(run(env, learners(), selector, episodes=20, seed=0))


def test_off_policy_evaluation_refuses_it():
    env = Corridor(5, max_episode_steps=40)
    trajectory = play(env, learners()[1].policy(), rng=np.random.default_rng(0), seed=0)
    with pytest.raises(InvalidValueError, match="but EZGreedy does not"):
        per_decision([trajectory] * 2, learners()[0].policy())


def test_portfolios_have_the_option():
    texts = ["tabular_q(zeta=2)", "tabular_q", "q_lambda(zeta=2.5)", "dqn(zeta=2)"]
    built = recipe_of(texts).build(gym.make("FrozenLake-v1"), steps=10, seed=0)
    assert [isinstance(each.policy(), EZGreedy) for each in built] == [True, False, True, True]
    assert [built[0].name, built[1].name] == ["tabular Q zeta 2", "tabular Q"]
