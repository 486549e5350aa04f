"""Time limits for calls, without another process.

On Unix, in the main thread, a timer interrupts Python code that takes too long. Elsewhere, and in
compiled code, during which Python's signal handlers do not run, the limit is checked when the call
returns.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from numbers import Real
from typing import Any

from esbas._internal import schema
from esbas.errors import TimeLimitError, require

REPEAT = 1.0  # seconds until code that suppressed an interruption is interrupted again


def checked(seconds: Any) -> float | None:
    """Return a valid limit; None for no limit or an infinite one."""
    if seconds is None:
        return None
    is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
    require(
        is_number and seconds > 0,
        "`learn_timeout` must be greater than 0 seconds, or None for no limit, "
        f"but got {schema.short(seconds)}.",
    )
    return None if seconds == math.inf else float(seconds)


def limited(function: Callable[..., Any], seconds: float | None) -> Callable[..., Any]:
    """Return a function that raises a TimeLimitError if a call takes longer.

    Without a limit, it is the function itself.
    """
    limit = checked(seconds)
    if limit is None:
        return function

    def call(*arguments: Any) -> Any:
        if _can_interrupt():
            return _interrupted(function, arguments, limit)
        return _measured(function, arguments, limit)

    return call


def too_slow(seconds: float, reason: str) -> TimeLimitError:
    """Return the error for a call that took longer than the limit."""
    return TimeLimitError(
        f"A learning call must end within {seconds:g} s, but {reason}: "
        "raise `learn_timeout`, or leave the learner out."
    )


def _measured(function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
    start = time.monotonic()
    result = function(*arguments)
    taken = time.monotonic() - start
    if taken > seconds:
        raise too_slow(seconds, f"took {taken:.3g} s")
    return result


def _interrupted(function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
    alarm = _Alarm(seconds)
    try:
        alarm.set()
        try:
            # Signals do not interrupt compiled code, so the time is also measured.
            return _measured(function, arguments, seconds)
        finally:
            alarm.over = True  # a signal that arrives from here on has no effect
    except Interruption as interruption:
        alarm.over = True
        if interruption.alarm is not alarm:  # that of a call around this one
            raise
        raise too_slow(seconds, "was interrupted then") from None
    finally:
        alarm.clear()


def _can_interrupt() -> bool:
    if not hasattr(signal, "setitimer"):
        return False
    if threading.current_thread() is not threading.main_thread():
        return False
    # None stands for a handler that Python cannot restore.
    return signal.getsignal(signal.SIGALRM) is not None


class Interruption(BaseException):
    """Ends a call at its time limit.

    It is not an Exception, so that `except Exception` does not catch it.
    """

    def __init__(self, alarm: "_Alarm") -> None:
        self.alarm = alarm


class _Alarm:
    """The timer of the process, used for one call.

    A timer that was set before keeps working and is restored afterwards.
    """

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._deadline = time.monotonic() + seconds
        self._former = signal.getsignal(signal.SIGALRM)
        self._former_due = math.inf
        self._former_interval = 0.0

    def set(self) -> None:
        """Start the timer."""
        signal.signal(signal.SIGALRM, self._ring)
        remaining, self._former_interval = signal.setitimer(signal.ITIMER_REAL, 0)
        if remaining:
            self._former_due = time.monotonic() + remaining
        self._wind()

    def clear(self) -> None:
        """Restore the former timer.

        A pending signal reaches the handler of this class before the former one is set.
        """
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._former)
        if self._former_due < math.inf:
            signal.setitimer(signal.ITIMER_REAL, _until(self._former_due), self._former_interval)

    def _wind(self) -> None:
        due = self._deadline
        if callable(self._former):
            due = min(due, self._former_due)
        signal.setitimer(signal.ITIMER_REAL, _until(due), REPEAT)

    def _ring(self, signal_number: int, frame: Any) -> None:
        now = time.monotonic()
        if self.over:
            return
        if now >= self._former_due and callable(self._former):
            self._former_due = math.inf
            if self._former_interval:
                self._former_due = now + self._former_interval
            self._former(signal_number, frame)
        if now >= self._deadline:
            raise Interruption(self)
        self._wind()


def _until(due: float) -> float:
    """Return the seconds from now, at least a microsecond: a timer of zero seconds is disabled."""
    return max(due - time.monotonic(), 1e-6)
