"""A lock on the folder of a run.

Two processes that train in one folder would overwrite each other's files.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from esbas._internal.files import file_errors
from esbas.errors import FileError, TrainingError

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None  # type: ignore[assignment]  # checked below


def require_unlocked(directory: Path) -> None:
    """Raise an error if a process has locked this folder. Nothing is created."""
    if (directory / ".lock").exists():
        with locked(directory):
            pass


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock the folder of a run.

    The operating system releases the lock when the process ends, also when it is killed.

    The lock file is neither changed nor followed if it is a link: a folder from elsewhere could
    link to any file.
    """
    path = directory / ".lock"
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_NONBLOCK"):  # Windows has neither
        flags |= getattr(os, name, 0)
    with file_errors(path):
        descriptor = os.open(path, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileError(
                f"A lock must be a plain file, but {str(path)!r} is not: remove it, then try again."
            )
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                other = f"another process is training {str(directory)!r}"
                raise TrainingError(
                    f"A run is trained by one process at a time, but {other}: "
                    "wait for it, or give another --out."
                ) from None
        yield
    finally:
        os.close(descriptor)
