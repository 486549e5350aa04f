"""Runs targets, one input after the other, each from a separate seed."""

import importlib
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from esbas.errors import EsbasError

Target = Callable[[np.random.Generator], None]
TARGETS: dict[str, Target] = {}
SECONDS = 60  # that one input may take, on a busy machine


def target(name: str) -> Callable[[Target], Target]:
    def register(function: Target) -> Target:
        TARGETS[name] = function
        return function

    return register


def find_targets() -> dict[str, Target]:
    """Import all modules of this package: they register their targets."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name != "__main__":
            importlib.import_module(f"fuzz.{module.name}")
    return TARGETS


class TookTooLong(BaseException):
    """Not an Exception, so that no code under test catches it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def stop(signum: int, frame: object) -> None:
        raise TookTooLong(f"an input took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Forbidden(BaseException):
    """Hostile input starts a process or writes elsewhere. Not an Exception, as `TookTooLong`."""


class _Guard:
    """An audit hook: Python calls it before it opens files and starts processes."""

    STARTS = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.fork")
    WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    ALLOWED = (tempfile.gettempdir(), "/dev/null")

    def __init__(self) -> None:
        self.active = False
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event in self.STARTS:
            raise Forbidden(f"{event} {arguments!r:.200}")
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & self.WRITES:
            path = arguments[0]
            if not isinstance(path, str | bytes | os.PathLike):
                return  # a descriptor of a file that is open
            text = str(Path(os.fsdecode(path)).absolute())
            if not text.startswith(self.ALLOWED) and "__pycache__" not in text:
                raise Forbidden(f"{text!r} was written")


_GUARD = _Guard()


@contextmanager
def guarded() -> Iterator[None]:
    """Let nothing start processes or write files outside of the temporary folder."""
    _GUARD.active = True
    try:
        yield
    finally:
        _GUARD.active = False


@contextmanager
def unguarded() -> Iterator[None]:
    """Prepare the valid files that are mutated later."""
    before = _GUARD.active
    _GUARD.active = False
    try:
        yield
    finally:
        _GUARD.active = before


@contextmanager
def nonsense_allowed() -> Iterator[None]:
    """Use a part that has loaded a hostile state whose types and sizes are right.

    Its numbers may be some that no run leads to, so calculations may fail. It must neither hang nor
    use up the memory, and errors of esbas are still one sentence.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except EsbasError:
        raise
    except (ArithmeticError, LookupError, ValueError):
        pass


def try_input(name: str, seed: int, number: int) -> str | None:
    """What went wrong with this input, None if nothing did."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    try:
        with at_most(SECONDS), guarded():
            TARGETS[name](rng)
    except EsbasError as error:
        message = str(error)
        if "\n" in message or not 0 < len(message) < 2_000:
            return f"the message is not one sentence: {message[:2_000]!r}"
    except (Exception, TookTooLong, Forbidden):
        return traceback.format_exc(limit=-6)
    return None
