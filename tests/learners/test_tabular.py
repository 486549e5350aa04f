"""Double Q-learning, Q(λ), expected SARSA, and what all tabular learners have in common."""

import numpy as np
import pytest

from esbas import SSBAS, Trajectory, TrajectorySet, Transition, run
from esbas.errors import InvalidValueError
from esbas.learners import DoubleQ, ExpectedSARSA, QLambda, TabularQ
from esbas.learners.tabular.double_q import double_value
from esbas.learners.tabular.expected_sarsa import expected_value
from esbas.learners.tabular.q_lambda import traces_after
from esbas.testing import Corridor, OneStep, check_learner

ALL = [TabularQ, DoubleQ, QLambda, ExpectedSARSA]


def made(kind, **changes):
    return kind(
        "learner",
        **(
            {"states": 4, "actions": 2, "learning_rate": 0.5, "gamma": 0.9, "epsilon": 0.2}
            | changes
        ),
    )


def random_steps(seed, count=60):
    """Yield the steps of random episodes with four observations.

    Rewards are whole numbers, so that values are often tied at first.
    """
    rng = np.random.default_rng(seed)
    seen = 0
    for _ in range(count):
        following = int(rng.integers(4))
        action = int(rng.integers(2))
        reward = float(rng.integers(-1, 2))
        terminated = rng.random() < 0.1
        truncated = rng.random() < 0.1
        yield Transition(seen, action, reward, following, terminated, truncated)
        seen = int(rng.integers(4)) if terminated or truncated else following


# Formulas


def test_the_other_table_evaluates_the_action():
    assert double_value(np.array([1.0, 3.0, 2.0]), np.array([9.0, 4.0, 8.0])) == 4.0


def test_the_expected_value_by_hand():
    assert expected_value(np.array([0.0, 4.0]), 0.5) == 3.0  # 0.5 * 4 + 0.5 * 2
    assert expected_value(np.array([4.0, 4.0, 1.0]), 0.3) == pytest.approx(3.7)  # 0.7 * 4 + 0.3 * 3


@pytest.mark.parametrize("seed", range(5))
def test_the_expected_value_is_that_of_the_policy(seed):
    rng = np.random.default_rng(seed)
    learner = made(ExpectedSARSA, epsilon=rng.random())
    learner.table[:] = rng.integers(3, size=(4, 2))
    probabilities = np.exp(learner.policy().log_probs(np.full(2, 1), np.arange(2)))
    assert expected_value(learner.table[1], learner.epsilon()) == pytest.approx(
        probabilities @ learner.table[1]
    )


def test_traces_by_hand():
    cells, traces = traces_after(np.array([5, 3]), np.array([1.0, 0.5]), 7, 0.5)
    assert (cells.tolist(), traces.tolist()) == ([5, 3, 7], [0.5, 0.25, 1.0])
    cells, traces = traces_after(cells, traces, 3, 0.5)  # a trace is replaced, not added to
    assert (cells.tolist(), traces.tolist()) == ([5, 7, 3], [0.25, 0.5, 1.0])
    cells, traces = traces_after(cells, traces, 1, 0.0)  # cut
    assert (cells.tolist(), traces.tolist()) == ([1], [1.0])


# Steps


def test_expected_sarsa_by_hand():
    learner = made(ExpectedSARSA)
    learner.table[1] = [2.0, 1.0]
    learner.step(Transition(0, 1, 1.0, 1, False, False))
    # (1 + 0.9 (0.8 * 2 + 0.2 * 1.5)) / 2
    assert learner.table[0].tolist() == pytest.approx([0, 1.355])
    learner.step(Transition(0, 0, 1.0, 1, True, False))
    assert learner.table[0, 0] == 0.5  # terminated: the next value does not count


def test_q_lambda_by_hand():
    learner = made(QLambda, gamma=1.0, trace_decay=0.5)
    learner.step(Transition(0, 1, 0.0, 1, False, False))
    learner.step(Transition(1, 0, 0.0, 2, False, False))
    # changes its own value by 4, the ones before by 2 and 1
    learner.step(Transition(2, 0, 8.0, 3, True, False))
    assert learner.table.tolist() == [[0, 1], [2, 0], [4, 0], [0, 0]]
    # 2 + (4 - 2) / 2; the traces ended with the episode
    learner.step(Transition(1, 0, 0.0, 2, False, False))
    assert learner.table.tolist() == [[0, 1], [3, 0], [4, 0], [0, 0]]
    learner.step(Transition(2, 1, 2.0, 3, True, False))  # not the best action: the trace is cut
    assert learner.table.tolist() == [[0, 1], [3, 0], [4, 1], [0, 0]]


def test_q_lambda_keeps_streams_apart():
    """Two episodes at the same time give what they give one after the other."""
    steps = [(0, 1, 0.0, 1), (1, 0, 0.0, 0), (0, 1, 4.0, 1)]
    streams = [
        [Transition(s + 2 * k, a, r + k, n + 2 * k, False, False, stream=k) for s, a, r, n in steps]
        for k in range(2)
    ]
    together = made(QLambda)
    in_turn = made(QLambda)
    for pair in zip(*streams, strict=True):
        for transition in pair:
            together.step(transition)
    for transition in (*streams[0], *streams[1]):
        in_turn.step(transition)
    assert np.array_equal(together.table, in_turn.table)
    assert (together.table[[1, 3], 0] > 0).all()  # by their traces


def test_q_lambda_cuts_traces_at_a_truncation():
    """The next episode begins where the truncated one ended, but does not continue it."""
    learner = made(QLambda, gamma=1.0, trace_decay=1.0)
    learner.step(Transition(0, 0, 0.0, 1, False, True))  # truncated at 1
    learner.step(Transition(1, 0, 8.0, 3, True, False))  # changes its own value by 4
    assert learner.table.tolist() == [[0, 0], [4, 0], [0, 0], [0, 0]]


def test_q_lambda_cuts_where_steps_are_missing():
    learner = made(QLambda, gamma=1.0, trace_decay=1.0)
    learner.step(Transition(0, 0, 0.0, 1, False, False))
    learner.step(Transition(2, 0, 8.0, 3, True, False))  # the step from 1 to 2 is missing
    assert learner.table[0, 0] == 0.0


def dense_q_lambda(steps, *, rate, gamma, decay):
    """The textbook's algorithm with a trace for every observation and action."""
    table = np.zeros((4, 2))
    traces = np.zeros((4, 2))
    before = None
    for s, a, reward, following, terminated, truncated, *_ in steps:
        if before != s or table[s, a] != max(table[s]):
            traces[:] = 0.0
        traces *= gamma * decay
        traces[s, a] = 1.0
        error = reward + (0.0 if terminated else gamma * max(table[following])) - table[s, a]
        table += rate * error * np.where(traces >= 1e-3, traces, 0.0)
        before = None if terminated or truncated else following
    return table


@pytest.mark.parametrize("seed", range(5))
def test_q_lambda_equals_the_textbooks_algorithm(seed):
    learner = made(QLambda, trace_decay=0.7)
    for transition in random_steps(seed):
        learner.step(transition)
    np.testing.assert_allclose(
        learner.table, dense_q_lambda(random_steps(seed), rate=0.5, gamma=0.9, decay=0.7), rtol=1e-9
    )


def test_without_traces_it_is_q_learning():
    learners = made(QLambda, trace_decay=0.0), made(TabularQ)
    for transition in random_steps(3):
        for learner in learners:
            learner.step(transition)
    np.testing.assert_allclose(learners[0].table, learners[1].table, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_double_q_updates_one_of_two_tables(seed):
    learner = made(DoubleQ, seed=seed)
    updated = set()
    for s, a, reward, following, terminated, truncated, *rest in random_steps(seed):
        before = learner.tables.copy()
        learner.step(Transition(s, a, reward, following, terminated, truncated, *rest))
        results = []
        for own, other in ((0, 1), (1, 0)):
            best = max(range(2), key=lambda each: before[own, following, each])
            target = reward + (0.0 if terminated else 0.9 * before[other, following, best])
            expected = before.copy()
            expected[own, s, a] += 0.5 * (target - before[own, s, a])
            results.append(bool(np.allclose(learner.tables, expected)))
        assert any(results)
        updated.add(tuple(results))
        np.testing.assert_allclose(learner.table, learner.tables.mean(axis=0))
    assert {(True, False), (False, True)} <= updated


def test_double_q_does_not_overestimate_noise():
    """All actions are worth 0, with noise.

    The maximum of noisy estimates is above 0, the other table's value is not.
    """
    rng = np.random.default_rng(0)
    kinds = (TabularQ, DoubleQ)
    learners = [
        kind("learner", states=2, actions=10, learning_rate=0.1, gamma=1.0) for kind in kinds
    ]
    for _ in range(3000):
        for learner in learners:
            learner.step(Transition(1, int(rng.integers(10)), rng.normal(), 0, True, False))
            learner.step(Transition(0, 0, 0.0, 1, False, False))
    assert learners[0].table[0, 0] > 0.2
    assert abs(learners[1].table[0, 0]) < 0.15


# All of them


@pytest.mark.parametrize("kind", [DoubleQ, QLambda, ExpectedSARSA])
def test_the_contract_is_kept(kind):
    check_learner(
        lambda: made(kind, states=3, epsilon=[0.9, 0.1, 20]), Corridor(3), episodes=3, draws=300
    )


@pytest.mark.parametrize("kind", ALL)
def test_learning_from_a_set_is_stepping_through_what_is_new(kind):
    stepped = made(kind)
    learnt = made(kind)
    data = TrajectorySet()
    for rewards in ([1.0, 0.0], [0.0, 2.0], [3.0]):
        steps = len(rewards)
        data.append(
            Trajectory(
                np.arange(steps + 1) % 3, np.arange(steps) % 2, np.array(rewards), True, False
            )
        )
        learnt.learn(data)
        for transition in data[-1].transitions():
            stepped.step(transition)
    assert np.array_equal(stepped.table, learnt.table)


@pytest.mark.parametrize("kind", ALL)
def test_it_learns_the_values_of_a_one_step_task(kind):
    learner = kind(
        "q", states=1, actions=3, learning_rate=lambda episode: 1 / episode**0.6, epsilon=0.5
    )
    list(run(OneStep((0.2, 0.5, 0.8), noise=0.1), [learner], SSBAS(["q"]), episodes=1000))
    assert learner.table[0].tolist() == pytest.approx([0.2, 0.5, 0.8], abs=0.12)


@pytest.mark.parametrize("kind", ALL)
def test_the_initial_value_is_that_of_all_actions(kind):
    learner = made(kind, initial=2.0)
    assert (learner.table == 2.0).all()
    learner.step(Transition(0, 1, 1.0, 0, True, False))
    assert learner.table[0].tolist() == pytest.approx([2.0, 1.75 if kind is DoubleQ else 1.5])


def test_exploration_can_decay_with_the_transitions():
    learner = made(TabularQ, epsilon=[1.0, 0.2, 4])
    found = []
    for _ in range(6):
        found.append(learner.metrics()["epsilon"])
        learner.step(Transition(0, 0, 0.0, 0, False, False))
    assert found == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])
    learner.table[0] = [1.0, 0.0]
    assert learner.policy().log_probs(np.zeros(1, int), np.ones(1, int)) == pytest.approx(
        np.log([0.1])
    )


@pytest.mark.parametrize("kind", ALL)
def test_metrics_are_means_over_the_last_updates(kind):
    learner = made(kind)
    assert learner.metrics() == {"epsilon": 0.2}
    for _ in range(200):
        learner.step(Transition(0, 0, 4.0, 0, True, False))
    assert learner.metrics() == {
        "epsilon": 0.2,
        "mean Q": pytest.approx(4.0),
        "TD error": pytest.approx(0.0, abs=1e-6),
    }
    learner.step(Transition(1, 1, 8.0, 0, True, False))
    assert learner.metrics()["TD error"] == pytest.approx(0.08)  # one of a hundred


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (TabularQ, {"learning_rate": 0.0}),
        (TabularQ, {"initial": np.inf}),
        (TabularQ, {"epsilon": 1.5}),
        (QLambda, {"trace_decay": 1.1}),
    ],
)
def test_bad_parameters_are_refused(kind, changes):
    with pytest.raises(InvalidValueError, match=r"^`\w+` must be .*, but got .*\.$"):
        made(kind, **changes)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        (TabularQ, {"table": np.zeros((4, 3))}),
        (TabularQ, {"episode": -1}),
        (TabularQ, {"recent": np.zeros(3)}),
        (DoubleQ, {"tables": np.zeros((4, 2))}),
        (
            QLambda,
            {
                "streams": [
                    {"stream": 0, "expected": 1, "cells": np.array([99]), "traces": np.ones(1)}
                ]
            },
        ),
        (
            QLambda,
            {
                "streams": [
                    {"stream": 0, "expected": 1, "cells": np.array([1]), "traces": np.ones(2)}
                ]
            },
        ),
    ],
)
def test_a_damaged_state_is_refused(kind, damage):
    learner = made(kind)
    with pytest.raises(InvalidValueError, match=r"learner 'learner'.*go back to an earlier copy"):
        learner.load_state_dict(learner.state_dict() | damage)
