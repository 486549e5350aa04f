"""The interface of the loop: what it passes to policies, learners and selectors, and when."""

import math
import re

import numpy as np
import pytest

import esbas
from doubles import Always, BatchRecorder, Faulty
from esbas import ESBAS, SSBAS, Fixed, LinearThompson, Pick, Selector, Uniform, play, run
from esbas._internal.spaces import Discrete
from esbas.errors import InvalidValueError
from esbas.learners import Constant, EpsilonGreedy, TabularQ
from esbas.testing import Corridor, OneStep


class Points:
    """Three steps; all observations are the same array, which the environment reuses."""

    action_space = Discrete(2)
    observation_space = None

    def reset(self, *, seed=None):
        self._place = np.array([float(seed % 5), 0.0])
        self._steps = 0
        return self._place, {}

    def step(self, action):
        self._steps += 1
        self._place += action
        return self._place, 1.0, self._steps == 3, False, {}


def test_the_order_of_an_episode():
    """Learn if it is time, reset, ask, play, tell."""
    events = []

    class Env(OneStep):
        def reset(self, *, seed=None):
            events.append("reset")
            return super().reset(seed=seed)

        def step(self, action):
            events.append("step")
            return super().step(action)

    class Student(BatchRecorder):
        def learn(self, data):
            events.append("learn")
            super().learn(data)

    class Watched(ESBAS):
        def ask(self, **keywords):
            events.append("ask")
            return super().ask(**keywords)

        def tell(self, choice, value, *, evidence=None):
            events.append("tell")
            super().tell(choice, value, evidence=evidence)

    list(run(Env(), [Student("a")], Watched("a"), episodes=3))
    episode = ["reset", "ask", "step", "tell"]
    assert events == [*episode, "learn", *episode, *episode]


def test_a_selector_can_look_at_the_policies_that_will_act():
    learner = BatchRecorder("a", plan=lambda trainings: trainings % 2)
    seen = []

    class Curious(ESBAS):
        def ask(self, **keywords):
            seen.append(learner.policy().action)
            return super().ask(**keywords)

    episodes = run(OneStep((0.0, 0.0)), [learner], Curious("a"), episodes=15)
    list(episodes)
    assert seen == [trajectory.actions[0] for trajectory in episodes.data.since(0)]


class ByContext(Selector):
    wants = frozenset({"context"})
    contexts = ()

    def pick(self, among, context):
        self.contexts = (*self.contexts, context)
        return Pick(among[0])


def test_the_loop_passes_the_first_observation_as_the_context():
    selector = ByContext("a")
    episodes = run(Points(), [Constant("a", lambda _: 1)], selector, episodes=5)
    list(episodes)
    assert selector.contexts == tuple(
        tuple(each.observations[0].tolist()) for each in episodes.data.since(0)
    )
    assert len(set(selector.contexts)) > 1


def test_a_context_that_is_not_numbers_is_refused():
    with pytest.raises(
        InvalidValueError, match=r"A context must be numbers of any shape, but got .*: flatten it"
    ):
        LinearThompson("ab").ask(context={"speed": 1.0})
    with pytest.raises(InvalidValueError, match="chooses by context, but got none"):
        LinearThompson("ab").ask()


def test_passed_data_are_read_only_and_stored_data_are_copies():
    buffer = np.zeros(1)

    class Vandal(Faulty):
        def act(self, observation, rng):
            if self.name == "writes":
                observation /= 100.0
            return super().act(observation, rng)

        def step(self, transition):
            if self.name == "steps":
                transition.next_observation[:] = 7.0

    episodes = run(
        Points(),
        [Vandal("writes"), Vandal("steps"), Vandal("good")],
        Uniform(["writes", "steps", "good"]),
        episodes=12,
    )
    faults = {(fault.learner, fault.where) for record in episodes for fault in record.faults}
    assert faults == {("writes", "act"), ("steps", "step")}
    assert all(each.observations[:, 1].tolist() == [0.0] * 4 for each in episodes.data.since(0))
    with pytest.raises(ValueError, match="read-only"):
        episodes.data[0].rewards[0] = 3.0

    class Reuser:
        """Writes every action into the same array."""

        def act(self, observation, rng):
            buffer[0] += 1
            return buffer

    trajectory = play(Points(), Reuser(), rng=np.random.default_rng(0), seed=0)
    assert trajectory.actions.tolist() == [[1.0], [2.0], [3.0]]


class Counting:
    """Counts its actions within an episode, in the object that `start` returns."""

    def start(self):
        return Counter()

    def act(self, observation, rng):
        raise AssertionError("the object that `start` returned acts")


class Counter:
    def __init__(self):
        self.count = 0

    def act(self, observation, rng):
        self.count += 1
        return self.count % 2


def test_play_and_the_loop_act_with_what_start_returns():
    for _ in range(2):  # every episode starts with a new object
        assert play(
            Points(), Counting(), rng=np.random.default_rng(0), seed=0
        ).actions.tolist() == [1, 0, 1]
    episodes = run(Points(), [Constant("a", Counting())], Fixed("a"), episodes=2)
    list(episodes)
    assert [each.actions.tolist() for each in episodes.data.since(0)] == [[1, 0, 1]] * 2


def test_a_start_without_a_result_lets_the_policy_act():
    policy = Faulty("a", action=1)
    assert play(Points(), policy, rng=np.random.default_rng(0), seed=0).actions.tolist() == [
        1,
        1,
        1,
    ]
    assert policy.calls["start"] == 1


def test_values_are_computed_once_per_step():
    calls = []

    def values(observation):
        calls.append(observation)
        return np.array([0.0, 1.0])

    trajectory = play(Points(), EpsilonGreedy(values, 0.5), rng=np.random.default_rng(0), seed=0)
    assert len(calls) == 3
    assert set(np.round(np.exp(trajectory.log_probs), 12)) <= {0.25, 0.75}


class Judge(Uniform):
    """Keeps the evidence of every episode."""

    wants = frozenset({"trajectory", "log_probs"})

    def __init__(self, arms, **options):
        super().__init__(arms, **options)
        self.evidence = []

    def observe(self, choice, value, *, note, evidence):
        log_probs = {arm: evidence.log_probs(arm) for arm in self.arms}
        self.evidence.append((choice, value, evidence, log_probs))


def tables():
    return [
        TabularQ(name, states=5, actions=2, learning_rate=0.5, epsilon=epsilon)
        for name, epsilon in (("bold", 0.8), ("shy", 0.2))
    ]


def test_evidence_has_the_log_probs_under_every_frozen_policy():
    learners = [*tables(), Constant("mute", Always(1))]
    selector = Judge(["bold", "shy", "mute"], epochs=[4], seed=3)
    episodes = run(Corridor(), learners, selector, episodes=28, objective=esbas.episode_length())
    list(episodes)
    assert len(selector.evidence) == 28
    for (choice, value, evidence, log_probs), trajectory in zip(
        selector.evidence, episodes.data.since(0), strict=True
    ):
        assert evidence.trajectory is trajectory
        assert (
            (evidence.arm, evidence.value) == (choice.arm, value) == (choice.arm, -len(trajectory))
        )
        assert log_probs["mute"] is None  # its policy has no log-probabilities
        if choice.arm == "mute":
            assert np.isnan(evidence.behavior_log_probs).all()
        else:
            assert log_probs[choice.arm] == pytest.approx(evidence.behavior_log_probs)
        assert all(
            (each <= 0).all() and each.shape == (len(trajectory),)
            for each in (log_probs["bold"], log_probs["shy"])
        )


def test_online_there_are_no_frozen_policies():
    selector = Judge(["bold", "shy"])
    list(run(Corridor(), tables(), selector, episodes=5))
    assert all(each is None for *_, log_probs in selector.evidence for each in log_probs.values())
    assert all(
        np.isfinite(evidence.behavior_log_probs).all() for _, _, evidence, _ in selector.evidence
    )


def test_log_probs_are_computed_only_if_the_selector_wants_them():
    learner = Faulty("a", action=1)
    list(run(Points(), [learner], ESBAS("a"), episodes=6))
    assert learner.calls["log_probs"] == 0


@pytest.mark.parametrize(
    ("log_probs", "message"),
    [
        (lambda observations, actions: 1 / 0, "ZeroDivisionError: division by zero"),
        (
            lambda observations, actions: np.zeros(1),
            r"TypeError: log_probs returned an array of shape \(1,\) for 3 actions",
        ),
    ],
)
def test_a_failure_in_log_probs_is_a_fault_and_the_run_continues(log_probs, message):
    bad = Faulty("bad", action=1)
    bad.log_probs = log_probs
    selector = Judge(["bad", "good"], epochs=[4], seed=1)
    records = list(run(Points(), [bad, Faulty("good", action=1)], selector, episodes=6))
    faults = [fault for record in records for fault in record.faults]
    assert {(fault.learner, fault.where) for fault in faults} == {("bad", "log_probs")}
    assert re.fullmatch(message, faults[0].message)
    assert all(
        log_probs["bad"] is None and log_probs["good"].tolist() == [0.0] * 3
        for *_, log_probs in selector.evidence
    )


def test_propensities():
    assert SSBAS("ab").ask().propensity == 1.0
    selector = esbas.BanditSelector("abc", bandit=esbas.bandits.Exp3)
    assert selector.ask().propensity == pytest.approx(1 / 3)
    assert selector.ask(among=["a", "b"]).propensity == pytest.approx(1 / 2)
    assert (
        esbas.BanditSelector("ab", bandit=esbas.bandits.GaussianThompson).ask().propensity is None
    )
    greedy = esbas.BanditSelector("ab", bandit=esbas.bandits.EpsilonGreedyBandit, seed=2)
    for value in (1.0, 0.0):
        greedy.tell(greedy.ask(), value)
    assert {round(greedy.ask().propensity, 9) for _ in range(60)} == {0.95, 0.05}


def test_a_transition_names_its_stream():
    seen = []
    play(Points(), Always(1), rng=np.random.default_rng(0), seed=0, see=seen.append)
    assert [(step.stream, math.isnan(step.log_prob)) for step in seen] == [(0, True)] * 3
