"""Workers, and what is left of them when processes are killed or interrupted."""

import os
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from esbas.engine import Job, Resources, run_parts
from esbas.engine.processes import Processes
from processes import WAIT, is_running, wait_until

HERE = str(Path(__file__).parent.parent)
SWEEP = """
import signal, sys
sys.path.insert(0, {here!r})
signal.signal(signal.SIGINT, signal.default_int_handler)
from functools import partial
from engine.test_orphans import hold, program
if __name__ == "__main__":
    program({folder!r}, {count})
"""


def hold(folder, name):
    """A part in plain Python that never ends, and never asks whether to stop."""
    (Path(folder) / f"{name}.{os.getpid()}").touch()
    while True:
        time.sleep(0.05)


def program(folder, count):
    parts = {f"part{k}": partial(hold, folder, f"part{k}") for k in range(count)}
    try:
        run_parts(
            parts, load=lambda _: None, store=print, jobs=count, description="parts", processes=True
        )
    except KeyboardInterrupt:
        os._exit(130)


@pytest.fixture
def start(launch, tmp_path):
    """Starts a sweep. Its errors go to the file `log`."""

    def new(folder, count=2):
        folder.mkdir()
        script = tmp_path / "sweep.py"
        script.write_text(SWEEP.format(here=HERE, folder=str(folder), count=count))
        return launch([sys.executable, str(script)], folder / "log")

    return new


@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_sweep_leaves_no_orphans(start, tmp_path, attempt):
    folder = tmp_path / f"attempt{attempt}"
    process = start(folder)
    wait_until(lambda: len(list(folder.glob("part*"))) == 2, "the start of both parts")
    workers = [int(path.suffix[1:]) for path in folder.glob("part*")]
    assert all(map(is_running, workers))
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_running, workers)), "the end of the workers")


@pytest.mark.services
def test_ctrl_c_while_workers_start_prints_no_traceback(start, tmp_path):
    delays = np.linspace(0.0, 1.0, 6)
    for k, delay in enumerate(delays):
        folder = tmp_path / f"delay{k}"
        process = start(folder, count=3)
        wait_until(
            lambda process=process: _children(process.pid) or process.poll() is not None,
            "the start of a worker",
        )
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
        assert process.wait(WAIT) == 130
        assert "Traceback" not in (folder / "log").read_text()
        assert not list(folder.glob("*.core"))


def _children(process):
    path = Path(f"/proc/{process}/task/{process}/children")
    return path.read_text().split() if path.exists() else []


def fork_and_die(context, folder):
    """Leave a grandchild that holds all files of this worker, and die."""
    child = os.fork()
    if child == 0:
        time.sleep(WAIT)
        os._exit(0)
    (Path(folder) / str(child)).touch()
    os.kill(os.getpid(), signal.SIGKILL)


def quick(context, number):
    return number


def either(context, folder, number):
    return fork_and_die(context, folder) if number is None else quick(context, number)


def test_a_worker_that_dies_while_a_grandchild_holds_its_pipe(tmp_path):
    start = time.monotonic()
    jobs = [
        Job("dies", (str(tmp_path), None)),
        *(Job(f"{k}", (str(tmp_path), k)) for k in range(3)),
    ]
    try:
        with Processes().map(either, jobs, resources=Resources(jobs=2)) as outcomes:
            found = {outcome.name: outcome for outcome in outcomes}
    finally:
        for path in tmp_path.iterdir():
            with suppress(ProcessLookupError):
                os.kill(int(path.name), signal.SIGKILL)
    assert time.monotonic() - start < WAIT / 2  # not until the grandchild ends
    assert "its process ended with exit code -9" in str(found["dies"].error)
    assert [found[f"{k}"].result() for k in range(3)] == [0, 1, 2]


def report_until_killed(context, number):
    """Die in the middle of a message, when the worker holds every lock that it ever holds."""
    if number == 0:
        import threading

        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
        while True:
            context.report(b"x" * 1000)
    return number


def test_a_worker_killed_while_it_sends_does_not_hang_the_rest():
    for _ in range(3):
        with Processes().map(
            report_until_killed, [Job(f"{k}", (k,)) for k in range(4)], resources=Resources(jobs=2)
        ) as outcomes:
            found = {outcome.name: outcome for outcome in outcomes}
        assert "its process ended with exit code -9" in str(found["0"].error)
        assert [found[f"{k}"].result() for k in (1, 2, 3)] == [1, 2, 3]
