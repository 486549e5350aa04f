"""A call that takes too long is interrupted where that is possible and judged where it is not; nobody else is hit."""

import collections
import itertools
import math
import signal
import time
from functools import partial

import pytest

from doubles import in_another_thread
from esbas.errors import InvalidValueError, TimeLimitError
from esbas.limits import limited

LIMIT = 0.2


def spin():
    while True:
        pass


def sleep():
    time.sleep(60)


def swallow():
    """Goes on whatever exception comes."""
    while True:
        try:
            time.sleep(60)
        except Exception:
            continue


def swallow_once():
    try:
        time.sleep(60)
    except BaseException:
        time.sleep(60)


def compiled(seconds=0.5):
    """Runs no Python code in between, so that no handler can."""
    count, start = 1_000_000, time.monotonic()
    while True:
        begin = time.monotonic()
        collections.deque(itertools.repeat(None, count), maxlen=0)
        if time.monotonic() - begin > seconds:
            return time.monotonic() - start
        count *= 2


@pytest.fixture(autouse=True)
def no_traces():
    """Whatever happens in a call, handler and timer are as they were."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("hang", [spin, sleep, swallow, swallow_once])
def test_python_code_that_hangs_is_interrupted(hang):
    start = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"must end within 0\.2 s, but was interrupted then") as caught:
        limited(hang, LIMIT)()
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - start < 20


def test_a_call_in_time_is_not_touched():
    assert limited(lambda a, b: a + b, 60.0)(1, 2) == 3
    with pytest.raises(KeyError):
        limited({}.__getitem__, 60.0)("nothing")


@pytest.mark.parametrize("seconds", [None, math.inf])
def test_without_a_limit_the_function_stays_what_it_is(seconds):
    assert limited(spin, seconds) is spin


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan])
def test_a_limit_is_positive(seconds):
    with pytest.raises(InvalidValueError, match="time_limit > 0"):
        limited(spin, seconds)


def test_compiled_code_is_judged_when_it_returns():
    with pytest.raises(TimeLimitError):
        limited(compiled, LIMIT)()


def test_in_another_thread_a_call_is_judged_when_it_returns():
    short, long = (in_another_thread(partial(limited(time.sleep, seconds), 0.3)) for seconds in (LIMIT, 60.0))
    assert isinstance(short, TimeLimitError)
    assert "but took 0.3" in str(short)
    assert long is None


def test_an_alarm_on_the_boundary_hits_the_call_or_nobody():
    """Calls that end at about the moment when the timer rings: each returns or raises, and nothing comes later."""
    outcomes = []
    for k in range(300):
        try:
            limited(time.sleep, 2e-3)(2e-3 * (0.5 + k / 300))
            outcomes.append(True)
        except TimeLimitError:
            outcomes.append(False)
    time.sleep(5e-3)
    assert False in outcomes


def test_the_limit_of_a_call_around_goes_before():
    inner = limited(spin, 60.0)
    with pytest.raises(TimeLimitError, match=r"within 0\.2 s"):
        limited(inner, LIMIT)()


def test_after_an_inner_interruption_the_call_around_still_has_its_limit():
    def outer():
        with pytest.raises(TimeLimitError, match=r"within 0\.1 s"):
            limited(spin, 0.1)()
        spin()

    with pytest.raises(TimeLimitError, match=r"within 0\.5 s"):
        limited(outer, 0.5)()


@pytest.fixture
def rings():
    """Somebody else's handler; tells how often it was called."""
    calls = []
    former = signal.signal(signal.SIGALRM, lambda *_: calls.append(time.monotonic()))
    yield calls
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, former)


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_a_timer_of_somebody_else_rings_in_time_during_the_call(rings):
    def until_it_rings():
        while not rings:
            pass

    signal.setitimer(signal.ITIMER_REAL, 0.1)
    limited(until_it_rings, 60.0)()
    assert len(rings) == 1


def test_a_timer_of_somebody_else_rings_after_the_call(rings):
    signal.setitimer(signal.ITIMER_REAL, 1.0, 0.05)
    limited(time.sleep, 60.0)(0.01)
    assert rings == []
    wait_for(lambda: len(rings) >= 3)  # its interval is kept, too
    with pytest.raises(TimeLimitError):
        limited(spin, 0.3)()
    assert len(rings) >= 4
