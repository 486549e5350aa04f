"""The check must find every kind of broken learner."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import esbas
from esbas.errors import ContractError
from esbas.learner import RandomPolicy
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor, check_learner, check_objective, check_policy


class Learner(TabularQ):
    def __init__(self):
        super().__init__("q", states=5, actions=2, epsilon=0.4)


class Wide(TabularQ):
    def __init__(self):
        super().__init__("q", states=6, actions=2)


class Moody(Learner):
    """Its policy changes with every call of `policy`."""

    def policy(self):
        self.table[:, 1] += 0.5 - self.table[:, 1]
        self.table[:, 0] = 1 - self.table[:, 0]
        return super().policy()


class Undecided(Learner):
    stationary = None


class Lazy(Learner):
    """Declares itself stationary, but learns."""

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
    """Learns to prefer the other action each time that one is created."""

    created = 0

    def __init__(self):
        super().__init__()
        Lucky.created += 1
        self._preferred = Lucky.created % 2

    def step(self, transition):
        self.table[:, self._preferred] = 1.0


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
    """Its policy is changed by `twist`."""

    def policy(self):
        return twist(super().policy())


def twist(policy):
    raise NotImplementedError


def outside(policy):
    return SimpleNamespace(act=lambda observation, rng: 2)


def by_itself(policy):
    return SimpleNamespace(act=lambda observation, rng: int(np.random.default_rng().integers(2)))


def with_log_probs(policy, log_probs):
    """The policy with other log-probabilities, without `act_with_log_prob`.

    It would contradict them.
    """
    return SimpleNamespace(
        act=policy.act, log_probs=lambda observations, actions: np.array(log_probs(actions), float)
    )


def too_likely(policy):
    return with_log_probs(policy, lambda actions: [math.log(0.75)] * len(actions))


def undefined(policy):
    return with_log_probs(policy, lambda actions: [math.nan] * len(actions))


def untrue(policy):
    return with_log_probs(policy, lambda actions: [math.log(0.5)] * len(actions))


def too_short(policy):
    return with_log_probs(policy, lambda actions: [0.0])


def contradicting(policy):
    return SimpleNamespace(
        act=policy.act,
        log_probs=policy.log_probs,
        act_with_log_prob=lambda observation, rng: (policy.act(observation, rng), math.log(0.5)),
    )


def other_draws(policy):
    return SimpleNamespace(
        act=policy.act, act_with_log_prob=lambda observation, rng: (rng.integers(9) * 0 + 1, 0.0)
    )


def other_number(policy):
    def act_with_log_prob(observation, rng):
        action = policy.act(observation, rng)
        rng.random()
        return action, 0.0

    return SimpleNamespace(act=policy.act, act_with_log_prob=act_with_log_prob)


def no_start(policy):
    return SimpleNamespace(act=policy.act, start=lambda now: None)


def no_method(policy):
    return SimpleNamespace(act=policy.act, log_probs=None)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Wide, "raised SpaceError: The observation_space of learner 'q'"),
        (Undecided, "stationary is None"),
        (Halved, "it has only one of state_dict and load_state_dict"),
        (Moody, "it acted differently"),
        (Lazy, "it is stationary, but acted differently after learning"),
        (Copyist, "a learner that had learnt before that loaded the state acted differently"),
        (Pickled, "raised SaveFileError: Plain data and arrays can be saved, but got object"),
        (Lucky, "two learners that saw the same data acted differently"),
        (Picky, "raised ValueError: nothing is new"),
        (Greedy, "the set had 6 trajectories and now has 8"),
    ],
)
def test_a_broken_learner_is_found(learner, message):
    with pytest.raises(ContractError, match=f"^Learner 'q' must keep the rule .*, but {message}"):
        check_learner(learner, Corridor())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (outside, "it took action 2, which is not in"),
        (by_itself, "it acted differently with the same generator"),
        (too_likely, r"the probabilities \[0.75, 0.75\] have the sum 1.5"),
        (undefined, r"log_probs returned \[nan"),
        (untrue, r"it took action 0 in [\d.]+% of 2000 draws, with probability 0.5"),
        (too_short, r"log_probs returned an array of shape \(1,\) for \d+ actions"),
        (contradicting, r"act_with_log_prob returned -0.69\d+ for \d, log_probs -"),
        (other_draws, r"act_with_log_prob took .* where act took"),
        (other_number, "act_with_log_prob drew more or fewer random numbers than act"),
        (no_method, "log_probs is None"),
        (no_start, "raised TypeError"),
    ],
)
def test_a_broken_policy_is_found(change, message, monkeypatch):
    monkeypatch.setitem(globals(), "twist", change)
    with pytest.raises(ContractError, match=f"^Learner 'q' must keep the rule .*, but {message}"):
        check_learner(Twisted, Corridor())


def test_an_object_that_is_not_a_learner_is_found():
    with pytest.raises(
        ContractError, match=r"Learner 'the learner' must keep the rule .* raised InvalidValueError"
    ):
        check_learner(object, Corridor())


def test_policies_can_be_checked_alone():
    check_policy(lambda: RandomPolicy(Corridor().action_space), Corridor())
    check_policy(Learner().policy, Corridor())
    with pytest.raises(
        ContractError, match=r"SimpleNamespace must keep the rule .*, but it took action 2"
    ):
        check_policy(lambda: outside(None), Corridor())


def test_objectives_can_be_checked():
    check_objective(esbas.total_return(), Corridor())
    check_objective(len, Corridor())
    with pytest.raises(
        ContractError, match=r"Objective '<lambda>' must keep the rule .* raised InvalidValueError"
    ):
        check_objective(lambda trajectory: math.nan, Corridor())
    values = iter(range(100))
    with pytest.raises(ContractError, match=r"the value of one trajectory was 0.0, then 1.0"):
        check_objective(lambda trajectory: next(values), Corridor())


def test_good_learners_pass():
    check_learner(Learner, Corridor())
    check_learner(partial(Constant, "c", lambda seen: 1), Corridor(), seed=3, episodes=2)
