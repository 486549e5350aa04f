"""Requests over HTTP: connections are kept, and requests that fail are repeated."""

import http.client
import json
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from esbas import errors
from esbas._internal import schema
from esbas.errors import LONGEST_MESSAGE, EsbasError, InvalidValueError, ServiceError, require

PAUSE = 0.05  # seconds before the first repetition
LONGEST_PAUSE = 2.0  # seconds
MOST_KEPT = 16  # idle connections
LONGEST_LINE = 2**24  # characters of an event in a stream
_REMEDY = "check that the URL is that of esbas serve"
_BUSY = (408, 429, 502, 503, 504)  # statuses after which a request is repeated
_FAILURES = (OSError, http.client.HTTPException)


class Connection:
    """Sends requests to a service.

    It is safe to share between threads and with forked processes: each request has its own
    connection.

    Args:
        url: `http://host:port` or `https://host:port`.
        token: sent as a bearer token.
        timeout: seconds to wait for the service, each time something is sent or received.
        patience: seconds during which a request that fails is sent again.
    """

    def __init__(self, url: str, *, token: str | None, timeout: float, patience: float) -> None:
        parts = urlsplit(url)
        has_user = "@" in parts.netloc
        plain = parts.hostname and not parts.query and not has_user
        require(
            parts.scheme in ("http", "https") and bool(plain),
            f"`url` must be http://host:port or https://host:port, but got {url!r}.",
        )
        require(timeout > 0, f"`timeout` must be greater than 0, but got {timeout!r}.")
        require(patience >= 0, f"`patience` must not be negative, but got {patience!r}.")
        self.url = url.rstrip("/")
        self._kind: type[http.client.HTTPConnection] = http.client.HTTPConnection
        if parts.scheme == "https":
            self._kind = http.client.HTTPSConnection
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout
        self._patience = patience
        self._headers = {} if token is None else {"authorization": f"Bearer {_plain(token)}"}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._idle: list[http.client.HTTPConnection] = []

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request and return the answer.

        A request without an answer is sent again: it must have a key, or no effect if repeated.
        """
        target = f"{self._prefix}{path}"
        given = {name: value for name, value in (query or {}).items() if value is not None}
        if given:
            target += f"?{urlencode(given)}"
        content = None if body is None else json.dumps(body).encode()
        end = time.monotonic() + self._patience
        pause = PAUSE
        while True:
            try:
                status, wait, answer = self._exchange(method, target, content)
            except _FAILURES as error:
                failure: EsbasError = self._unreachable(error)
                wait = 0.0
            else:
                if status == 200:
                    return read_answer(answer)
                failure = error_of(status, answer)
                if status not in _BUSY:
                    raise failure
            # At random, so that clients do not repeat their requests at the same time
            rest = max(wait, random.uniform(0.5, 1.0) * pause)  # noqa: S311
            if time.monotonic() + rest > end:
                raise failure
            time.sleep(rest)
            pause = min(2 * pause, LONGEST_PAUSE)

    def lines(self, path: str, headers: Mapping[str, str]) -> Iterator[str]:
        """Yield the lines of a stream until it ends.

        If the service cannot be reached, raise a ServiceError.
        """
        connection = self._new()
        try:
            connection.request("GET", f"{self._prefix}{path}", headers={**self._headers, **headers})
            answer = connection.getresponse()
            if answer.status != 200:
                raise error_of(answer.status, answer.read())
            while line := answer.readline(LONGEST_LINE):
                yield line.decode("utf-8", "replace").rstrip("\n")
        except _FAILURES as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            idle = self._idle
            self._idle = []
        for connection in idle:
            connection.close()

    def _exchange(
        self, method: str, target: str, content: bytes | None
    ) -> tuple[int, float, bytes]:
        """Send a request once, and return status, seconds to wait, and body of the answer."""
        connection, kept = self._take()
        headers = dict(self._headers)
        if content is not None:
            headers["content-type"] = "application/json"
        try:
            try:
                connection.request(method, target, content, headers)
            except (BrokenPipeError, ConnectionResetError):
                if kept:
                    raise  # the service has closed an idle connection
                # Otherwise, it has refused the request before it was sent completely: the answer
                # may be there.
            answer = connection.getresponse()
            body = answer.read()
            retry_after = answer.getheader("retry-after", "0")
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._keep(connection)
        wait = float(retry_after) if retry_after.isdecimal() else 0.0
        return answer.status, wait, body

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if os.getpid() != self._process:
                # The connections belong to the process from which this one was forked.
                self._process = os.getpid()
                self._idle = []
            if self._idle:
                return self._idle.pop(), True
        return self._new(), False

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MOST_KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _new(self) -> http.client.HTTPConnection:
        return self._kind(self._host, self._port, timeout=self._timeout)

    def _unreachable(self, error: Exception) -> ServiceError:
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return ServiceError(
            f"The service at {self.url} cannot be reached ({cause}): start it, or check the URL."
        )


def read_answer(text: bytes | str) -> Any:
    """Parse the JSON of an answer."""
    try:
        return schema.read_json(text, "an answer", remedy=_REMEDY)
    except InvalidValueError as error:
        raise ServiceError(str(error)) from None


def checked(answer: Any, shape: Any) -> Any:
    """Return the answer, if it has this shape (see `esbas._internal.schema`)."""
    try:
        schema.check(answer, shape, "an answer", remedy=_REMEDY)
    except InvalidValueError as error:
        raise ServiceError(str(error)) from None
    return answer


def part(answer: Any, name: str, shape: Any) -> Any:
    """Return a part of an answer, if it has this shape."""
    return checked(answer, {name: shape, str: Any})[name]


def error_of(status: int, body: bytes) -> EsbasError:
    """Return the error in an answer, of the class that a study on this machine raises."""
    try:
        found = part(read_answer(body), "error", {"type": str, "message": str, str: Any})
    except ServiceError:
        text = schema.short(body[:60].decode("latin-1"))
        return ServiceError(
            f"A service must answer in JSON, but this one answered {status} {text}: {_REMEDY}."
        )
    message = " ".join(found["message"][:LONGEST_MESSAGE].split())
    if found["type"].endswith("Error"):
        known = getattr(errors, found["type"], None)
        if isinstance(known, type) and issubclass(known, EsbasError):
            return known(message)
    return ServiceError(message)


def _plain(token: str) -> str:
    fits = (
        isinstance(token, str)
        and token.isascii()
        and token.isprintable()
        and " " not in token
        and token != ""
    )
    if not fits:
        # Without the token: messages may be logged.
        raise InvalidValueError(
            "A token must be printable ASCII without spaces, but this one is not: copy it again."
        )
    return token
