"""The exploration of LinearFQI goes by the amount of data, however often it learns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import esbas
from esbas.learner import RandomPolicy
from esbas.learners import LinearFQI
from esbas.testing import Corridor, OneStep


def learner(name="fqi"):
    return LinearFQI(name, lambda seen: np.eye(5)[seen], actions=2)


def epoch(fqi):
    """The k of its exploration 0.6^k."""
    return round(math.log(fqi.policy().epsilon) / math.log(0.6))


def epochs(selector, episodes):
    """The epoch of the learner and of the selector in every episode."""
    fqi = learner()
    run = esbas.run(Corridor(), [fqi], selector, episodes=episodes)
    return [(epoch(fqi), record.epoch) for record in run]


@pytest.mark.parametrize("lengths", [None, [20, 20], [1, 1], [7, 7, 14, 28]], ids=str)
def test_the_epoch_is_the_selectors_in_the_epochs_of_the_paper(lengths):
    assert all(
        own == given for own, given in epochs(esbas.ESBAS(["fqi"], epochs=lengths), episodes=130)
    )


def test_online_it_explores_as_long_as_in_epochs():
    """It learns before every episode: 0.6 to the number of lessons is 0.006 in episode 11."""
    online, batch = (
        [own for own, _ in epochs(selector, episodes=130)]
        for selector in (esbas.SSBAS(["fqi"]), esbas.ESBAS(["fqi"]))
    )
    assert online[:10] == [0, 1, 2, 2, 3, 3, 3, 3, 4, 4]
    assert all(0 <= one - other <= 1 for one, other in zip(online, batch, strict=True))
    assert 0.6 ** online[10] == pytest.approx(0.6**4)


def test_learning_again_from_the_same_data_changes_nothing():
    fqi = learner()
    data = esbas.TrajectorySet()
    data.append(
        esbas.play(
            Corridor(), RandomPolicy(Corridor().action_space), rng=np.random.default_rng(0), seed=0
        )
    )
    for _ in range(5):
        fqi.learn(data)
    assert epoch(fqi) == 1


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20))
def test_the_epoch_counts_the_doublings_since_the_first_lesson(steps):
    fqi = LinearFQI("fqi", lambda seen: np.ones(1), actions=3)
    data, rng = esbas.TrajectorySet(), np.random.default_rng(0)
    policy = RandomPolicy(OneStep().action_space)
    for step in steps:
        for _ in range(step):
            data.append(esbas.play(OneStep(), policy, rng=rng, seed=0))
        fqi.learn(data)
        doublings = max(k for k in range(20) if steps[0] * 2**k <= len(data))
        assert epoch(fqi) == 1 + doublings


def test_a_member_that_joins_late_begins_with_exploration():
    run = esbas.run(Corridor(), [learner("old")], esbas.SSBAS(["old"]), episodes=100)
    for _ in range(60):
        next(run)
    new = learner("new")
    run.add(new)
    next(run)
    assert epoch(new) == 1


def test_the_epoch_is_saved(tmp_path):
    fqi = learner()
    run = esbas.run(Corridor(), [fqi], esbas.SSBAS(["fqi"]), episodes=20)
    for _ in range(9):
        next(run)
    run.save(tmp_path / "run")
    again = learner()
    esbas.resume(tmp_path / "run", Corridor(), [again], esbas.SSBAS(["fqi"]))
    assert epoch(again) == epoch(fqi) == again.epoch == 4
