"""Shared settings.

Property tests always use the same examples, and an option rewrites the golden files.
"""

import importlib.util
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

if importlib.util.find_spec("d3rlpy") is None:
    collect_ignore = ["d3"]  # `make test-d3rlpy` runs them, in a separate environment


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests that need a browser unless they are asked for.

    `make test-browser` installs one and runs them.
    """
    if collection_path != Path(__file__).parent / "browser":
        return None
    places = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(collection_path in (place, *place.parents) for place in places) else True


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files in tests/golden instead of comparing with them",
    )


@pytest.fixture
def launch() -> Iterator[Callable[[Sequence[str], Path], subprocess.Popen[bytes]]]:
    """Starts a command in a process group that is killed after the test.

    Its output is added to a file.
    """
    started: list[subprocess.Popen[bytes]] = []

    def new(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("a") as file:
            started.append(
                subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
            )
        return started[-1]

    yield new
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
