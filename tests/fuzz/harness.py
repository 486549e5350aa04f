"""Runs targets, one input after the other, each from a seed of its own."""

import importlib
import pkgutil
import signal
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


def try_input(name: str, seed: int, number: int) -> str | None:
    """What went wrong with this input, None if nothing did."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    try:
        with at_most(SECONDS):
            TARGETS[name](rng)
    except EsbasError as error:
        message = str(error)
        if "\n" in message or not 0 < len(message) < 2_000:
            return f"the message is not one sentence: {message[:2_000]!r}"
    except (Exception, TookTooLong):
        return traceback.format_exc(limit=-6)
    return None
