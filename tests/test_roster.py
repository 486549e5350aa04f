"""A learner that fails never ends the run.

It is dismissed for some episodes, and the record reports it.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from doubles import Always, BatchRecorder, Faulty, StepRecorder
from esbas import ESBAS, SSBAS, Fixed, Uniform, default_selector, resume, run
from esbas.errors import InvalidValueError
from esbas.learners import Constant
from esbas.testing import Corridor, OneStep

NAMES = ["bad", "good"]
SELECTORS = {
    "batch": lambda: ESBAS(NAMES),
    "online": lambda: SSBAS(NAMES),
    "default": lambda: default_selector(NAMES),
    "random": lambda: Uniform(NAMES, epochs=[2, 4]),
}


def corridor():
    return Corridor(4, slip=0.0, max_episode_steps=6)


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS.keys())
@pytest.mark.parametrize("where", ["policy", "start", "act", "learn", "step"])
def test_no_failure_ends_the_run(where, selector):
    bad = Faulty("bad", where, action=0)
    good = Faulty("good", action=1)
    records = list(run(corridor(), [bad, good], selector(), episodes=60))
    assert [record.number for record in records] == list(range(1, 61))
    faults = [fault for record in records for fault in record.faults]
    online = selector().online
    # otherwise the method is never called
    if (where, online) not in {("learn", True), ("step", False)}:
        assert {fault.learner for fault in faults} == {"bad"}
        assert all(
            re.fullmatch(rf"RuntimeError: call \d+ of {where}", fault.message) for fault in faults
        )
        assert {fault.where for fault in faults} == {
            where if where in ("policy", "learn", "step") else "act"
        }
        strikes = [record.faults[0].dismissed for record in records if record.faults]
        assert strikes == [2**k for k in range(len(strikes))]
        assert [record.learner for record in records].count("good") > 20
    else:
        assert faults == []


@pytest.mark.parametrize("action", [2, -1, float("nan"), 0.5, None, "left", [0], np.array([0, 1])])
def test_an_action_outside_the_space_is_a_fault(action):
    learners = [Constant("bad", Always(action)), Constant("good", lambda seen: 1)]
    records = list(run(corridor(), learners, Fixed(NAMES), episodes=3))
    assert records[0].faults[0].learner == "bad"
    assert records[0].faults[0].message.startswith("acted outside the action space: ")
    assert records[0].length == 3  # the other learner went straight to the right end
    assert records[1].faults == ()


def test_nan_is_a_fault_in_a_continuous_space():
    env = gymnasium.make("Pendulum-v1", max_episode_steps=5)
    learners = [
        Constant("bad", lambda seen: np.array([np.nan], np.float32)),
        Constant("good", lambda seen: np.array([0.5], np.float32)),
    ]
    episodes = run(env, learners, Fixed(NAMES), episodes=2)
    records = list(episodes)
    assert "nan" in records[0].faults[0].message
    assert episodes.data[0].actions.tolist() == [[0.5]] * 5


def test_dismissals_double_and_end():
    bad = Faulty("bad", "act")
    good = Faulty("good", action=1)
    records = list(
        run(corridor(), [bad, good], Fixed(NAMES), episodes=40)
    )  # Fixed chooses the first arm whenever it is available
    failed = {record.number: record.faults[0].dismissed for record in records if record.faults}
    assert failed == {1: 1, 3: 2, 6: 4, 11: 8, 20: 16, 37: 32}
    assert [record.number for record in records if record.learner == "bad"] == list(failed)


def test_no_dismissal_is_longer_than_1024_episodes():
    records = list(
        run(OneStep(), [Faulty("bad", "act"), Faulty("good")], Fixed(NAMES), episodes=3000)
    )
    assert [record.faults[0].dismissed for record in records if record.faults] == [
        *(2**k for k in range(11)),
        1024,
    ]


def test_a_dismissed_learner_gets_another_chance():
    learners = [Faulty("bad", "act", fails=lambda call: call == 1), Faulty("good", action=1)]
    episodes = run(corridor(), learners, Fixed(NAMES), episodes=10)
    assert [record.learner for record in episodes] == ["bad", "good", *["bad"] * 8]


def test_others_act_for_the_rest_of_the_episode():
    learners = [
        Faulty("bad", "act", fails=lambda call: call == 3, action=0),
        Faulty("good", action=1),
    ]
    episodes = run(corridor(), learners, SSBAS(NAMES), episodes=1)
    record = next(episodes)
    assert record.learner == "bad"
    assert episodes.data[0].actions.tolist() == [0, 0, 1, 1, 1]
    assert episodes.data[0].log_probs.tolist() == [0.0] * 5
    # the trajectory is kept
    assert [trajectory.rewards.sum() for trajectory in episodes.data.by("bad")] == [1.0]


def test_the_value_of_an_episode_with_substitutes_does_not_count_for_the_arm():
    learners = [Faulty("bad", "act", fails=lambda call: call == 1), Faulty("good", action=1)]
    selector = SSBAS(NAMES)
    next(run(corridor(), learners, selector, episodes=1))
    assert selector.explain()["bad"]["pulls"] == 0
    assert selector.open_choices == ()


def test_when_all_fail_actions_are_random():
    learners = [Faulty(name, "act") for name in NAMES]
    episodes = run(corridor(), learners, Uniform(NAMES), episodes=30)
    records = list(episodes)
    assert len(records) == 30
    assert {fault.learner for fault in records[0].faults} == set(NAMES)
    actions = [
        action for trajectory in episodes.data.since(0) for action in trajectory.actions.tolist()
    ]
    assert 0.3 < np.mean(actions) < 0.7
    again = run(corridor(), [Faulty(name, "act") for name in NAMES], Uniform(NAMES), episodes=30)
    assert list(again) == records


def test_a_learner_that_fails_to_learn_keeps_its_last_good_policy():
    # The learner is trained before episodes 2, 4, 8, 16; the third training fails, and it is
    # dismissed for one episode.
    learner = BatchRecorder(
        "bad", plan=lambda trainings: trainings % 2, fails=lambda training: training == 3
    )
    episodes = run(OneStep((0.0, 0.0)), [learner], ESBAS(["bad"]), episodes=20)
    records = list(episodes)
    actions = [trajectory.actions[0] for trajectory in episodes.data.since(0)]
    # the policies after training 0, 1, 2, 2 (the third failed), 4
    assert actions == [0] * 1 + [1] * 2 + [0] * 12 + [0] * 5
    assert learner.sizes == [1, 3, 7, 15]
    assert [(record.number, record.faults[0].where) for record in records if record.faults] == [
        (8, "learn")
    ]
    assert records[7].faults[0].message == "ArithmeticError: diverged"


def test_a_learner_whose_new_policy_is_broken_keeps_the_old_one():
    # the first call is made when the run is built
    bad = Faulty("bad", "policy", fails=lambda call: call == 2)
    records = list(
        run(corridor(), [bad, Faulty("good", action=1)], Fixed(NAMES, epochs=[2, 20]), episodes=6)
    )
    assert [(record.number, record.faults[0].where) for record in records if record.faults] == [
        (3, "policy")
    ]
    assert [record.learner for record in records] == ["bad", "bad", "good", "good", "bad", "bad"]
    assert records[4].length == 6  # it went left with its old policy


@pytest.mark.parametrize("online", [False, True])
def test_a_learner_without_a_policy_gets_one_strike_per_episode(online):
    selector = Fixed(NAMES, epochs=None if online else [2, 20])
    records = list(
        run(corridor(), [Faulty("bad", "policy"), Faulty("good", action=1)], selector, episodes=12)
    )
    failed = {
        record.number: [fault.dismissed for fault in record.faults]
        for record in records
        if record.faults
    }
    assert failed == {1: [1], 3: [2], 6: [4], 11: [8]}
    assert all(record.length == 3 for record in records)


def test_a_policy_that_is_none_is_a_fault():
    bad = Faulty("bad")
    bad.policy = lambda: None
    records = list(run(corridor(), [bad, Faulty("good", action=1)], Fixed(NAMES), episodes=2))
    assert records[0].faults[0].message == "TypeError: policy() returned None, which has no `act`"


def test_a_dismissed_learner_learns_nothing():
    bad, good = Faulty("bad", "step", fails=lambda call: call in (1, 2)), Faulty("good", action=1)
    records = list(run(corridor(), [bad, good], Fixed(NAMES, arm="good"), episodes=10))
    # dismissed in 2, and in 4 and 5
    assert [record.number for record in records if record.faults] == [1, 3]
    assert good.calls["step"] == 30
    assert bad.calls["step"] == 2 + 5 * 3  # one failed call in 1 and in 3, all steps of 6 to 10


def test_substitutes_act_with_their_newest_policy():
    class Counter(Faulty):
        """Its policy is a snapshot that goes right if the learner has seen at least ten steps."""

        def policy(self):
            return Always(int(self.calls["step"] >= 10))

    learners = [Faulty("bad", "act", fails=lambda call: call > 18), Counter("good")]
    episodes = run(corridor(), learners, Fixed(NAMES), episodes=4)
    records = list(episodes)
    assert records[3].faults[0].learner == "bad"
    assert episodes.data[3].actions.tolist() == [1, 1, 1]


def test_ctrl_c_in_a_learner_is_not_a_fault():
    class Interrupted(Faulty):
        def act(self, observation, rng):
            raise KeyboardInterrupt

    episodes = run(corridor(), [Interrupted("bad"), Faulty("good")], Fixed(NAMES), episodes=3)
    with pytest.raises(KeyboardInterrupt):
        next(episodes)
    assert episodes.number == 0
    assert episodes.selector.open_choices == ()


class Hanging(Faulty):
    """Hangs where `Faulty` raises."""

    def _call(self, where):
        try:
            super()._call(where)
        except RuntimeError:
            while True:
                pass


@pytest.mark.parametrize(
    ("where", "online"), [("learn", False), ("step", True), ("policy", True), ("policy", False)]
)
def test_a_learner_that_hangs_is_dismissed(where, online):
    bad, good = Hanging("bad", where, fails=lambda call: call == 3), Faulty("good", action=1)
    selector = Fixed(NAMES, arm="bad", epochs=None if online else [1] * 12)
    records = list(
        run(corridor(), [bad, good], selector, episodes=12, learn_timeout=2.0)
    )  # a busy machine may stall for half a second
    faults = [fault for record in records for fault in record.faults]
    assert [(fault.learner, fault.where, fault.dismissed) for fault in faults] == [
        ("bad", where, 1)
    ]
    assert faults[0].message.startswith(
        "TimeLimitError: A learning call must end within 2 s, but was interrupted"
    )
    # learning comes before the choice
    assert [record.learner for record in records].count("good") == (1 if online else 2)
    assert bad.calls[where] > 3  # it was called again after its dismissal


def test_a_learner_that_hangs_keeps_its_last_good_policy():
    class Slow(BatchRecorder):
        def learn(self, data):
            super().learn(data)
            time.sleep(600 if len(self.sizes) == 3 else 0)

    learner = Slow("bad", plan=lambda trainings: trainings % 2)
    episodes = run(OneStep((0.0, 0.0)), [learner], ESBAS(["bad"]), episodes=20, learn_timeout=0.5)
    assert [(record.number, record.faults[0].where) for record in episodes if record.faults] == [
        (8, "learn")
    ]
    actions = [trajectory.actions[0] for trajectory in episodes.data.since(0)]
    # the policies after training 0, 1, 2, 2 (the third failed), 4
    assert actions == [0] * 1 + [1] * 2 + [0] * 12 + [0] * 5


def test_a_learner_that_hangs_before_its_first_policy_does_not_stop_the_run():
    bad = Hanging("bad", "policy", fails=lambda call: call == 1)
    records = list(
        run(
            corridor(), [bad, Faulty("good", action=1)], Fixed(NAMES), episodes=2, learn_timeout=0.5
        )
    )
    assert [record.faults for record in records] == [(), ()]


@pytest.mark.parametrize(
    ("own", "given"), [(0.2, None), (0.2, 600.0), (600.0, 0.1), (float("inf"), 0.1)]
)
def test_the_learners_own_limit_takes_precedence(own, given):
    class Slow(Faulty):
        def step(self, transition):
            time.sleep(0.3)

    bad = Slow("bad", action=1)
    bad.learn_timeout = own
    record = next(
        run(
            corridor(),
            [bad, Faulty("good", action=1)],
            Fixed(NAMES),
            episodes=1,
            learn_timeout=given,
        )
    )
    assert ("bad" in {fault.learner for fault in record.faults}) == (own == 0.2)


def test_the_limit_of_a_step_only_learner_covers_all_new_transitions():
    class Slow(StepRecorder):
        def step(self, transition):
            super().step(transition)
            time.sleep(0.1)

    slow = Slow("bad", action=1)
    records = list(
        run(
            corridor(),
            [slow, Faulty("good", action=1)],
            ESBAS(NAMES),
            episodes=2,
            learn_timeout=0.2,
        )
    )
    assert [fault.where for fault in records[1].faults if fault.learner == "bad"] == ["learn"]
    assert 1 <= len(slow.seen) < 3


def test_a_learner_may_enforce_the_limit_itself():
    class Careful(Faulty):
        def limit_calls(self, seconds):
            self.limit = seconds

        def step(self, transition):
            time.sleep(0.05)

    careful, hasty = Careful("bad", action=1), Careful("good", action=1)
    hasty.learn_timeout = 5.0
    record = next(run(corridor(), [careful, hasty], Fixed(NAMES), episodes=1, learn_timeout=0.01))
    assert (careful.limit, hasty.limit, record.faults) == (0.01, 5.0, ())


def test_a_limit_is_positive_and_is_passed_again_on_resume(tmp_path):
    with pytest.raises(
        InvalidValueError, match="`learn_timeout` must be greater than 0 seconds, or None"
    ):
        run(corridor(), [Faulty("bad"), Faulty("good")], Fixed(NAMES), learn_timeout=0.0)
    episodes = run(corridor(), [Faulty("bad"), Faulty("good")], Fixed(NAMES), episodes=2)
    next(episodes)
    episodes.save(tmp_path / "run")
    parts = corridor(), [Hanging("bad", "step", action=1), Faulty("good", action=1)], Fixed(NAMES)
    records = list(resume(tmp_path / "run", *parts, learn_timeout=0.2))
    assert [fault.learner for fault in records[0].faults] == ["bad"]


@pytest.mark.docs
def test_the_example_with_two_broken_members_reports_what_happened():
    path = Path(__file__).parent.parent / "examples" / "faults.py"
    result = subprocess.run(
        [sys.executable, str(path), "--steps", "400"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert (
        "'hangs' failed in `step` and is dismissed for 2 episodes\n    TimeLimitError"
        in result.stdout
    )
    assert (
        "'crashes' failed in `step` and is dismissed for 1 episode\n    IsolationError"
        in result.stdout
    )
    assert "(SIGSEGV)" in result.stdout
    table = dict(
        re.findall(r"^(rate [\d.]+|hangs|crashes) +(\d+) +\d+%", result.stdout, re.MULTILINE)
    )
    assert [int(table[name]) > 0 for name in table] == [False, False, False, True, True]
    assert re.search(
        r"mean return of the first 30 episodes: \d+, of the last 30: \d+", result.stdout
    )
