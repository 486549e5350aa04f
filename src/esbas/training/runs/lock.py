"""A lock on the folder of a run: two processes that train in one folder would overwrite each other's files."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from esbas.errors import FileError, TrainingError
from esbas.files import file_errors

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None  # type: ignore[assignment]  # checked below


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock the folder of a run. The operating system releases the lock when the process ends, also when it is killed.

    The lock file is neither changed nor followed if it is a link: a folder from elsewhere could link to any file.
    """
    path = directory / ".lock"
    with file_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileError(f"a lock must be a plain file, but {str(path)!r} is not: remove it, then try again")
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"a run is trained by one process at a time, but another process is training {str(directory)!r}"
                raise TrainingError(f"{message}: wait for it, or give another --out") from None
        yield
    finally:
        os.close(descriptor)
