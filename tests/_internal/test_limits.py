"""A call that takes too long is interrupted where possible, and otherwise checked when it returns.

Other code is unaffected.
"""

import collections
import itertools
import math
import re
import signal
import time
from functools import partial

import pytest

from doubles import in_another_thread
from esbas._internal.limits import limited
from esbas.errors import InvalidValueError, TimeLimitError

LIMIT = 0.2


def spin():
    while True:
        pass


def sleep():
    time.sleep(600)


def swallow():
    """Continues after any exception."""
    while True:
        try:
            time.sleep(600)
        except Exception:
            continue


def swallow_once():
    try:
        time.sleep(600)
    except BaseException:
        time.sleep(600)


def compiled(seconds=0.5):
    """Blocks in compiled code, so no signal handler can run."""
    count = 1_000_000
    start = time.monotonic()
    while True:
        begin = time.monotonic()
        collections.deque(itertools.repeat(None, count), maxlen=0)
        if time.monotonic() - begin > seconds:
            return time.monotonic() - start
        count *= 2


@pytest.fixture(autouse=True)
def unchanged_signals():
    """Whatever happens in a call, signal handler and timer are restored."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("hang", [spin, sleep, swallow, swallow_once])
def test_python_code_that_hangs_is_interrupted(hang):
    start = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"must end within 0\.2 s, but was interrupted then"):
        limited(hang, LIMIT)()
    assert time.monotonic() - start < 300


def test_a_call_within_the_limit_is_unchanged():
    assert limited(lambda a, b: a + b, 60.0)(1, 2) == 3
    with pytest.raises(KeyError):
        limited({}.__getitem__, 60.0)("nothing")


@pytest.mark.parametrize("seconds", [None, math.inf])
def test_without_a_limit_the_function_is_returned_unchanged(seconds):
    assert limited(spin, seconds) is spin


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan])
def test_a_limit_is_positive(seconds):
    with pytest.raises(
        InvalidValueError, match="`learn_timeout` must be greater than 0 seconds, or None"
    ):
        limited(spin, seconds)


def test_compiled_code_is_checked_when_it_returns():
    with pytest.raises(TimeLimitError):
        limited(compiled, LIMIT)()


def test_in_another_thread_a_call_is_checked_when_it_returns():
    short, long = (
        in_another_thread(partial(limited(time.sleep, seconds), 0.3)) for seconds in (LIMIT, 600.0)
    )
    assert isinstance(short, TimeLimitError)
    assert re.search(r"but took [\d.]+ s", str(short))
    assert long is None


def test_an_alarm_at_the_boundary_affects_only_its_own_call():
    """Calls that end at about the moment when the timer fires either return or raise.

    No exception comes later.
    """
    outcomes = []
    for k in range(300):
        try:
            limited(time.sleep, 2e-3)(2e-3 * (0.5 + k / 300))
            outcomes.append(True)
        except TimeLimitError:
            outcomes.append(False)
    time.sleep(5e-3)
    assert False in outcomes


def test_the_limit_of_an_outer_call_takes_precedence():
    inner = limited(spin, 600.0)
    with pytest.raises(TimeLimitError, match=r"within 0\.2 s"):
        limited(inner, LIMIT)()


def test_after_an_inner_interruption_the_outer_limit_still_applies():
    def outer():
        with pytest.raises(TimeLimitError, match=r"within 0\.1 s"):
            limited(spin, 0.1)()
        spin()

    with pytest.raises(TimeLimitError, match=r"within 2 s"):
        limited(outer, 2.0)()


@pytest.fixture
def fired():
    """The times at which a signal handler of other code was called."""
    calls = []
    former = signal.signal(signal.SIGALRM, lambda *_: calls.append(time.monotonic()))
    yield calls
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, former)


def wait_for(condition):
    deadline = time.monotonic() + 300
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_a_foreign_timer_fires_on_time_during_the_call(fired):
    def until_it_fires():
        while not fired:
            pass

    signal.setitimer(signal.ITIMER_REAL, 0.1)
    limited(until_it_fires, 600.0)()
    assert len(fired) == 1


def test_a_foreign_timer_fires_after_the_call(fired):
    signal.setitimer(signal.ITIMER_REAL, 3.0, 0.05)
    limited(time.sleep, 600.0)(0.01)
    assert fired == []
    wait_for(lambda: len(fired) >= 3)  # its interval is kept too
    with pytest.raises(TimeLimitError):
        limited(spin, 0.3)()
    assert len(fired) >= 4
