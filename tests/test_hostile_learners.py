"""Learners that raise any error, cannot be saved, or have errors that cannot be shown."""

import signal
import sys

import gymnasium
import numpy as np
import pytest

from doubles import Always, BatchRecorder, Faulty, StepRecorder
from esbas import ESBAS, SSBAS, Fixed, resume, run
from esbas._internal import limits
from esbas.errors import SaveFileError, SpaceError, TimeLimitError
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor

NAMES = ["bad", "good"]


def corridor():
    return Corridor(4, slip=0.0, max_episode_steps=6)


class Raising(Faulty):
    """Raises a given error where `Faulty` raises."""

    def __init__(self, where, error, **options):
        super().__init__("bad", where, **options)
        self._error = error

    def _call(self, where):
        try:
            super()._call(where)
        except RuntimeError:
            raise self._error from None


class Private(BaseException):
    pass


class Unusual(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [StopIteration(), AssertionError("no"), MemoryError(), RecursionError(), Unusual("mine")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["policy", "start", "act", "learn", "step"])
@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_no_exception_of_a_learner_ends_the_run(selector, where, error):
    records = list(
        run(
            corridor(),
            [Raising(where, error), Faulty("good", action=1)],
            selector(NAMES),
            episodes=12,
        )
    )
    assert len(records) == 12
    called = (where, selector) not in {("learn", SSBAS), ("step", ESBAS)}
    messages = {fault.message for record in records for fault in record.faults}
    assert messages == ({f"{type(error).__name__}: {error}"} if called else set())


def test_an_error_in_log_probs_is_a_fault():
    class Judge(ESBAS):
        wants = frozenset({"log_probs"})

        def observe(self, choice, value, *, note, evidence):
            super().observe(choice, value, note=note, evidence=evidence)
            assert evidence.log_probs("bad") is None

    learners = [Raising("log_probs", Unusual()), Faulty("good", action=1)]
    records = list(run(corridor(), learners, Judge(NAMES), episodes=4))
    assert {fault.where for record in records for fault in record.faults} == {"log_probs"}


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), Private("mine")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["policy", "start", "act", "learn", "step"])
def test_what_is_not_an_exception_ends_the_run_and_leaves_no_open_choice(where, error):
    selector = Fixed(NAMES, epochs=None if where == "step" else [1, 1])
    learners = [
        Raising(where, error, fails=lambda call: call == 2),
        Faulty("good", action=1),
    ]
    episodes = run(corridor(), learners, selector, episodes=12)
    with pytest.raises(type(error)):
        list(episodes)
    assert episodes.selector.open_choices == ()
    if where == "learn":  # the epoch was released
        assert episodes.selector.claim_epoch() is not None


def test_ctrl_c_ends_the_run_when_chance_acts():
    episodes = run(
        corridor(), [Faulty("bad", "act"), Faulty("good", "act")], Fixed(NAMES), episodes=3
    )
    episodes.roster.random_act = Raising("act", KeyboardInterrupt()).act
    with pytest.raises(KeyboardInterrupt):
        next(episodes)


def test_a_broken_action_space_is_reported_when_chance_acts():
    episodes = run(
        corridor(), [Faulty("bad", "act"), Faulty("good", "act")], Fixed(NAMES), episodes=3
    )
    episodes.roster.random_act = lambda observation, rng: (99, 0.0)
    with pytest.raises(
        SpaceError,
        match="An action space must contain its samples, but a random policy acted outside",
    ):
        next(episodes)


def test_an_exit_in_a_signal_handler_ends_the_program_and_not_the_learner():
    class Terminated(Faulty):
        def step(self, transition):
            signal.raise_signal(signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
    try:
        with pytest.raises(SystemExit):
            next(run(corridor(), [Terminated("bad"), Faulty("good")], Fixed(NAMES), episodes=3))
    finally:
        signal.signal(signal.SIGUSR1, former)


def test_the_time_limit_of_a_call_around_the_run_ends_the_run():
    class Waiting(Faulty):
        def step(self, transition):
            while True:
                pass

    def whole_run():
        list(run(corridor(), [Waiting("bad"), Faulty("good")], Fixed(NAMES), episodes=3))

    with pytest.raises(TimeLimitError):
        limits.limited(whole_run, 0.3)()


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Unprintable(), "Unprintable: (its message cannot be shown)"),
        (ValueError("\ud800 and \0"), "ValueError: \\ud800 and \\x00"),
        (ValueError("x" * 1_000_000), "ValueError: " + "x" * 1988 + " ... (1,000,012 characters)"),
    ],
    ids=["unprintable", "surrogate", "long"],
)
def test_messages_can_always_be_stored(error, message):
    record = next(
        run(corridor(), [Raising("act", error), Faulty("good", action=1)], Fixed(NAMES), episodes=1)
    )
    assert record.faults[0].message == message
    assert record.faults[0].message.encode()


def test_an_action_that_cannot_be_shown_is_a_fault():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    record = next(
        run(
            corridor(),
            [Constant("bad", Always(Odd())), Faulty("good", action=1)],
            Fixed(NAMES),
            episodes=1,
        )
    )
    assert record.faults[0].message.startswith("RuntimeError")


class Tensor:
    """Behaves like a tensor: an array on request, and an integer if it has one element."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __index__(self):
        return int(self.values)

    def __float__(self):
        return float(self.values)


class Watching(gymnasium.Wrapper):
    """Records the types of the actions."""

    def __init__(self, env):
        super().__init__(env)
        self.types = set()

    def step(self, action):
        self.types.add(type(action))
        return self.env.step(action)


@pytest.mark.parametrize(
    ("task", "action", "expected"),
    [
        ("CartPole-v1", Tensor(1), int),
        ("Pendulum-v1", Tensor([0.5]), np.ndarray),
        ("Pendulum-v1", [0.5], np.ndarray),
    ],
)
def test_environments_get_plain_integers_and_arrays(task, action, expected):
    class Scored(Always):
        def act_with_log_prob(self, observation, rng):
            return self.action, Tensor(-1.5)

    env = Watching(gymnasium.make(task, max_episode_steps=4))
    episodes = run(env, [Constant("a", Scored(action))], Fixed("a"), episodes=1)
    assert next(episodes).faults == ()
    assert env.types == {expected}
    assert episodes.data[0].actions.dtype == (np.int64 if expected is int else np.float32)
    assert episodes.data[0].log_probs.tolist() == [-1.5] * 4


@pytest.mark.parametrize("log_prob", [None, "high", np.zeros(3)], ids=str)
def test_a_log_probability_that_is_not_a_number_is_a_fault(log_prob):
    class Odd(Faulty):
        def act_with_log_prob(self, observation, rng):
            return 1, log_prob

    record = next(run(corridor(), [Odd("bad"), Faulty("good", action=1)], Fixed(NAMES), episodes=1))
    assert [(fault.learner, fault.where) for fault in record.faults] == [("bad", "act")]


class Unsavable(StepRecorder):
    def __init__(self, failure, name="bad"):
        super().__init__(name, action=1)
        self._failure = failure

    def state_dict(self):
        if isinstance(self._failure, BaseException):
            raise self._failure
        return self._failure

    def load_state_dict(self, state):
        raise AssertionError("it was not saved")


def table():
    return TabularQ("good", states=4, actions=2, learning_rate=0.5)


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("no state"),
        {"object": object()},
        {1: "key"},
        {"array": np.array([None])},
    ],
    ids=["raises", "object", "key", "array"],
)
@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_a_learner_that_cannot_be_saved_does_not_keep_the_others_from_it(
    tmp_path, selector, failure
):
    def parts():
        return corridor(), [Unsavable(failure), table()], selector(NAMES)

    episodes = run(*parts(), episodes=20)
    for _ in range(5):
        next(episodes)
    good = episodes.learners[1].table.copy()
    with pytest.warns(
        UserWarning, match="Learner 'bad' could not be saved .*: its state is not in the save file"
    ):
        episodes.save(tmp_path / "run")
    with pytest.warns(
        UserWarning, match="Learner 'bad' could not be saved .*: it starts as it was built"
    ):
        resumed = resume(tmp_path / "run", *parts())
    assert np.array_equal(resumed.learners[1].table, good)
    first, again = next(episodes), next(resumed)
    assert [(fault.learner, fault.where, fault.dismissed) for fault in first.faults] == [
        ("bad", "state_dict", 1)
    ]
    assert again == first  # the fault is in the next record of both, and both dismiss it
    assert first.learner == "good"


@pytest.mark.filterwarnings("ignore:learner 'bad' could not be saved")
def test_a_learner_that_was_not_saved_learns_from_all_data_again(tmp_path):
    def parts():
        return corridor(), [Unsavable(RuntimeError()), table()], ESBAS(NAMES)

    episodes = run(*parts(), episodes=20)
    for _ in range(8):
        next(episodes)
    episodes.save(tmp_path / "run")
    resumed = resume(tmp_path / "run", *parts())
    list(resumed)
    # the last epoch began after 15
    assert len(resumed.learners[0].seen) == sum(len(each) for each in resumed.data.since(0)[:15])


def test_an_exit_while_saving_ends_the_program_and_keeps_the_old_file(tmp_path):
    episodes = run(corridor(), [Faulty("bad"), table()], ESBAS(NAMES), episodes=2)
    episodes.save(tmp_path / "run")
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(SystemExit):
        run(corridor(), [Unsavable(SystemExit(1)), table()], ESBAS(NAMES)).save(tmp_path / "run")
    assert (tmp_path / "run").read_bytes() == before


class Unloadable(Faulty):
    def __init__(self, error):
        super().__init__("bad")
        self._error = error

    def load_state_dict(self, state):
        raise self._error


def test_a_state_that_does_not_load_is_one_sentence(tmp_path):
    run(corridor(), [Faulty("bad"), table()], ESBAS(NAMES), episodes=1).save(tmp_path / "run")
    with pytest.raises(SaveFileError, match=r"but Unprintable: \(its message cannot be shown\)"):
        resume(tmp_path / "run", corridor(), [Unloadable(Unprintable()), table()], ESBAS(NAMES))


def test_an_exit_while_loading_ends_the_program_and_restores_the_parts(tmp_path):
    episodes = run(corridor(), [table(), Faulty("bad")], SSBAS(NAMES[::-1]), episodes=5)
    list(episodes)
    episodes.save(tmp_path / "run")
    parts = [table(), Unloadable(SystemExit(1))], SSBAS(NAMES[::-1])
    before = repr([parts[0][0].state_dict(), parts[1].state_dict()])
    with pytest.raises(SystemExit):
        resume(tmp_path / "run", corridor(), *parts)
    assert repr([parts[0][0].state_dict(), parts[1].state_dict()]) == before


def test_a_learner_without_state_dict_is_still_refused(tmp_path):
    with pytest.raises(SaveFileError, match="'bad' does not have both: add them"):
        run(corridor(), [BatchRecorder("bad"), table()], ESBAS(NAMES), episodes=1).save(
            tmp_path / "run"
        )
