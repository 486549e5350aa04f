"""A limit to how long a call may take, kept without another process.

On Unix, in the main thread, a timer interrupts Python code that goes on for too long. Anywhere else, and in compiled code, which
lets no handler of Python run meanwhile, a call is judged when it returns.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from esbas.errors import TimeLimitError, require

AGAIN = 1.0  # seconds until code that swallowed an interruption is interrupted again


def checked(seconds: float | None) -> float | None:
    """A limit as it was given; None also for one that is infinite."""
    require(seconds is None or seconds > 0, "time_limit > 0 seconds, or None for no limit", time_limit=seconds)
    return None if seconds == math.inf else seconds


def limited(function: Callable[..., Any], seconds: float | None) -> Callable[..., Any]:
    """A function that raises a TimeLimitError when a call takes longer than that; the very same function if there is no limit."""
    limit = checked(seconds)
    if limit is None:
        return function

    def call(*arguments: Any) -> Any:
        return _interrupted(function, arguments, limit) if _can_interrupt() else _judged(function, arguments, limit)

    return call


def too_slow(seconds: float, told: str) -> TimeLimitError:
    """The error for a call that took longer than the limit."""
    return TimeLimitError(
        f"a learning call must end within {seconds:g} s, but {told}: raise time_limit, or leave the learner out"
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
            alarm.over = True  # if it rings from here on, it hits nobody
    except _Interruption as interruption:
        alarm.over = True
        if interruption.alarm is not alarm:  # that of a call around this one
            raise
        raise too_slow(seconds, "was interrupted then") from None
    finally:
        alarm.clear()


def _can_interrupt() -> bool:
    main = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGALRM) is not None  # None: a handler that Python cannot put back


class _Interruption(BaseException):
    """No Exception: code that goes on after any Exception is to end, too."""

    def __init__(self, alarm: "_Alarm") -> None:
        self.alarm = alarm


class _Alarm:
    """The process's one timer, borrowed for a call: whoever had set it is served in time, and gets it back afterwards."""

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
        """Give it back. The signal module lets a signal that is on its way reach the old handler before it sets a new one."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._former)
        if self._former_due < math.inf:
            signal.setitimer(signal.ITIMER_REAL, _until(self._former_due), self._former_interval)

    def _wind(self) -> None:
        due = min(self._deadline, self._former_due) if callable(self._former) else self._deadline
        signal.setitimer(signal.ITIMER_REAL, _until(due), AGAIN)

    def _ring(self, signal_number: int, frame: Any) -> None:
        now = time.monotonic()
        if self.over:
            return
        if now >= self._former_due and callable(self._former):
            self._former_due = now + self._former_interval if self._former_interval else math.inf
            self._former(signal_number, frame)
        if now >= self._deadline:
            raise _Interruption(self)
        self._wind()


def _until(due: float) -> float:
    """Seconds from now; a timer that is set to nought would never ring."""
    return max(due - time.monotonic(), 1e-6)
