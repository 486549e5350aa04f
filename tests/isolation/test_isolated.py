"""An isolated learner gives the same results.

The run continues whatever happens to its process.
"""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import breakable
from breakable import Breaking
from doubles import Faulty, in_another_thread
from esbas import ESBAS, SSBAS, Fixed, TrajectorySet, Uniform, resume, run
from esbas.errors import InvalidValueError, IsolationError, TimeLimitError
from esbas.isolation import Isolated
from esbas.learner import LEARNER_ATTRIBUTES, LEARNER_METHODS, POLICY_METHODS
from esbas.testing import Corridor, check_learner

LIMIT = 2.0  # seconds; more than a healthy call takes, even on a busy machine
TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _stop_processes():
    before = set(multiprocessing.active_children())
    yield
    for process in set(multiprocessing.active_children()) - before:
        process.kill()
        process.join()


def corridor():
    return Corridor(4, slip=0.0, max_episode_steps=6)


def outcome(episodes):
    """Everything that a run produced: records, data and the state of the selector."""
    records = list(episodes)
    columns = [column.tobytes() for column in episodes.data.transitions()]
    return records, columns, episodes.selector.state_dict()


SELECTORS = {"online": SSBAS, "batch": ESBAS}


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS.keys())
@pytest.mark.parametrize(
    "make",
    [breakable.tabular, breakable.fitted, breakable.chance, breakable.stepper, breakable.Census],
)
def test_results_are_identical(make, selector):
    outcomes = []
    for learner in (make(), Isolated(make, snapshot_every=7, learn_timeout=600.0)):
        arms = [learner.name, "good"]
        outcomes.append(
            outcome(
                run(
                    Corridor(4, max_episode_steps=12),
                    [learner, Faulty("good", action=1)],
                    selector(arms),
                    episodes=40,
                    seed=3,
                )
            )
        )
    assert outcomes[0] == outcomes[1]


def test_a_deep_learner_gives_identical_results_too():
    outcomes = []
    for learner in (breakable.deep(), Isolated(breakable.deep, snapshot_every=90)):
        env = gymnasium.make("CartPole-v1")
        outcomes.append(outcome(run(env, [learner], SSBAS(["deep"]), steps=300, seed=1)))
    assert outcomes[0] == outcomes[1]


def test_a_failed_draw_advances_the_generator_too():
    states = []
    for learner in (breakable.tidy(), Isolated(breakable.tidy)):
        rng = np.random.default_rng(0)
        policy = learner.policy()
        for _ in range(10):
            try:
                policy.act(0, rng)
            except (ArithmeticError, IsolationError):
                states.append(rng.random())
    assert len(states) > 2
    assert states[: len(states) // 2] == states[len(states) // 2 :]


def test_it_keeps_the_contract_of_a_learner():
    started = []

    def factory():
        started.append(Isolated(breakable.plain))
        return started[-1]

    check_learner(factory, Corridor(4), episodes=2, draws=50)
    for learner in started:
        learner.close()


@pytest.fixture(scope="module")
def isolated():
    learners = {"complete": Isolated(breakable.complete), "minimal": Isolated(breakable.Minimal)}
    yield learners
    for learner in learners.values():
        learner.close()


@pytest.mark.parametrize("name", [*LEARNER_METHODS, *LEARNER_ATTRIBUTES])
def test_it_has_the_optional_members_that_the_learner_has(name, isolated):
    assert hasattr(breakable.complete(), name)  # a new optional member must be added there
    assert hasattr(isolated["complete"], name)
    # an option of isolation itself
    assert hasattr(isolated["minimal"], name) == (name == "learn_timeout")


@pytest.mark.parametrize("name", LEARNER_ATTRIBUTES)
def test_attributes_are_those_of_the_learner(name, isolated):
    assert getattr(isolated["complete"], name) == getattr(breakable.complete(), name)


@pytest.mark.parametrize("name", POLICY_METHODS)
def test_a_policy_has_the_optional_methods_that_the_policy_inside_has(name, isolated):
    assert hasattr(breakable.CompletePolicy(), name)  # a new optional method must be added there
    assert hasattr(isolated["complete"].policy(), name)
    assert not hasattr(isolated["minimal"].policy(), name)


def test_the_names_are_those_of_the_learner(isolated):
    assert repr(isolated["complete"]) == "<Isolated 'complete'>"
    assert [(each.name, each.stationary) for each in isolated.values()] == [
        ("complete", False),
        ("minimal", True),
    ]
    with pytest.raises(
        AttributeError, match="The isolated learner 'minimal' has no attribute 'learn'"
    ):
        isolated["minimal"].learn(TrajectorySet())


def test_log_probs_are_those_of_the_policy_inside(isolated):
    rng = np.random.default_rng(0)
    same = np.random.default_rng(0)
    policy = isolated["complete"].policy()
    inner = breakable.CompletePolicy()
    for observation in range(3):
        assert policy.act_with_log_prob(observation, rng) == inner.act_with_log_prob(
            observation, same
        )
    assert rng.bit_generator.state == same.bit_generator.state
    arrays = np.arange(3.0), np.arange(1, 4)
    np.testing.assert_array_equal(policy.log_probs(*arrays), inner.log_probs(*arrays))


def test_what_start_returns_acts_in_the_other_process(isolated):
    policy = isolated["complete"].policy()
    rng = np.random.default_rng(0)
    one, other = policy.start(), policy.start()  # two episodes at the same time
    assert [acting.act(0, rng)[0] for acting in (one, one, other, one, policy)] == [1, 2, 1, 3, 1]
    assert hasattr(one, "log_probs")


def test_a_policy_without_an_acting_object_returns_none_from_start():
    assert Isolated(breakable.chance).policy().start() is None


def test_what_start_returned_starts_again_in_a_new_process():
    learner = Isolated(breakable.complete)
    rng = np.random.default_rng(0)
    acting = learner.policy().start()
    acting.act(0, rng)
    learner.close()
    assert acting.act(0, rng)[0] == 1


def test_the_greedy_policy_acts_in_the_other_process():
    learner = Isolated(breakable.Greedy)
    assert [
        learner.greedy_policy().act(0, np.random.default_rng(0)),
        learner.policy().act(0, np.random.default_rng(0)),
    ] == [1, 0]


def test_the_limit_of_the_learner_inside_applies():
    assert Isolated(breakable.rising).learn_timeout == 7.5
    assert Isolated(breakable.rising, learn_timeout=3.0).learn_timeout == 3.0
    with pytest.raises(
        InvalidValueError, match="`learn_timeout` must be greater than 0 seconds, or None"
    ):
        Isolated(breakable.hasty)


@pytest.mark.parametrize(
    ("where", "how"),
    [("step", breakable.spin), ("act", breakable.sleep), ("step", breakable.compiled)],
)
def test_a_call_that_hangs_ends_with_its_process(where, how):
    learner = Isolated(partial(Breaking, "bad", where, how), snapshot_every=1)
    records = list(
        run(
            corridor(),
            [learner, Faulty("good", action=1)],
            Fixed(["bad", "good"]),
            episodes=5,
            learn_timeout=LIMIT,
        )
    )
    faults = [fault for record in records for fault in record.faults]
    assert (faults[0].learner, faults[0].where, faults[0].dismissed) == ("bad", where, 1)
    assert f"TimeLimitError: A learning call must end within {LIMIT:g} s" in faults[0].message
    assert len(records) == 5


def test_a_call_that_hangs_ends_in_any_thread():
    learner = Isolated(
        partial(Breaking, "bad", "policy", breakable.spin, at=1), learn_timeout=LIMIT
    )
    error = in_another_thread(learner.policy)
    assert isinstance(error, TimeLimitError)
    assert "the process of learner 'bad' did not finish policy and was killed" in str(error)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (breakable.segfault, "SIGSEGV"),
        (breakable.leave, "exit code 3"),
        (breakable.be_killed, "SIGKILL"),
    ],
)
def test_a_process_that_ends_is_restarted_from_the_last_good_state(how, cause):
    learner = Isolated(partial(Breaking, "bad", "step", how, at=8), snapshot_every=5)
    episodes = run(
        corridor(), [learner, Faulty("good", action=1)], Fixed(["bad", "good"]), episodes=6
    )
    records = list(episodes)
    first = next(record for record in records if record.faults)
    assert first.number == 3  # episodes have three steps
    assert cause in first.faults[0].message
    assert "The process of learner 'bad' died in step" in first.faults[0].message
    # Dismissed in episode 4. The new process starts with the 5 steps of the snapshot, learns 2 in
    # episode 5 and breaks again.
    assert [record.number for record in records if record.faults] == [3, 5]
    assert learner.state_dict()["calls"]["step"] == 5
    assert records[5].learner == "good"


def test_learn_is_followed_by_a_snapshot():
    learner = Isolated(partial(Breaking, "bad", "learn", breakable.leave, at=2))
    episodes = run(
        corridor(), [learner, Faulty("good")], Fixed(["bad", "good"], epochs=[1] * 6), episodes=6
    )
    records = list(episodes)
    assert [(record.number, record.faults[0].where) for record in records if record.faults] == [
        (3, "learn"),
        (5, "learn"),
    ]
    assert learner.state_dict()["calls"]["learn"] == 1
    assert [record.learner for record in records] == ["bad", "bad", "good", "good", "good", "good"]


def test_a_learner_that_cannot_be_saved_starts_as_it_was_built():
    learner = Isolated(breakable.Unsavable)
    list(
        run(
            corridor(),
            [learner, Faulty("good", action=1)],
            Fixed(["unsavable", "good"]),
            episodes=2,
        )
    )
    assert not hasattr(learner, "state_dict")
    learner.close()
    learner.step(None)
    learner.step(None)
    with pytest.raises(IsolationError, match="died in step"):
        learner.step(None)
    learner.step(None)


def test_exceptions_are_raised_here_and_do_not_end_the_process():
    learner = Isolated(partial(Faulty, "bad", "policy"))
    pid = learner._child._process.pid
    with pytest.raises(
        IsolationError,
        match=r"The process of learner 'bad' raised an error in policy: "
        "RuntimeError: call 1 of policy",
    ):
        learner.policy()
    with pytest.raises(IsolationError, match="call 2 of policy"):
        learner.policy()
    assert learner._child._process.pid == pid


def test_an_answer_that_cannot_be_pickled_raises():
    learner = Isolated(partial(Faulty, "bad", action=breakable.spin))
    assert learner.policy().act(0, np.random.default_rng()) is breakable.spin
    with pytest.raises(IsolationError, match="raised an error in act"):
        Isolated(breakable.unpicklable).policy().act(0, np.random.default_rng())


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: None, InvalidValueError, "define it at the top of a module"),
        (
            breakable.refuse,
            IsolationError,
            "raised an error in its start: ValueError: no such learner",
        ),
        (breakable.silent, IsolationError, "SystemExit: left"),
        (breakable.leave, IsolationError, r"died in its start \(exit code 3\)"),
    ],
)
def test_a_learner_that_cannot_be_built_is_refused(make, error, sentence):
    with pytest.raises(error, match=sentence):
        Isolated(make)


@pytest.mark.parametrize("options", [{"learn_timeout": 0.0}, {"snapshot_every": 0}])
def test_bad_options_are_refused(options):
    with pytest.raises(InvalidValueError):
        Isolated(breakable.tabular, **options)


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS.keys())
def test_save_and_resume_through_isolation(selector, tmp_path):
    def parts():
        return (
            Corridor(4, max_episode_steps=12),
            [Isolated(breakable.tabular), Isolated(breakable.fitted)],
            selector(["table", "fitted"]),
        )

    whole = list(run(*parts(), episodes=30, seed=5))
    episodes = run(*parts(), episodes=30, seed=5)
    for _ in range(17):
        next(episodes)
    episodes.save(tmp_path / "run")
    assert list(resume(tmp_path / "run", *parts())) == whole[17:]


def test_a_run_can_be_saved_after_a_process_was_killed(tmp_path):
    learner = Isolated(breakable.tabular, snapshot_every=4)
    episodes = run(
        corridor(), [learner, Faulty("good", action=1)], Uniform(["table", "good"]), episodes=10
    )
    for _ in range(3):
        next(episodes)
    os.kill(learner._child._process.pid, signal.SIGKILL)  # between two calls
    episodes.save(tmp_path / "run")
    assert learner.state_dict()["episode"] >= 2


def test_an_old_policy_acts_with_the_last_good_state_in_a_new_process():
    learner = Isolated(partial(Faulty, "good", action=1))
    policy = learner.policy()
    rng = np.random.default_rng(0)
    learner.close()
    policy.start()
    assert policy.act(0, rng) == 1


def test_unused_policies_are_released():
    learner = Isolated(breakable.Counting)
    kept = learner.policy()
    for _ in range(50):
        learner.policy()
    # policies alive in the other process
    assert learner.policy().act(0, np.random.default_rng()) <= 3
    assert kept.act(0, np.random.default_rng()) <= 3


def test_ctrl_c_while_waiting_loses_nothing():
    class Pressed(Exception):
        pass

    def press(*_):
        raise Pressed

    learner = Isolated(partial(Breaking, "slow", "policy", partial(time.sleep, 4.0), at=1))
    former = signal.signal(signal.SIGALRM, press)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(Pressed):
            learner.policy()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert learner._child.generation == 1
    # the answer to the first call was read and discarded
    assert learner.state_dict()["calls"]["policy"] == 1


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def wait_until_gone(pid):
    deadline = time.monotonic() + 300
    while alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            pytest.fail(f"process {pid} did not end by itself")
        time.sleep(0.02)


def test_the_process_ignores_ctrl_c_and_ends_with_the_learner():
    learner = Isolated(breakable.tabular)
    pid = learner._child._process.pid
    os.kill(pid, signal.SIGINT)
    learner.policy()
    assert learner._child.generation == 1
    del learner
    gc.collect()
    wait_until_gone(pid)


def test_close_ends_the_process():
    learner = Isolated(breakable.tabular)
    pid = learner._child._process.pid
    learner.close()
    learner.close()
    wait_until_gone(pid)


PARENT = """
import sys
from functools import partial
import breakable
from doubles import Faulty, in_another_thread
from esbas.learners import Isolated

if __name__ == "__main__":
    how = getattr(breakable, sys.argv[1])
    learner = Isolated(partial(breakable.Breaking, "bad", "policy", how, at=1))
    print(learner._child._process.pid, flush=True)
    learner.policy()
"""


@pytest.mark.parametrize("how", ["spin", "sleep", "compiled"])
def test_the_process_ends_when_its_parent_is_killed(how, tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, str(tmp_path / "parent.py"), how]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            time.sleep(0.3)  # now it hangs
            assert alive(pid)
        except BaseException:
            os.killpg(parent.pid, signal.SIGKILL)
            raise
        parent.kill()
    wait_until_gone(pid)


def test_a_normal_exit_is_clean(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-W", "error", str(tmp_path / "parent.py"), "nothing"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    wait_until_gone(int(result.stdout.split()[0]))
