"""The check must find every kind of broken learner."""

from functools import partial

import numpy as np
import pytest

from esbas.errors import ContractError, EsbasError
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor, check_learner


class Learner(TabularQ):
    def __init__(self):
        super().__init__("q", states=5, actions=2, epsilon=0.4)


class Wide(TabularQ):
    def __init__(self):
        super().__init__("q", states=6, actions=2)


class Moody(Learner):
    """Its policy changes with every question."""

    def policy(self):
        self.table[:, 1] += 0.5 - self.table[:, 1]
        self.table[:, 0] = 1 - self.table[:, 0]
        return super().policy()


class Undecided(Learner):
    stationary = None


class Lazy(Learner):
    """Says that it never learns, but does."""

    stationary = True


class Copyist(Learner):
    """Cannot load what it saved."""

    def load_state_dict(self, state):
        pass


class Halved(Learner):
    load_state_dict = property()


class Pickled(Learner):
    def state_dict(self):
        return {"self": object()}


class Lucky(Learner):
    """Learns something else each time."""

    def step(self, transition):
        self.table[:] = np.random.default_rng().normal(size=self.table.shape)


class Picky(Learner):
    def learn(self, data):
        if self._episode > len(data):
            raise ValueError("nothing is new")
        super().learn(data)


class Greedy(Learner):
    def learn(self, data):
        super().learn(data)
        data.append(data[0])


class Twisted(Learner):
    """Its policy is changed by one method."""

    def policy(self):
        policy = super().policy()
        twist(policy)
        return policy


def twist(policy):
    raise NotImplementedError


def outside(policy):
    policy.act = lambda observation, rng: 2


def by_itself(policy):
    policy.act = lambda observation, rng: int(np.random.default_rng().integers(2))


def too_likely(policy):
    policy.probability = lambda observation, action: 0.75


def negative(policy):
    policy.probability = lambda observation, action: 1.5 - 2 * action


def untrue(policy):
    policy.probability = lambda observation, action: 0.5


def no_start(policy):
    policy.start = lambda now: None


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        (Wide, "raised SpaceError: the observation_space of learner 'q'"),
        (Undecided, "stationary is None"),
        (Halved, "it has one of state_dict and load_state_dict alone"),
        (Moody, "it acted differently"),
        (Lazy, "it is stationary, but acted differently after learning"),
        (Copyist, "a learner that had learnt before that loaded the state acted differently"),
        (Pickled, "raised SaveFileError: plain data and arrays can be saved, but got object"),
        (Lucky, "two that saw the same acted differently"),
        (Picky, "raised ValueError: nothing is new"),
        (Greedy, "the set had 6 trajectories and now has 8"),
    ],
)
def test_a_broken_learner_is_found(learner, told):
    with pytest.raises(ContractError, match=f"^learner 'q' must keep the rule .*, but {told}") as caught:
        check_learner(learner, Corridor())
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, EsbasError)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (outside, "it acted 2, which is not in"),
        (by_itself, "it acted differently with the same generator"),
        (too_likely, r"the probabilities \[0.75, 0.75\] sum to 1.5"),
        (negative, "it told the probabilities"),
        (untrue, r"it took action 0 in [\d.]+% of 2000 draws and told 0.5"),
        (no_start, "raised TypeError"),
    ],
)
def test_a_broken_policy_is_found(change, told, monkeypatch):
    monkeypatch.setitem(globals(), "twist", change)
    with pytest.raises(ContractError, match=f"^learner 'q' must keep the rule .*, but {told}"):
        check_learner(Twisted, Corridor())


def test_a_thing_that_is_no_learner_is_found():
    with pytest.raises(ContractError, match=r"learner 'the learner' must keep the rule .* raised InvalidValueError"):
        check_learner(object, Corridor())


def test_good_learners_pass():
    check_learner(Learner, Corridor())
    check_learner(partial(Constant, "c", lambda seen: 1), Corridor(), seed=3, episodes=2)
