"""Helpers for tests that start and end processes."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

WAIT, PAUSE = 300.0, 0.02  # seconds: the machine may be busy


def wait_until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not happen within {WAIT} s")
        time.sleep(PAUSE)


def is_running(process: int | str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
