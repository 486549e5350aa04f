"""Corrected returns: what DQNs learn from the data of others, and where a trace is cut."""

import math
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esbas
from esbas import Transition
from esbas.errors import InvalidValueError
from esbas.learners import DQN, SB3Learner, SharedReplay
from esbas.learners.dqn import formulas


def memory(states: int, actions: int = 2, buffer_size: int = 5000) -> SharedReplay:
    spaces = {
        "observation_space": gym.spaces.Discrete(states),
        "action_space": gym.spaces.Discrete(actions),
    }
    return SharedReplay(SimpleNamespace(**spaces), buffer_size=buffer_size)


def bad_behavior(count: int, *, known: bool = True) -> list[Transition]:
    """In state 0, action 0 ends with 0.6, and action 1 leads to state 1.

    There, action 0 pays 1, and action 1, which is taken in 95 %, pays 0.
    """
    rng = np.random.default_rng(0)
    steps = []
    for _ in range(count):
        first = int(rng.integers(2))
        log_prob = math.log(0.5) if known else math.nan
        steps.append(
            Transition(
                0, first, 0.0 if first else 0.6, 1 if first else 2, not first, False, log_prob
            )
        )
        if first:
            second = int(rng.random() < 0.95)
            log_prob = math.log(0.95 if second else 0.05) if known else math.nan
            steps.append(Transition(1, second, float(not second), 2, True, False, log_prob))
    return steps


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_values_are_right_if_others_act_badly(n_steps: int, known: bool) -> None:
    learner = DQN("it", replay=memory(3), n_steps=n_steps)
    for step in bad_behavior(1500, known=known):
        learner.step(step)
    assert learner.values(0) == pytest.approx([0.6, 0.99], abs=0.1)
    assert learner.values(1) == pytest.approx([1.0, 0.0], abs=0.1)


def test_uncorrected_returns_learn_the_values_of_those_who_act() -> None:
    learner = DQN("it", replay=memory(3), n_steps=3, corrected=False)
    for step in bad_behavior(1500):
        learner.step(step)
    assert learner.values(0) == pytest.approx([0.6, 0.05], abs=0.1)


def exact_values(rewards: Any, following: Any, gamma: float) -> Any:
    """Value iteration for a deterministic task; a next state of -1 ends the episode."""
    values = np.zeros(rewards.shape)
    for _ in range(200):
        values = rewards + gamma * np.where(following >= 0, values.max(1)[following], 0.0)
    return values


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_values_of_small_tasks_are_exact_whoever_acts(seed: int, double: bool) -> None:
    """Five states, three actions, a behavior that prefers one action in each state, n = 4."""
    rng = np.random.default_rng(seed)
    gamma = 0.8
    rewards = rng.uniform(-1, 1, (5, 3))
    following = rng.integers(-1, 5, (5, 3))
    behavior = rng.dirichlet([0.5] * 3, size=5) * 0.9 + 0.1 / 3
    options: dict[str, Any] = {
        "hidden": (),
        "learning_rate": 0.02,
        "gamma": gamma,
        "sync_every": 50,
        "learning_starts": 100,
    }
    learner = DQN(
        "it", replay=memory(5, 3, 3000), n_steps=4, double=double, train_freq=1, **options
    )
    state = int(rng.integers(5))
    for _ in range(3000):
        action = int(rng.choice(3, p=behavior[state]))
        then = int(following[state, action])
        log_prob = float(np.log(behavior[state, action]))
        learner.step(
            Transition(
                state,
                action,
                float(rewards[state, action]),
                max(then, 0),
                then < 0,
                False,
                log_prob,
            )
        )
        state = int(rng.integers(5)) if then < 0 else then
    found = np.array([learner.values(each) for each in range(5)])
    assert found == pytest.approx(exact_values(rewards, following, gamma), abs=0.08)


def test_members_of_stable_baselines3_act_and_dqns_learn_the_right_values() -> None:
    """A model of TD3 has no log-probabilities, so traces are cut.

    It acts by the sign of its action, or at random.
    """
    model_task = SimpleNamespace(
        observation_space=gym.spaces.Box(0, 1, (2,), np.float32),
        action_space=gym.spaces.Box(-1, 1, (1,), np.float32),
    )
    actor = SB3Learner(
        "actor", "td3", replay=SharedReplay(model_task, buffer_size=10), total_steps=100
    )
    act = esbas.loop.acting(actor.policy())
    learner = DQN(
        "it", replay=memory(2), n_steps=3, hidden=(), learning_rate=0.01, learning_starts=50
    )
    rng = np.random.default_rng(0)
    unknown = 0
    for _ in range(600):
        # action 1 is right in state 1, where it pays 1; the reward is known one step later
        for state in (0, 1):
            chosen, log_prob = act(np.eye(2, dtype=np.float32)[state], rng)
            unknown += math.isnan(log_prob)
            action = int(chosen[0] > 0) if rng.random() < 0.4 else int(rng.random() < 0.2)
            learner.step(
                Transition(state, action, float(state and action), 1, bool(state), False, log_prob)
            )
    assert unknown == 1200
    assert learner.values(0) == pytest.approx([0.99, 0.99], abs=0.1)
    assert np.isnan(learner.replay.state_dict()["log_probs"]).all()


@pytest.mark.parametrize(
    ("probability", "log_prob", "expected"),
    [
        (1.0, 0.0, 0.9),
        (1.0, math.log(0.05), 0.9),
        (0.5, math.log(0.8), 0.9 * 0.5 / 0.8),
        (0.0, -1.0, 0.0),
        (1.0, math.nan, 0.0),
    ],
)
def test_trace_coefficients(probability: float, log_prob: float, expected: float) -> None:
    assert formulas.trace_coefficient(probability, log_prob, 0.9) == pytest.approx(expected)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([-1.0, 0.0, 2.0]), min_size=1, max_size=5), st.integers(0, 99))
def test_the_expected_value_is_a_mean_over_the_best_actions(
    choosers: list[float], seed: int
) -> None:
    values = np.random.default_rng(seed).normal(size=(len(choosers), 1))
    expected, best, ties = formulas.expected_value(values, np.array(choosers)[:, None], 0)
    chosen = [
        value
        for value, chooser in zip(values[:, 0], choosers, strict=True)
        if chooser == max(choosers)
    ]
    assert (best, ties) == (max(choosers), len(chosen))
    assert expected == pytest.approx(np.mean(chosen))


@pytest.mark.parametrize("action", [0, 1])
def test_an_undefined_value_stays_undefined(action: int) -> None:
    choosers = np.array([[1.0], [1.0]])
    choosers[action] = math.nan
    assert math.isnan(formulas.expected_value(np.ones((2, 1)), choosers, 0)[0])
    assert math.isnan(formulas.huber(math.nan))


@pytest.mark.parametrize(
    ("error", "loss", "slope"),
    [(0.5, 0.125, 0.5), (-1.0, 0.5, -1.0), (-3.0, 2.5, -1.0), (4.0, 3.5, 1.0)],
)
def test_the_huber_loss(error: float, loss: float, slope: float) -> None:
    assert formulas.huber(error) == loss
    assert formulas.huber_slope(error) == slope


@pytest.mark.parametrize("decay", [-0.1, 1.1])
def test_the_decay_of_traces_is_checked(decay: float) -> None:
    with pytest.raises(InvalidValueError, match="`trace_decay` must be between 0 and 1, but got "):
        DQN("it", replay=memory(2), trace_decay=decay)
