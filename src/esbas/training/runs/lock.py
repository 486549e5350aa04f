"""A lock on the folder of a run: two processes that train in one folder would overwrite each other's files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from esbas.errors import TrainingError

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None  # type: ignore[assignment]  # checked below


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock the folder of a run. The operating system releases the lock when the process ends, also when it is killed."""
    with (directory / ".lock").open("w") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"a run is trained by one process at a time, but another process is training {str(directory)!r}"
                raise TrainingError(f"{message}: wait for it, or give another --out") from None
        yield
