"""One process at a time: two that train in one folder would overwrite each other's files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from esbas.errors import TrainingError

try:
    import fcntl
except ImportError:  # not on Unix: nobody is kept out there
    fcntl = None  # type: ignore[assignment]  # as asked below


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Keep others out of a run's folder; the system lets go of it when the process ends, however it does."""
    with (home / ".lock").open("w") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                told = f"one process at a time trains a run, but another one has {str(home)!r}"
                raise TrainingError(f"{told}: wait for it, or give another --out") from None
        yield
