"""Files that are written completely or not at all, and errors of files in one sentence."""

import errno
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from esbas.errors import EsbasError, FileError

_DENIED = "permission is denied", "change its permissions, or use another folder"
_GONE = "the folder does not exist any more", "restore the folder, or use another one"
_CAUSES = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.EFBIG: (
        "the file is larger than this process may write",
        "raise the limit (`ulimit -f`)",
    ),
    errno.EMFILE: ("too many files are open", "raise the limit (`ulimit -n`), or use fewer jobs"),
    errno.ENFILE: ("too many files are open on this machine", "close other programs"),
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: ("the disk is read-only", "make it writable, or use another folder"),
    errno.ENOENT: _GONE,
    errno.ESTALE: _GONE,
    errno.ENOTDIR: (
        "there is a file instead of its folder",
        "remove that file, or use another folder",
    ),
    errno.ENAMETOOLONG: ("its name is too long", "use a shorter one"),
    errno.EISDIR: ("it is a folder", "remove that folder, or use another path"),
    errno.ELOOP: ("it is a symbolic link", "remove the link"),
}
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)(-\d+)?\.tmp")
_NO_SYNC = errno.EINVAL, errno.ENOTSUP, errno.EBADF  # file systems that cannot sync folders


def file_error(error: OSError, path: object = None) -> FileError:
    """Return an error of the operating system as one sentence: the path, the cause and a remedy."""
    if path is None:
        path = error.filename
    if path is None:
        what = "Files"
    elif isinstance(path, bytes):
        what = repr(os.fsdecode(path))
    else:
        what = repr(str(path))
    unlisted = (error.strerror or str(error), "fix the cause")
    cause, remedy = _CAUSES.get(error.errno or 0, unlisted)
    found = FileError(
        f"{what} must be readable and writable, but {cause}: {remedy}, then try again."
    )
    found.errno = error.errno
    found.strerror = error.strerror
    found.filename = error.filename
    return found


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError within the block into a `FileError` about `path`."""
    try:
        yield
    except EsbasError:
        raise
    except OSError as error:
        raise file_error(error, path) from error


def read_file(path: str | os.PathLike[str], *, missing: bytes | None = None) -> bytes:
    """Return the content of a file, or `missing` if there is none.

    Pipes and devices are refused, because reading them may never end.
    """
    path = Path(path)
    with file_errors(path):
        if missing is not None and not path.exists():
            return missing
        if path.exists() and not path.is_file():
            raise FileError(
                f"{str(path)!r} must be a plain file, but is not: remove it, then try again."
            )
        # This never waits, also if the file was replaced in the meantime.
        with open_regular(path) as file:
            return file.read()


@contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends.

    If the block fails or the process is killed, `path` stays as it was. Temporary files that a
    killed process left for this path are removed. After the block, the new file survives a power
    failure.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    with file_errors(path), closing(_Folder(path.parent)) as folder:
        _remove_abandoned(path)
        try:
            with temporary.open("xb") as file:  # never follows a link
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        folder.sync()


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file. If that fails or the process is killed, `path` stays as it was."""
    with open_atomically(path) as file:
        file.write(data)


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a file for reading, without waiting.

    Anything else (a FIFO, a device, a directory) raises an OSError. With `follow=False`, so does a
    symbolic link.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if not follow:
        flags |= os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{os.fspath(path)!r} is not a regular file")
    return os.fdopen(descriptor, "rb")


class _Folder:
    """A folder that can be synced, so that a renamed file survives a power failure.

    It is opened before anything is written: if too many files are open, nothing has changed.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        if hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def sync(self) -> None:
        if self._descriptor is None:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files for `path` of processes that no longer exist."""
    own = f"-{threading.get_ident()}.tmp"
    for entry in os.scandir(path.parent):
        found = _TEMPORARY.fullmatch(entry.name)
        if found is None or found["name"] != path.name:
            continue
        process = int(found["process"])
        # An earlier process may have had the number of this one.
        reused = process == os.getpid() and entry.name.endswith(own)
        if reused or not is_running(process):
            with suppress(OSError):
                Path(entry.path).unlink()


def is_running(process: int) -> bool:
    """Return whether there is a process with this number on this machine."""
    if os.name == "nt":  # there, os.kill(process, 0) would send a signal
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True
