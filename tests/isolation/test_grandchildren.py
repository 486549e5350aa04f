"""Processes that an isolated learner starts.

They neither keep the run waiting nor answer in its place.
"""

import ctypes
import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from doubles import Faulty
from esbas import Fixed, run
from esbas._internal import limits
from esbas.isolation import Isolated
from esbas.testing import Corridor

HANGING = 120.0  # seconds; longer than the test takes on any machine


def fork_in_python() -> int:
    return os.fork()


def fork_in_compiled_code() -> int:
    """A fork that Python does not notice."""
    return int(ctypes.PyDLL(None).fork())


class Forking(Faulty):
    """Starts a process that stays, and then ends itself, or starts a process that raises."""

    def __init__(self, fork, end, path: Path) -> None:
        super().__init__("bad", "step", fails=lambda call: call == 2, action=1)
        self._fork = fork
        self._end = end
        self._path = path

    def _call(self, where: str) -> None:
        try:
            super()._call(where)
        except RuntimeError:
            if self._end == "the fork raises":
                if self._fork() == 0:
                    raise
                os.wait()
                return
            if self._fork() == 0:
                self._path.write_text(str(os.getpid()))
                time.sleep(HANGING)
                os._exit(0)
            while not (self._path.exists() and self._path.read_text()):
                time.sleep(0.01)
            os._exit(3)


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "pid"
    if (tmp_path / "pid").exists():
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("fork", [fork_in_python, fork_in_compiled_code])
def test_a_process_that_dies_is_noticed_while_a_fork_of_it_lives(fork, path):
    learner = Isolated(partial(Forking, fork, "it dies", path))
    try:
        start = time.monotonic()
        episodes = run(
            Corridor(4, slip=0.0),
            [learner, Faulty("good", action=1)],
            Fixed(["bad", "good"]),
            episodes=3,
        )
        records = limits.limited(lambda: list(episodes), HANGING / 2)()
        assert (
            "The process of learner 'bad' died in step (exit code 3)"
            in records[0].faults[0].message
        )
        assert time.monotonic() - start < HANGING / 2
    finally:
        learner.close()


@pytest.mark.parametrize("fork", [fork_in_python, fork_in_compiled_code])
def test_a_fork_of_the_process_does_not_answer(fork, path):
    learner = Isolated(partial(Forking, fork, "the fork raises", path))
    try:
        policy = learner.policy()
        rng = np.random.default_rng(0)
        for _ in range(4):
            learner.step(None)
            assert policy.act(0, rng) == 1
        assert learner.state_dict()["calls"]["step"] == 4
    finally:
        learner.close()


def test_a_message_that_cannot_be_shown_does_not_end_the_process():
    learner = Isolated(Unprintable)
    try:
        record = next(
            run(
                Corridor(4, slip=0.0),
                [learner, Faulty("good", action=1)],
                Fixed(["bad", "good"]),
                episodes=1,
            )
        )
        assert (
            "raised an error in policy: Mute: (its message cannot be shown)"
            in record.faults[0].message
        )
    finally:
        learner.close()


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Unprintable(Faulty):
    def __init__(self) -> None:
        super().__init__("bad")

    def policy(self):
        raise Mute
