import numpy as np
import pytest

from esbas import ESBAS, SSBAS, Trajectory, TrajectorySet, Transition, run
from esbas.errors import InvalidValueError
from esbas.learners import TabularQ
from esbas.learners.tabular.q_learning import q_update
from esbas.testing import Corridor, OneStep, check_learner


def learner(**changes):
    return TabularQ(
        "q",
        **(
            {"states": 3, "actions": 2, "learning_rate": 0.5, "gamma": 0.9, "epsilon": 0.1}
            | changes
        ),
    )


def test_the_update_by_hand():
    assert q_update(2.0, 0.25, 1.0, 0.5, 4.0) == 2.25  # 2 + (1 + 2 - 2) / 4


def test_steps_by_hand():
    q = learner()
    q.step(Transition(0, 1, 1.0, 1, False, False))
    assert q.table.tolist() == [[0, 0.5], [0, 0], [0, 0]]  # 0 + (1 + 0.9 * 0 - 0) / 2
    q.step(Transition(1, 0, 0.0, 0, False, False))
    assert q.table[1].tolist() == pytest.approx([0.225, 0])  # (0 + 0.9 * 0.5) / 2
    q.step(Transition(0, 1, 2.0, 1, True, False))  # terminal: no bootstrap
    assert q.table[0].tolist() == pytest.approx([0, 1.25])  # 0.5 + (2 - 0.5) / 2
    q.step(Transition(0, 1, 2.0, 1, False, True))  # truncated: the next value counts
    assert q.table[0].tolist() == pytest.approx([0, 1.72625])  # 1.25 + (2 + 0.9 * 0.225 - 1.25) / 2


def test_schedules_follow_the_episode():
    q = learner(learning_rate=lambda episode: 1 / episode, epsilon=lambda episode: 0.5 / episode)
    q.table[0] = [1.0, 0.0]
    assert q.policy().log_probs(np.array([0]), np.array([1])) == pytest.approx(np.log([0.25]))
    q.step(Transition(0, 0, 1.0, 0, True, False))  # rate 1
    assert q.table[0, 0] == 1.0
    q.step(Transition(0, 0, 4.0, 0, True, False))  # rate 1/2
    assert q.table[0, 0] == 2.5
    assert q.policy().log_probs(np.array([0]), np.array([1])) == pytest.approx(
        np.log([0.5 / 3 / 2])
    )


def test_learning_from_a_set_is_stepping_through_what_is_new():
    stepped = learner()
    learnt = learner()
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
    learnt.learn(data)  # nothing is new
    assert np.array_equal(stepped.table, learnt.table)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": 1.0},
        {"learning_rate": lambda episode: 1 / episode, "epsilon": lambda episode: 1 / episode},
    ],
)
def test_the_contract_is_kept(changes):
    check_learner(lambda: learner(**changes), Corridor(3))


@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_it_learns_the_values_of_a_one_step_task(selector):
    q = TabularQ(
        "q", states=1, actions=3, learning_rate=lambda episode: 1 / episode**0.6, epsilon=0.5
    )
    list(run(OneStep((0.2, 0.5, 0.8), noise=0.1), [q], selector(["q"]), episodes=2000))
    assert q.table[0].tolist() == pytest.approx([0.2, 0.5, 0.8], abs=0.1)


@pytest.mark.parametrize(
    "changes", [{"states": 0}, {"actions": 0}, {"gamma": 1.5}, {"gamma": -0.1}]
)
def test_bad_parameters_are_refused(changes):
    with pytest.raises(InvalidValueError, match=r"^`\w+` must be .*, but got .*\.$"):
        learner(**changes)
