"""Evidence of systems with their own loop, which keep only probabilities of an episode."""

import math

import numpy as np
import pytest

import esbas
from esbas import Evidence, SharedEvidence
from esbas.errors import InvalidValueError
from esbas.learners import Constant
from esbas.testing import Corridor


def test_evidence_of_logged_probabilities():
    evidence = Evidence.from_log_probs({"a": [-0.1, -0.2], "b": [-1.0, -2.0]}, arm="b", value=3.0)
    np.testing.assert_array_equal(evidence.log_probs("a"), [-0.1, -0.2])
    np.testing.assert_array_equal(evidence.behavior_log_probs, [-1.0, -2.0])
    assert (evidence.arm, evidence.value, len(evidence.trajectory)) == ("b", 3.0, 2)
    assert evidence.log_probs("c") is None


def test_the_probabilities_of_the_arm_that_acted_may_be_unknown():
    evidence = Evidence.from_log_probs({"a": [-0.1]}, arm="b", value=0.0)
    assert np.isnan(evidence.behavior_log_probs).all()


@pytest.mark.parametrize(
    "log_probs", [{}, {"a": [-1.0], "b": [-1.0, -2.0]}, {"a": []}, {"a": -1.0}, {"a": [[-1.0]]}]
)
def test_every_arm_has_one_number_per_action(log_probs):
    with pytest.raises(InvalidValueError):
        Evidence.from_log_probs(log_probs, arm="a", value=0.0)


def test_a_logged_episode_counts_as_the_same_episode_in_a_run_counts():
    """Two arms with half and all of the probability: weights of the balance heuristic by hand."""
    selector = SharedEvidence("ab", epochs=[10])
    for arm, value, halves in (("a", 1.0, 1), ("b", 0.0, 2)):
        logged = {"a": [0.0], "b": [-halves * math.log(2)]}
        choice = selector.ask(among=[arm])
        selector.tell(choice, value, evidence=Evidence.from_log_probs(logged, arm=arm, value=value))
    weights = np.array([1 / (0.5 + 0.25), 1 / (0.5 + 0.125)])  # of arm a: p_a / (p_a / 2 + p_b / 2)
    explained = selector.explain()["a"]
    assert explained["value"] == pytest.approx(weights[0] / weights.sum())
    assert explained["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


class Softmax:
    """The policy of somebody's own: it prefers to go right."""

    def __init__(self, preference):
        weights = np.exp([0.0, preference])
        self.probabilities = weights / weights.sum()

    def act(self, observation, rng):
        return int(rng.random() < self.probabilities[1])

    def log_probs(self, observations, actions):
        return np.log(self.probabilities)[np.asarray(actions)]


def test_softmax_policies_share_their_episodes():
    arms = {"slow": 1.0, "fast": 1.3}
    selector = SharedEvidence(arms, epochs=[50])
    learners = [Constant(name, Softmax(preference)) for name, preference in arms.items()]
    list(esbas.run(Corridor(4), learners, selector, episodes=40))
    for row in selector.explain().values():
        assert row["effective"] > row["pulls"] + 5
