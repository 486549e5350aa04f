"""Studies in PostgreSQL: any number of processes on any number of machines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from esbas import schema
from esbas.errors import MissingExtraError, StoreError
from esbas.store.store import Store

try:
    import psycopg
except ImportError:
    raise MissingExtraError(
        "a study in PostgreSQL needs psycopg, which is not installed: pip install 'esbas[postgresql]'"
    ) from None

EVERY_STUDY = 0x6573626173  # the number of the lock for creating tables and studies: "esbas"
STUCK = "60s"  # a transaction in which nothing happens for this long is rolled back, so that its study is free again
_CLOCK = "extract(epoch FROM clock_timestamp())::float8"


class PostgreSQLStore(Store):
    """Writers of a study queue up at its row; those of other studies do not wait. The clock is that of the server.

    Args:
        url: `postgresql://user:password@host:port/database`, or what psycopg accepts besides.
        create: whether to create the tables if there are none.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        super().__init__(_without_password(url))
        self._target, self._create = url, create
        self._left: list[psycopg.Connection[tuple[Any, ...]]] = []  # of the process from which this one was forked
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._open = True
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def write(self, study: int | None) -> Iterator[float]:
        self.execute("BEGIN")
        try:
            if study is None:
                self.execute("SELECT pg_advisory_xact_lock(?)", (EVERY_STUDY,))
                rows = self.execute(f"SELECT {_CLOCK}")
            else:
                rows = self.execute(f"SELECT {_CLOCK} FROM esbas_study WHERE id = ? FOR UPDATE", (study,))  # noqa: S608
            if not rows:
                raise StoreError(f"a study must be in its store, but it was removed from {self.url!r}: open it again")
            yield float(rows[0][0])
            self.execute("COMMIT")
        except BaseException:
            connection = self._connection
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.rollback()
            raise

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            cursor = self._connected().execute(statement.replace("?", "%s").encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise self._error(error) from error

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            with self._connected().cursor() as cursor:
                cursor.executemany(statement.replace("?", "%s").encode(), rows)
        except psycopg.Error as error:
            raise self._error(error) from error

    def reopen(self) -> None:
        if self._connection is not None:
            self._left.append(self._connection)  # closing it here would end the connection of the other process
        self._connection = None

    def close(self) -> None:
        with self.lock:
            self._open = False
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """The connection; a new one if there is none, because the server was restarted or the network was down."""
        if not self._open:
            raise StoreError(f"a store must be open, but {self.url!r} is closed: open it again")
        if self._connection is None:
            self._connection = psycopg.connect(
                self._target, autocommit=True, options=f"-c idle_in_transaction_session_timeout={STUCK}"
            )
        return self._connection

    def _prepare(self) -> None:
        if not self._has_tables():
            if not self._create:
                raise StoreError(f"a store must exist, but there is none at {self.url!r}: check the URL")
            with self.write(None):
                if not self._has_tables():  # nobody else was faster
                    self._create_tables()
        self._check_version()

    def _has_tables(self) -> bool:
        return self.execute("SELECT to_regclass('esbas_version')") != [(None,)]

    def _error(self, error: psycopg.Error) -> StoreError:
        cause = " ".join(str(error).split())[:200]
        if self._connection is None or self._connection.closed:
            self._connection = None  # the next call connects again
            return StoreError(f"PostgreSQL must be reachable, but {self.url!r} is not ({cause}): start it, then try again")
        return StoreError(f"{self.url!r} must be a whole store of esbas, but is damaged or foreign ({cause}): {schema.REMEDY}")


def _without_password(url: str) -> str:
    """The URL for messages."""
    try:
        parts = urlsplit(url)
        place = f"{parts.username or ''}@" * bool(parts.username) + url.partition("://")[2].rpartition("@")[2].partition("/")[0]
        return urlunsplit((parts.scheme, place.partition("?")[0], parts.path, "", ""))
    except ValueError:
        return "postgresql://..."
