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

from esbas._internal import schema
from esbas._internal.files import read_file
from esbas._internal.links import page
from esbas.errors import InvalidValueError, require

SHORTEST = 16  # characters of a token
READ = "read"
WRITE = "write"
_KEYS = {"name", "token", "sha256", "scope", "expires"}
_DIGITS = 64  # of SHA-256


class AccessToken(NamedTuple):
    """A token, without its text."""

    name: str  # identifies the client
    digest: bytes  # SHA-256 of the token
    writes: bool
    expires: float | None  # seconds since 1970


class TokenFile:
    """The tokens in a file.

    The file is read again when it changes. While it cannot be read, all requests are refused.

    Args:
        path: a TOML file with one table `[[token]]` per token: `name`, `scope` ("read" or "write"),
            `token` or its hash `sha256`, and optionally `expires`, a date or a time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._seen: object = None
        self._tokens: tuple[AccessToken, ...] = ()
        self.current()

    def current(self) -> tuple[AccessToken, ...]:
        """Return the tokens in the file."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  # at every request
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            seen = None
        with self._lock:
            if seen is None or seen != self._seen:
                self._seen = None
                self._tokens = ()
                self._tokens = read_tokens(read_file(self.path), str(self.path))
                self._seen = seen
            return self._tokens

    def find(self, text: bytes) -> AccessToken | None:
        """Return the token with this text, also if it has expired, or None.

        All tokens are compared, so that the time does not depend on which one it is.
        """
        digest = hashlib.sha256(text).digest()
        found = None
        for token in self.current():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def read_tokens(content: bytes, where: str) -> tuple[AccessToken, ...]:
    """Return the tokens in the content of a file. Messages do not contain them."""
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidValueError(
            f"A token file must be TOML, but {where!r} is not ({str(error)[:200]}): fix it."
        ) from None
    listed = tables.get("token")
    is_list = isinstance(listed, list) and all(isinstance(each, dict) for each in listed)
    if set(tables) != {"token"} or not is_list:
        raise InvalidValueError(
            f"A token file must consist of tables [[token]], but {where!r} does not: "
            f"see {page('service')}."
        )
    tokens = []
    for number, table in enumerate(tables["token"], 1):
        tokens.append(_token(table, f"Token {number} in {where!r}"))
    digests = {token.digest for token in tokens}
    require(
        len(digests) == len(tokens),
        f"Every token must be listed once, but {where!r} has one twice: remove it.",
    )
    return tuple(tokens)


def is_expired(token: AccessToken) -> bool:
    """Return whether a token has expired."""
    return token.expires is not None and token.expires <= time.time()


def _token(table: dict[str, Any], where: str) -> AccessToken:
    problem = None
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        problem = f"the unknown keys {', '.join(unknown)[:200]}"
    elif ("token" in table) == ("sha256" in table):
        problem = "both or neither of token and sha256"
    if problem is not None:
        raise InvalidValueError(
            f"{where} must have name, scope, token or sha256, and perhaps expires, but has "
            f"{problem}: fix it."
        )
    name = table.get("name")
    scope = table.get("scope")
    if not isinstance(name, str):
        raise InvalidValueError(f"{where} must have a name, but has {schema.short(name)}: fix it.")
    if scope not in (READ, WRITE):
        raise InvalidValueError(
            f'{where} must have the scope "read" or "write", but has {schema.short(scope)}: fix it.'
        )
    return AccessToken(
        name=name,
        digest=_digest(table, where),
        writes=scope == WRITE,
        expires=_expiry(table.get("expires"), where),
    )


def _digest(table: dict[str, Any], where: str) -> bytes:
    """Return the hash of the token."""
    text = table.get("token")
    digits = table.get("sha256")
    if isinstance(text, str) and len(text) >= SHORTEST:
        return hashlib.sha256(text.encode()).digest()
    try:
        if isinstance(digits, str) and len(digits) == _DIGITS:
            return bytes.fromhex(digits)
    except ValueError:
        pass
    raise InvalidValueError(
        f"{where} must have a token of at least {SHORTEST} characters, or the {_DIGITS} digits of "
        "its SHA-256, but has not: create one with secrets.token_urlsafe()."
    )


def _expiry(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time_of_day())
    if not isinstance(value, datetime):
        raise InvalidValueError(
            f"{where} must expire at a time such as 2030-12-31T00:00:00Z, but has "
            f"{schema.short(value)}: fix it."
        )
    try:
        return value.timestamp()
    except (OverflowError, ValueError, OSError):
        raise InvalidValueError(
            f"{where} must expire at a time, but {value} is out of range: fix it."
        ) from None
