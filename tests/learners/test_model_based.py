"""Tables with a model: what is counted, how it plans, prioritized sweeping and R-max."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esbas
from esbas import Transition
from esbas.errors import EsbasError, InvalidValueError
from esbas.experiments.envs import RiverSwim
from esbas.learners import PrioritizedSweeping, RMax
from esbas.learners.tabular.model import Model, Queue, backup, observe, pop, push
from esbas.testing import Corridor, check_learner

KINDS = [PrioritizedSweeping, RMax]


def made(kind, **changes):
    return kind("learner", **({"states": 4, "actions": 2, "gamma": 0.9} | changes))


def random_steps(seed, count=200, states=4):
    """Yield the steps of random episodes of a random environment."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(states, 0.5), size=(states, 2))
    rewards = rng.normal(size=(states, 2))
    ends = rng.random((states, 2)) * 0.2
    seen = 0
    for _ in range(count):
        action = int(rng.integers(2))
        following = int(rng.choice(states, p=probabilities[seen, action]))
        terminated = bool(rng.random() < ends[seen, action])
        truncated = bool(rng.random() < 0.05)
        yield Transition(
            seen, action, float(rewards[seen, action]), following, terminated, truncated
        )
        seen = int(rng.integers(states)) if terminated or truncated else following


def value_iteration(steps, *, gamma, known_after=1, unknown=0.0, states=4):
    """The values of the counted model, by brute force over dictionaries."""
    visits = np.zeros((states, 2))
    rewards = np.zeros((states, 2))
    following = np.zeros((states, 2, states))
    for step in steps:
        visits[step.observation, step.action] += 1
        rewards[step.observation, step.action] += step.reward
        if not step.terminated:
            following[step.observation, step.action, step.next_observation] += 1
    table = np.full((states, 2), unknown)
    known = visits >= known_after
    for _ in range(3000):
        planned = (rewards + gamma * following @ table.max(axis=1)) / np.maximum(visits, 1)
        table = np.where(known, planned, unknown)
    return table


# The model


def counted(steps, states=4):
    model = Model.empty(states, 2)
    for step in steps:
        model = model.with_room()
        cell = step.observation * 2 + step.action
        observe(model, cell, step.reward, step.next_observation, step.terminated)
    return model


def test_a_backup_by_hand():
    model = counted(
        [
            Transition(0, 1, 1.0, 2, False, False),
            Transition(0, 1, 1.0, 2, False, True),  # truncated: the next value counts
            Transition(0, 1, 1.0, 3, False, False),
            Transition(0, 1, 5.0, 3, True, False),  # terminated: there is no next value
        ]
    )
    table = np.array([[0.0, 0.0], [0.0, 0.0], [4.0, 8.0], [1.0, -1.0]])
    # 8 / 4 + 0.5 * (2 * 8 + 1 * 1 + 1 * 0) / 4
    assert backup(model, table, 0.5, 1) == pytest.approx(2.0 + 0.5 * 17 / 4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 300), st.integers(2, 40))
def test_the_model_counts_what_happened(seed, count, states):
    steps = list(random_steps(seed, count, states))
    model = counted(steps, states)
    wanted = {}
    for step in steps:
        if not step.terminated:
            key = step.observation * 2 + step.action, step.next_observation
            wanted[key] = wanted.get(key, 0) + 1
    saved = model.state_dict()
    edges = zip(saved["cells"].tolist(), saved["states"].tolist(), strict=True)
    assert dict(zip(edges, saved["counts"].tolist(), strict=True)) == wanted
    assert saved["visits"].sum() == count


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=40))
def test_the_queue_returns_what_is_most_urgent(pushed):
    queue = Queue.empty(10)
    wanted = {}
    for cell, priority in pushed:
        push(queue, cell, priority)
        wanted[cell] = max(priority, wanted.get(cell, 0.0))
    found = []
    while queue.size[0]:
        found.append(wanted.pop(pop(queue)))
    assert found == sorted(found, reverse=True)
    assert not wanted


# Learners


def test_prioritized_sweeping_by_hand():
    learner = made(PrioritizedSweeping)
    learner.step(Transition(0, 0, 0.0, 1, False, False))
    learner.step(Transition(1, 1, 0.0, 2, False, False))
    assert not learner.table.any()
    learner.step(Transition(2, 0, 10.0, 3, True, False))
    # The reward reaches the start within one step: 10, 0.9 * 10 and 0.9 * 9.
    assert learner.table[:3] == pytest.approx(np.array([[8.1, 0], [0, 9], [10, 0]]))


def test_planning_steps_are_the_most_backups():
    learner = made(PrioritizedSweeping, planning_steps=2)
    learner.step(Transition(0, 0, 0.0, 1, False, False))
    learner.step(Transition(1, 1, 0.0, 2, False, False))
    learner.step(Transition(2, 0, 10.0, 3, True, False))
    assert learner.table[:3] == pytest.approx(np.array([[0, 0], [0, 9], [10, 0]]))
    # What was left waits for the next step, wherever that is.
    learner.step(Transition(3, 0, 0.0, 3, True, False))
    assert learner.table[0, 0] == pytest.approx(8.1)


@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_the_model(seed):
    steps = list(random_steps(seed))
    learner = made(PrioritizedSweeping, planning_steps=5000)
    for step in steps:
        learner.step(step)
    wanted = value_iteration(steps, gamma=0.9)
    assert learner.table == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_unknown_actions_have_the_highest_value(seed):
    steps = list(random_steps(seed, count=40))
    learner = made(RMax, planning_steps=5000, known_after=4, r_max=3.0)
    for step in steps:
        learner.step(step)
    largest = max(3.0, *(step.reward for step in steps))
    wanted = value_iteration(steps, gamma=0.9, known_after=4, unknown=largest / (1 - 0.9))
    assert learner.table == pytest.approx(wanted, rel=0.01)


def test_a_larger_reward_raises_the_optimism():
    learner = made(RMax, known_after=1)
    learner.step(Transition(0, 0, 0.0, 1, False, False))
    assert learner.table[1].tolist() == pytest.approx([10.0, 10.0])  # 1 / (1 - 0.9)
    assert learner.table[0, 0] == pytest.approx(9.0)
    learner.step(Transition(2, 0, 7.0, 3, True, False))
    assert learner.table[1].tolist() == pytest.approx([70.0, 70.0])
    assert learner.table[0, 0] == pytest.approx(63.0)
    assert learner.table[2, 0] == pytest.approx(7.0)


def test_r_max_goes_where_it_has_not_been():
    """A small reward at the left end tempts those who do not explore over many steps."""
    env = RiverSwim()
    values = {}
    for learner in (
        RMax.for_env(env, name="R-max", known_after=10),
        PrioritizedSweeping.for_env(env, name="sweeping", epsilon=0.1),
    ):
        run = esbas.run(env, [learner], steps=8000, objective="return", seed=1)
        values[learner.name] = np.mean([record.value for record in run][-50:])
    assert values["R-max"] > 3.0
    assert values["sweeping"] < 1.0


def test_the_greedy_policy_of_r_max_takes_what_it_knows():
    learner = made(RMax, known_after=5)
    learner.step(Transition(0, 1, 1.0, 3, True, False))
    rng = np.random.default_rng(0)
    assert {learner.policy().act(0, rng) for _ in range(50)} == {0, 1}  # both are unknown
    assert {learner.greedy_policy().act(0, rng) for _ in range(50)} == {1}
    other = made(RMax)
    other.load_policy_state(learner.policy_state())
    assert {other.greedy_policy().act(0, rng) for _ in range(50)} == {1}


@pytest.mark.parametrize("kind", KINDS)
def test_learners_keep_their_contract(kind):
    check_learner(lambda: made(kind, states=3, epsilon=0.2), Corridor(3), episodes=3, draws=300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("planning_steps", [1, 3])  # few, so that some wait while it is saved
def test_a_saved_learner_continues_as_if_nothing_had_happened(kind, planning_steps):
    steps = list(random_steps(0))
    whole = made(kind, planning_steps=planning_steps)
    first = made(kind, planning_steps=planning_steps)
    for step in steps[:90]:
        whole.step(step)
        first.step(step)
    second = made(kind, planning_steps=planning_steps)
    second.load_state_dict(first.state_dict())
    for step in steps[90:]:
        whole.step(step)
        second.step(step)
    assert np.array_equal(whole.table, second.table)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("model", "cells", np.array([8])),
        ("model", "states", np.array([-1])),
        ("model", "counts", np.array([1, 2])),
        ("model", "visits", np.zeros(3, np.int64)),
        ("queue", "waiting", np.array([1, 1])),
        ("queue", "waiting", np.array([99])),
    ],
)
def test_a_state_that_does_not_fit_is_refused(kind, part, name, value):
    learner = made(kind)
    learner.step(Transition(0, 0, 1.0, 1, False, False))
    before = learner.table.copy()
    state = learner.state_dict()
    state[part][name] = value
    other = made(kind)
    with pytest.raises(EsbasError):
        other.load_state_dict(state)
    assert np.array_equal(other.table, made(kind).table)
    assert np.array_equal(learner.table, before)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (PrioritizedSweeping, {"planning_steps": 0}, "`planning_steps` must be at least 1"),
        (RMax, {"gamma": 1.0}, "`gamma` must be at least 0 and less than 1"),
        (RMax, {"known_after": 0}, "`known_after` must be at least 1"),
        (RMax, {"r_max": float("inf")}, "`r_max` must be finite"),
    ],
)
def test_wrong_options(kind, options, sentence):
    with pytest.raises(InvalidValueError, match=sentence):
        made(kind, **options)


def test_rewards_that_keep_growing_raise_the_optimism_rarely():
    learner = made(RMax)
    raised = set()
    for number in range(1000):
        learner.step(Transition(0, 0, 1.0 + number / 100, 1, False, True))
        raised.add(learner.table[3, 1])
    assert max(raised) >= 10.99 / (1 - 0.9)
    assert len(raised) < 30
