"""Time limits for calls, without another process.

On Unix, in the main thread, a timer interrupts Python code that takes too long. Elsewhere, and in compiled code, during which
Python's signal handlers do not run, the limit is checked when the call returns.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from esbas.errors import TimeLimitError, require

REPEAT = 1.0  # seconds until code that suppressed an interruption is interrupted again


def checked(seconds: float | None) -> float | None:
    """A valid limit; None for no limit or an infinite one."""
    require(seconds is None or seconds > 0, "time_limit > 0 seconds, or None for no limit", time_limit=seconds)
    return None if seconds == math.inf else seconds


def limited(function: Callable[..., Any], seconds: float | None) -> Callable[..., Any]:
    """A function that raises a TimeLimitError if a call takes longer; the function itself if there is no limit."""
    limit = checked(seconds)
    if limit is None:
        return function

    def call(*arguments: Any) -> Any:
        return _interrupted(function, arguments, limit) if _can_interrupt() else _judged(function, arguments, limit)

    return call


def too_slow(seconds: float, reason: str) -> TimeLimitError:
    """The error for a call that took longer than the limit."""
    return TimeLimitError(
        f"a learning call must end within {seconds:g} s, but {reason}: raise time_limit, or leave the learner out"
    )


def _judged(function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
    start = time.monotonic()
    result = function(*arguments)
    if (taken := time.monotonic() - start) > seconds:
        raise too_slow(seconds, f"took {taken:.3g} s")
    return result


def _interrupted(function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
    alarm = _Alarm(seconds)
    try:
        alarm.set()
        try:
            return _judged(function, arguments, seconds)  # for compiled code at its very end
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
    main = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGALRM) is not None  # None: a handler that Python cannot put back


class Interruption(BaseException):
    """Ends a call at its time limit. Not an Exception, so that `except Exception` does not catch it."""

    def __init__(self, alarm: "_Alarm") -> None:
        self.alarm = alarm


class _Alarm:
    """The timer of the process, used for one call. A timer that was set before keeps working and is restored afterwards."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._deadline = time.monotonic() + seconds
        self._former = signal.getsignal(signal.SIGALRM)
        self._former_due, self._former_interval = math.inf, 0.0

    def set(self) -> None:
        """Start the timer."""
        signal.signal(signal.SIGALRM, self._ring)
        remaining, self._former_interval = signal.setitimer(signal.ITIMER_REAL, 0)
        if remaining:
            self._former_due = time.monotonic() + remaining
        self._wind()

    def clear(self) -> None:
        """Restore the former timer. A pending signal reaches the old handler before the new one is set."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._former)
        if self._former_due < math.inf:
            signal.setitimer(signal.ITIMER_REAL, _until(self._former_due), self._former_interval)

    def _wind(self) -> None:
        due = min(self._deadline, self._former_due) if callable(self._former) else self._deadline
        signal.setitimer(signal.ITIMER_REAL, _until(due), REPEAT)

    def _ring(self, signal_number: int, frame: Any) -> None:
        now = time.monotonic()
        if self.over:
            return
        if now >= self._former_due and callable(self._former):
            self._former_due = now + self._former_interval if self._former_interval else math.inf
            self._former(signal_number, frame)
        if now >= self._deadline:
            raise Interruption(self)
        self._wind()


def _until(due: float) -> float:
    """Seconds from now; positive, because a timer of zero seconds is disabled."""
    return max(due - time.monotonic(), 1e-6)
