"""Studies in PostgreSQL: any number of processes on any number of machines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from esbas._internal import schema
from esbas.errors import MissingExtraError, StoreError
from esbas.studies.store import Store

try:
    import psycopg
except ImportError:
    raise MissingExtraError(
        "Studies in PostgreSQL need psycopg, which is not installed: "
        "pip install 'esbas[postgresql]'."
    ) from None

EVERY_STUDY = 0x6573626173  # the number of the lock for creating tables and studies: "esbas"
# A transaction in which nothing happens for this long is rolled back, which unlocks its study.
STUCK = "60s"
_CLOCK = "extract(epoch FROM clock_timestamp())::float8"
_LOCK_STUDY = f"SELECT {_CLOCK} FROM esbas_study WHERE id = ? FOR UPDATE"  # noqa: S608


class PostgreSQLStore(Store):
    """Studies in a PostgreSQL database.

    Writers of a study queue up at its row; those of other studies do not wait. The clock is that of
    the server.

    Args:
        url: `postgresql://user:password@host:port/database`, or what psycopg accepts besides.
        create: whether to create the tables if there are none.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        super().__init__(_without_password(url))
        self._target = url
        self._create = create
        # Connections of the process from which this one was forked
        self._left: list[psycopg.Connection[tuple[Any, ...]]] = []
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
                rows = self.execute(_LOCK_STUDY, (study,))
            if not rows:
                raise StoreError(f"The study was removed from {self.url!r}: open it again.")
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
            query = statement.replace("?", "%s").encode()
            cursor = self._connected().execute(query, parameters or None)
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
            # Closing it here would end the connection of the other process.
            self._left.append(self._connection)
        self._connection = None

    def close(self) -> None:
        with self.lock:
            self._open = False
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """Return the connection; a new one if the last one was lost."""
        if not self._open:
            raise StoreError(f"The store {self.url!r} is closed: open it again.")
        if self._connection is None:
            self._connection = psycopg.connect(
                self._target,
                autocommit=True,
                options=f"-c idle_in_transaction_session_timeout={STUCK}",
            )
        return self._connection

    def _prepare(self) -> None:
        if not self._has_tables():
            if not self._create:
                raise StoreError(f"There is no store at {self.url!r}: check the URL.")
            with self.write(None):
                if not self._has_tables():  # another process may have been faster
                    self._create_tables()
        self._check_version()

    def _has_tables(self) -> bool:
        return self.execute("SELECT to_regclass('esbas_version')") != [(None,)]

    def _error(self, error: psycopg.Error) -> StoreError:
        cause = " ".join(str(error).split())[:200]
        if self._connection is None or self._connection.closed:
            self._connection = None  # the next call connects again
            return StoreError(
                f"PostgreSQL cannot be reached at {self.url!r} ({cause}): start it, then try again."
            )
        return StoreError(
            f"{self.url!r} is not a store of esbas, or is damaged ({cause}): {schema.REMEDY}."
        )


def _without_password(url: str) -> str:
    """Return the URL for messages."""
    try:
        parts = urlsplit(url)
        after_user = url.partition("://")[2].rpartition("@")[2]
        host = after_user.partition("/")[0].partition("?")[0]
        if parts.username:
            host = f"{parts.username}@{host}"
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return "postgresql://..."
