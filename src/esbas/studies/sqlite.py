"""Studies in a file of SQLite: any number of processes on one machine."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from esbas._internal import schema
from esbas._internal.files import file_error
from esbas.errors import StoreError
from esbas.studies.store import Store

try:
    import fcntl
except ImportError:  # on Windows; there, SQLite alone decides who writes next
    fcntl = None  # type: ignore[assignment]

APPLICATION = 0x65736273  # "esbs": marks the file as a store
PATIENCE = 60.0  # seconds to wait for another program that has locked the file


class SQLiteStore(Store):
    """A file with a write-ahead log (WAL), which makes commits cheap.

    With `synchronous` "normal", a killed process loses nothing that was committed; if the machine
    loses power, the last seconds can be lost. "full" waits for the disk at every commit, and loses
    nothing then, either.

    SQLite's own waiting is unfair: a process can wait for a second while others write. So writers
    queue up at a lock file.

    Args:
        path: the file; it is created, but its folder must exist.
        synchronous: "normal" or "full".
        create: whether to create the file if there is none.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["normal", "full"] = "normal",
        create: bool = True,
    ) -> None:
        self.path = Path(path).absolute()
        super().__init__(str(self.path))
        self._synchronous = synchronous
        self._queue = -1  # the lock file
        self._connection: sqlite3.Connection
        self._left: list[sqlite3.Connection] = []  # of the process from which this one was forked
        self._check_file(create=create)
        self._connect()

    @contextmanager
    def write(self, study: int | None) -> Iterator[float]:
        del study  # SQLite locks the whole file
        with self._queued():
            self.execute("BEGIN IMMEDIATE")
            try:
                yield time.time()
                self.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self._error(error) from error

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            self._connection.executemany(statement, rows)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self._error(error) from error

    def reopen(self) -> None:
        self._left.append(self._connection)  # closing it here would disturb the other process
        self._connect()

    def close(self) -> None:
        with self.lock:
            self._connection.close()
            if self._queue >= 0:
                os.close(self._queue)
                self._queue = -1

    @contextmanager
    def _queued(self) -> Iterator[None]:
        """Wait for the lock file, and hold it within the block."""
        if fcntl is None or self._queue < 0:
            yield
            return
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _check_file(self, *, create: bool) -> None:
        if self.path.exists():
            if not self.path.is_file():
                raise StoreError(
                    f"A store must be a file, but {self.url!r} is not: check the path."
                )
            return
        if not create:
            raise StoreError(f"There is no store at {self.url!r}: check the path.")
        if not self.path.parent.is_dir():
            folder = str(self.path.parent)
            raise StoreError(
                f"The folder of a store must exist, but {folder!r} does not: create it."
            )

    def _connect(self) -> None:
        self._queue = self._open_queue()
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._error(error) from error
        try:
            self.execute("PRAGMA trusted_schema = off")
            self.execute(f"PRAGMA synchronous = {self._synchronous}")
            self.execute("PRAGMA foreign_keys = off")
            if self._is_new():
                self._initialize()
            self._check_version()
        except BaseException:
            self.close()
            raise

    def _open_queue(self) -> int:
        path = self.path.with_name(f"{self.path.name}-lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        flags |= getattr(os, "O_NOFOLLOW", 0)  # Windows has none
        try:
            return os.open(path, flags, 0o666)
        except OSError as error:
            raise file_error(error, path) from error

    def _is_new(self) -> bool:
        """Return whether the file is empty. A database of another program is refused."""
        ((application,),) = self.execute("PRAGMA application_id")
        ((tables,),) = self.execute("SELECT count(*) FROM sqlite_master")
        if application != APPLICATION and (application or tables):
            raise StoreError(
                f"A store must be a database of esbas, but {self.url!r} belongs to another "
                "program: check the path."
            )
        return bool(application != APPLICATION)

    def _initialize(self) -> None:
        with self._queued():
            self.execute("PRAGMA journal_mode = wal")
        with self.write(None):
            if self._is_new():  # another process may have been faster
                self._create_tables()
                self.execute(f"PRAGMA application_id = {APPLICATION}")

    def _error(self, error: Exception) -> StoreError:
        cause = " ".join(str(error).split())[:200]
        if isinstance(error, sqlite3.ProgrammingError):
            return StoreError(f"The store {self.url!r} is closed ({cause}): open it again.")
        if "locked" in cause:
            return StoreError(
                f"Another program has locked the store {self.url!r} ({cause}): end that program."
            )
        damaged = "no such" in cause or "malformed" in cause
        if isinstance(error, sqlite3.OperationalError) and not damaged:
            return StoreError(
                f"The store {self.url!r} cannot be read or written ({cause}): fix the cause."
            )
        return StoreError(
            f"{self.url!r} is not a store of esbas, or is damaged ({cause}): {schema.REMEDY}."
        )
