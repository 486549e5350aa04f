"""The bandit of Agent57: by hand, and its probabilities."""

import numpy as np
import pytest

from esbas.bandits import Agent57
from esbas.errors import InvalidValueError


def test_the_index_by_hand_on_a_window():
    bandit = Agent57(2, window=3, epsilon=0.0)
    # the first round leaves the window
    for arm, reward in [(1, 9.0), (0, 1.0), (1, 0.5), (0, 0.0)]:
        bandit.update(arm, reward)
    assert bandit.indices().tolist() == pytest.approx([0.5 + 0.5**0.5, 0.5 + 1.0])  # n = 2 and 1
    assert bandit.choose() == 1
    bandit.spread = 10.0
    assert bandit.indices().tolist() == pytest.approx([0.5 + 10 * 0.5**0.5, 0.5 + 10.0])


def test_arms_without_a_pull_in_the_window_go_first():
    bandit = Agent57(3, window=2, epsilon=1.0, rng=np.random.default_rng(0))
    assert [bandit.choose(), bandit.propensity(0), bandit.propensity(1)] == [0, 1.0, 0.0]
    for arm in (0, 1, 2):
        assert bandit.choose() == arm
        bandit.update(arm, 1.0)
    assert bandit.choose() == 0  # its only round has left the window


def test_half_of_the_choices_are_random_and_propensities_say_so():
    bandit = Agent57(4, beta=0.0, rng=np.random.default_rng(1))
    for arm in range(4):
        bandit.update(arm, float(arm == 2))
    counts = np.bincount([bandit.choose() for _ in range(4000)], minlength=4)
    expected = [bandit.propensity(arm) for arm in range(4)]
    assert expected == [0.125, 0.125, 0.625, 0.125]
    assert counts / 4000 == pytest.approx(expected, abs=0.03)
    assert [bandit.propensity(arm, [0, 2]) for arm in (0, 2)] == [0.25, 0.75]


@pytest.mark.parametrize("bad", [{"window": 0}, {"beta": -1.0}, {"epsilon": 1.5}])
def test_invalid_parameters_are_refused(bad):
    with pytest.raises(InvalidValueError):
        Agent57(2, **bad)
