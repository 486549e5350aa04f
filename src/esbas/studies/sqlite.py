"""Studies in a file of SQLite: any number of processes on one machine."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from esbas import schema
from esbas.errors import StoreError
from esbas.files import file_error
from esbas.store.store import Store

try:
    import fcntl
except ImportError:  # on Windows; there, SQLite alone decides who writes next
    fcntl = None  # type: ignore[assignment]

APPLICATION = 0x65736273  # "esbs": marks the file as a store
PATIENCE = 60.0  # seconds to wait for another program that has locked the file


class SQLiteStore(Store):
    """A file with a write-ahead log (WAL), which makes commits cheap.

    With `synchronous` "normal", a killed process loses nothing that was committed; if the machine loses power, the last seconds
    can be lost. "full" waits for the disk at every commit, and loses nothing then, either.

    SQLite's own waiting is unfair: a process can wait for a second while others write. So writers queue up at a lock file.

    Args:
        path: the file; it is created, but its folder must exist.
        synchronous: "normal" or "full".
        create: whether to create the file if there is none.
    """

    def __init__(self, path: str | Path, *, synchronous: Literal["normal", "full"] = "normal", create: bool = True) -> None:
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
        """Wait until it is this process's turn."""
        if fcntl is None or self._queue < 0:
            yield
            return
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _check_file(self, *, create: bool) -> None:
        if not self.path.exists():
            if not create:
                raise StoreError(f"a store must exist, but there is none at {self.url!r}: check the path")
            if not self.path.parent.is_dir():
                raise StoreError(f"the folder of a store must exist, but {str(self.path.parent)!r} does not: create it")
        elif not self.path.is_file():
            raise StoreError(f"a store must be a file, but {self.url!r} is not: check the path")

    def _connect(self) -> None:
        self._queue = self._open_queue()
        try:
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._error(error) from error
        try:
            for setting in ("trusted_schema = off", f"synchronous = {self._synchronous}", "foreign_keys = off"):
                self.execute(f"PRAGMA {setting}")
            if self._is_new():
                self._initialize()
            self._check_version()
        except BaseException:
            self.close()
            raise

    def _open_queue(self) -> int:
        place = self.path.with_name(f"{self.path.name}-lock")
        try:
            return os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise file_error(error, place) from error

    def _is_new(self) -> bool:
        """Whether the file is empty. A database of another program is refused."""
        ((application,),) = self.execute("PRAGMA application_id")
        ((tables,),) = self.execute("SELECT count(*) FROM sqlite_master")
        if application != APPLICATION and (application or tables):
            raise StoreError(f"a store must be a database of esbas, but {self.url!r} belongs to another program: check the path")
        return bool(application != APPLICATION)

    def _initialize(self) -> None:
        with self._queued():
            self.execute("PRAGMA journal_mode = wal")
        with self.write(None):
            if self._is_new():  # nobody else was faster
                self._create_tables()
                self.execute(f"PRAGMA application_id = {APPLICATION}")

    def _error(self, error: Exception) -> StoreError:
        cause = " ".join(str(error).split())[:200]
        if isinstance(error, sqlite3.ProgrammingError):
            return StoreError(f"a store must be open, but {self.url!r} is closed ({cause}): open it again")
        if "locked" in cause:
            return StoreError(f"a store must be free, but another program has locked {self.url!r} ({cause}): end that program")
        if isinstance(error, sqlite3.OperationalError) and "no such" not in cause and "malformed" not in cause:
            return StoreError(f"a store must be readable and writable, but {self.url!r} is not ({cause}): fix the cause")
        return StoreError(f"{self.url!r} must be a whole store of esbas, but is damaged or foreign ({cause}): {schema.REMEDY}")
