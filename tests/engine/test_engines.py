"""The engines of the library, and one outside it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from engine.plain import Plain
from esbas.engine import ENGINES, Job, Outcome, Resources, find_engine
from esbas.engine.processes import Processes
from esbas.engine.sequential import Sequential
from esbas.engine.testing import check_engine
from esbas.errors import ContractError, EngineError, InvalidValueError, UnknownNameError

WAIT = 300.0


@pytest.mark.parametrize("name", ["sequential", "threads", "processes", "engine.plain:Plain"])
def test_engines_keep_the_contract(name):
    check_engine(lambda: find_engine(name))


def test_the_check_finds_an_engine_that_ignores_stop(monkeypatch):
    class Endless(Sequential):
        def map(self, function, jobs, *, resources, report=print, stop=None):
            return super().map(
                function, jobs, resources=resources, report=report, stop=lambda: False
            )

    monkeypatch.setattr("esbas.engine.testing.PATIENCE", 0.1)
    with pytest.raises(
        ContractError, match="Endless must keep the rule '`stop` reaches running jobs"
    ):
        check_engine(Endless)


def test_engines_are_found_by_name_and_by_module():
    assert isinstance(find_engine("processes"), Processes)
    assert isinstance(find_engine("engine.plain:Plain"), Plain)
    mine = Plain()
    assert find_engine(mine) is mine
    assert list(ENGINES) == ["sequential", "threads", "processes", "ray"]
    with pytest.raises(
        UnknownNameError, match="There is no engine named 'thraeds': did you mean 'threads'"
    ):
        find_engine("thraeds")
    with pytest.raises(
        InvalidValueError, match=r"^An engine must have a method `map`, but .* has none"
    ):
        find_engine("builtins:dict")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"jobs": 0}, r"^`jobs` must be at least 1, but got 0\.$"),
        ({"cpus": 0}, r"^`cpus` must be greater than 0, but got 0\.$"),
        ({"gpus": -1}, r"^`gpus` must be at least 0, but got -1\.$"),
        ({"memory": -1}, r"^`memory` must be at least 0, but got -1\.$"),
    ],
)
def test_resources_are_checked(options, rule):
    with pytest.raises(InvalidValueError, match=rule):
        Resources(**options)


@pytest.mark.parametrize("name", ["sequential", "threads", "processes"])
def test_jobs_have_different_names(name):
    with pytest.raises(InvalidValueError, match="two are named 'same': rename one"):
        find_engine(name).map(end, [Job("same"), Job("same")], resources=Resources())


def end(context, how="well"):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits":
        raise SystemExit(3)
    if how == "odd result":
        return lambda: None
    if how == "odd error":
        raise Odd(key=how)
    return how, os.getpid()


class Odd(Exception):
    """Cannot be unpickled."""

    def __init__(self, *, key):
        super().__init__(f"odd {key}")


def outcomes(jobs, count=1):
    with Processes().map(end, jobs, resources=Resources(jobs=count)) as found:
        return {outcome.name: outcome for outcome in found}


def test_any_end_of_a_worker_gives_an_outcome():
    hows = "killed", "well", "exits", "odd result", "odd error"
    found = outcomes(
        [*(Job(how, (how,)) for how in hows), Job("odd argument", (lambda: None,)), Job("last")]
    )
    assert found["well"].result()[0] == found["last"].result()[0] == "well"
    sentences = {
        "killed": "Job 'killed' must run to its end, but its process ended with exit code -9",
        "exits": "its process ended with exit code 3",
        "odd result": "A result must be picklable, but",
        "odd error": "Odd: odd odd error",
        "odd argument": "Job 'odd argument' must be picklable, but",
    }
    for name, sentence in sentences.items():
        with pytest.raises(EngineError) as caught:
            found[name].result()
        assert sentence in str(caught.value)


def test_workers_are_used_again_and_end():
    found = outcomes([Job(f"{k}") for k in range(5)])
    assert len({outcome.value[1] for outcome in found.values()}) == 1
    assert not multiprocessing.active_children()


def test_the_traceback_of_a_worker_is_a_note():
    (outcome,) = outcomes([Job("a", ("well", "too many"))]).values()
    assert isinstance(outcome.error, TypeError)
    assert "In a worker process" in outcome.error.__notes__[0]


def test_an_outcome_returns_or_raises():
    assert Outcome(name="a", value=3).result() == 3
    with pytest.raises(ZeroDivisionError):
        Outcome(name="a", error=ZeroDivisionError()).result()


PARENT = """
import os, sys, time
from esbas.engine import Job, Resources, find_engine

def wait(context, path, cooperative):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    end = time.monotonic() + 300
    while time.monotonic() < end and not (cooperative and context.stopping()):
        time.sleep(0.01)
    with open(path + ".end", "w") as file:
        file.write("saved")

if __name__ == "__main__":
    jobs = [Job("a", (sys.argv[1], True)), Job("b", (sys.argv[2], False))]
    with find_engine("processes").map(wait, jobs, resources=Resources(jobs=2)) as outcomes:
        list(outcomes)
"""


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    files = [tmp_path / name for name in "ab"]
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, str(script), *map(str, files)], start_new_session=True
    )
    try:
        wait_until(
            lambda: all(file.exists() and file.read_text() for file in files),
            "the jobs did not start",
        )
        parent.kill()
        parent.wait()
        wait_until(
            lambda: not any(map(alive, (int(file.read_text()) for file in files))),
            "workers continue without their parent",
        )
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
    assert (tmp_path / "a.end").read_text() == "saved"  # the job checked `stopping`
    assert not (tmp_path / "b.end").exists()  # the job did not check it


def wait_until(holds, otherwise):
    end = time.monotonic() + WAIT
    while not holds():
        if time.monotonic() > end:
            pytest.fail(otherwise)
        time.sleep(0.02)


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
