"""Bearer tokens, read from a file that may change while the service runs."""

import hashlib
import hmac
import os
import threading
import time
import tomllib
from datetime import date, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any, NamedTuple

from esbas import schema
from esbas.errors import InvalidValueError, require
from esbas.files import read_file

SHORTEST = 16  # characters of a token
READ, WRITE = "read", "write"
_KEYS = {"name", "token", "sha256", "scope", "expires"}
_DIGITS = 64  # of SHA-256


class AccessToken(NamedTuple):
    """A token, without its text."""

    name: str  # for people
    digest: bytes  # SHA-256 of the token
    writes: bool
    expires: float | None  # seconds since 1970


class TokenFile:
    """The tokens in a file. It is read again when it changes; as long as it cannot be read, all requests are refused.

    Args:
        path: a TOML file with one table `[[token]]` per token: `name`, `scope` ("read" or "write"), `token` or its hash `sha256`,
            and optionally `expires`, a date or a time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._seen: object = None
        self._tokens: tuple[AccessToken, ...] = ()
        self.current()

    def current(self) -> tuple[AccessToken, ...]:
        """The tokens in the file."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  # at every request
            seen = found.st_mtime_ns, found.st_size, found.st_ino
        except OSError:
            seen = None
        with self._lock:
            if seen is None or seen != self._seen:
                self._seen, self._tokens = None, ()
                self._tokens = read_tokens(read_file(self.path), str(self.path))
                self._seen = seen
            return self._tokens

    def find(self, text: bytes) -> AccessToken | None:
        """The token with this text, also if it has expired. All are compared, in constant time."""
        digest, found = hashlib.sha256(text).digest(), None
        for token in self.current():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def read_tokens(content: bytes, where: str) -> tuple[AccessToken, ...]:
    """The tokens in the content of a file."""
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidValueError(f"a token file must be TOML, but {where!r} is not ({str(error)[:200]}): fix it") from None
    listed = tables.get("token")
    if set(tables) != {"token"} or not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise InvalidValueError(f"a token file must consist of tables [[token]], but {where!r} does not: see docs/service.md")
    tokens = tuple(_token(each, f"token {number} in {where!r}") for number, each in enumerate(listed, 1))
    require(len({token.digest for token in tokens}) == len(tokens), "every token is listed once", "remove one", file=where)
    return tokens


def is_expired(token: AccessToken) -> bool:
    """Whether the time of a token is over."""
    return token.expires is not None and token.expires <= time.time()


def _token(table: dict[str, Any], where: str) -> AccessToken:
    unknown = sorted(set(table) - _KEYS)
    if unknown or ("token" in table) == ("sha256" in table):
        what = f"the unknown keys {', '.join(unknown)[:200]}" if unknown else "both or neither of token and sha256"
        raise InvalidValueError(f"{where} must have name, scope, token or sha256, and perhaps expires, but has {what}: fix it")
    name, scope = table.get("name"), table.get("scope")
    if not isinstance(name, str) or scope not in (READ, WRITE):
        raise InvalidValueError(
            f'{where} must have a name and the scope "read" or "write", but has {schema.short(scope)}: fix it'
        )
    return AccessToken(name, _digest(table, where), scope == WRITE, _expiry(table.get("expires"), where))


def _digest(table: dict[str, Any], where: str) -> bytes:
    """The hash of the token. Messages do not contain the token."""
    text, digits = table.get("token"), table.get("sha256")
    if isinstance(text, str) and len(text) >= SHORTEST:
        return hashlib.sha256(text.encode()).digest()
    try:
        if isinstance(digits, str) and len(digits) == _DIGITS:
            return bytes.fromhex(digits)
    except ValueError:
        pass
    rule = f"a token of at least {SHORTEST} characters, or the {_DIGITS} digits of its SHA-256"
    raise InvalidValueError(f"{where} must have {rule}, but has not: create one with secrets.token_urlsafe()")


def _expiry(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time_of_day())
    if not isinstance(value, datetime):
        raise InvalidValueError(
            f"{where} must expire at a time such as 2030-12-31T00:00:00Z, but has {schema.short(value)}: fix it"
        )
    try:
        return value.timestamp()
    except (OverflowError, ValueError, OSError):
        raise InvalidValueError(f"{where} must expire at a time, but {value} is out of range: fix it") from None
