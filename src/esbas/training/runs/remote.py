"""Runs on machines that do not see the folder of the training: jobs and messages carry files.

The job gets the files of the run when it starts, also when it starts again after its machine was
lost, and sends those that changed after each checkpoint. So the folder always has a checkpoint from
which the run continues, with the same results.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from shutil import rmtree
from typing import Any

from esbas._internal.files import file_errors, is_running, read_file, write_atomically
from esbas.errors import EsbasError, SaveFileError
from esbas.training.display.status import Status
from esbas.training.runs.clock import NAME as CLOCK
from esbas.training.runs.one_run import CHECKPOINT, SaveOptions, run_folder, train_seed
from esbas.training.runs.plan import Plan

# Written last, in this order: a checkpoint never has an episode that the log lacks.
_LAST = (CHECKPOINT, CLOCK)
_SCRATCH = re.compile(r"esbas-run-(\d+)-\w+")


@dataclass(frozen=True)
class RunFiles:
    """The files of a run.

    Pickling reads them from its folder, so that a job always starts with the current ones.
    """

    directory: Path
    content: dict[str, bytes] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        content = {name: read_file(self.directory / name) for name in _signatures(self.directory)}
        return RunFiles, (self.directory, content)


@dataclass(frozen=True, kw_only=True)
class RunUpdate:
    """A message: files of a run that are new or changed, and the names of all that exist."""

    seed: int
    content: Mapping[str, bytes]
    names: frozenset[str]


def train_elsewhere(
    plan: Plan,
    seed: int,
    folder: Path,
    files: RunFiles,
    *,
    saving: SaveOptions,
    report: Callable[[Status | RunUpdate], None],
    stop: Callable[[], bool],
) -> None:
    """Train as `train_seed` does, in a temporary folder of this machine.

    `report` also receives updates for `write_update`.
    """
    with _scratch_folder() as scratch:
        directory = run_folder(scratch, seed)
        _write_files(directory, files.content)
        sent = _signatures(directory)

        def send_update() -> None:
            nonlocal sent
            found = _signatures(directory)
            changed = {}
            for name, signature in found.items():
                if signature != sent.get(name):
                    changed[name] = read_file(directory / name)
            if changed or found.keys() != sent.keys():
                report(RunUpdate(seed=seed, content=changed, names=frozenset(found)))
            sent = found

        def report_status(status: Status) -> None:
            report(status)
            checkpoint = directory / CHECKPOINT
            if checkpoint.exists() and _signature(checkpoint) != sent.get(CHECKPOINT):
                send_update()

        try:
            train_seed(plan, seed, scratch, saving=saving, report=report_status, stop=stop)
        except EsbasError as error:
            message = str(error).replace(str(scratch), str(folder))  # the folder that people know
            error.args = (message, *error.args[1:])
            raise
        finally:
            send_update()


def write_update(directory: Path, update: RunUpdate) -> None:
    """Bring the folder of a run up to date.

    If this is killed, the folder still has a checkpoint with its files.
    """
    _write_files(directory, update.content)
    for name in _signatures(directory).keys() - update.names:
        with file_errors(directory / name):
            (directory / name).unlink(missing_ok=True)


def _write_files(directory: Path, content: Mapping[str, bytes]) -> None:
    others = sorted(content.keys() - set(_LAST))
    last = [name for name in _LAST if name in content]
    for name in [*others, *last]:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            message = f"The files of a run must be in its folder, but one is named {name!r}"
            raise SaveFileError(f"{message}: use a cluster that you trust.")
        with file_errors(directory / name):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(directory / name, content[name])


def _signatures(directory: Path) -> dict[str, tuple[int, int, int]]:
    """Return the signatures of the files of a run, by their paths within its folder.

    Hidden files are left out.
    """
    found: dict[str, tuple[int, int, int]] = {}
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            is_hidden = name.startswith(".")
            if not is_hidden and path.is_file() and not path.is_symlink():
                found[path.relative_to(directory).as_posix()] = _signature(path)
    return found


def _signature(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """Create a temporary folder. Those that a killed job left on this machine are removed."""
    for path in Path(tempfile.gettempdir()).glob("esbas-run-*"):
        found = _SCRATCH.fullmatch(path.name)
        if found is not None and not is_running(int(found[1])):
            rmtree(path, ignore_errors=True)
    prefix = f"esbas-run-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
