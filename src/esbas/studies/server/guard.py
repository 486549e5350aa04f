"""Middleware that checks the token, the size and the rate of every request.

It is plain ASGI, because it runs for every request.
"""

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Collection
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esbas.errors import EsbasError
from esbas.studies.server.answers import Answer, error_answer
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.tokens import TokenFile, is_expired

PUBLIC = frozenset({"/", "/docs", "/favicon.ico", "/healthz", "/openapi.json"})
PUBLIC_FOLDER = "/static/"  # files without data of studies
READING = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_CLIENTS = 10_000  # whose rate is known


class Guard:
    """Middleware that refuses requests.

    Args:
        app: the application behind it.
        tokens: who may use the service; None: every program on this machine.
        limits: see `ServiceLimits`.
        public: paths that need no token.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: TokenFile | None,
        limits: ServiceLimits,
        public: Collection[str] = PUBLIC,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._limits = limits
        self._public = public
        self._rates = RateLimits(limits.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if b"%" in scope.get("raw_path", b""):
            scope = {**scope, "path": path_of(scope["raw_path"])}
        refusal = self._refusal(scope)
        body = None
        if refusal is None:
            try:
                async with asyncio.timeout(self._limits.body_seconds):
                    body = await self._body(receive)
            except TimeoutError:
                refusal = self._too_slow()
            else:
                refusal = self._too_large("more") if body is None else None
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        first = True

        async def replay() -> Message:
            nonlocal first
            if first:
                first = False
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        await self._app(scope, replay, send)

    def _refusal(self, scope: Scope) -> Answer | None:
        """Return the answer to a request that is refused because of its headers, or None."""
        headers = Headers(scope=scope)
        path = str(scope["path"])
        client = str(scope["client"][0]) if scope.get("client") else ""
        public = path in self._public or path.startswith(PUBLIC_FOLDER)
        refusal = None
        if self._tokens is None:
            if not is_local(headers):
                message = (
                    "Without tokens, the service is for programs on this machine and its own page, "
                    "but Host or Origin is another: connect to 127.0.0.1, or use --token-file."
                )
                refusal = error_answer(403, "Forbidden", message)
        elif not public:
            client, refusal = self._check_token(
                headers.get("authorization", ""), scope["method"], client
            )
        wait = self._rates.wait(client)
        if wait > 0:
            message = (
                f"A client may send {self._limits.rate:g} requests per second, but there were "
                f"more: wait {wait:.3f} s."
            )
            retry_after = str(math.ceil(wait))
            return error_answer(429, "TooManyRequests", message, {"retry-after": retry_after})
        if refusal is not None:
            return refusal
        length = headers.get("content-length", "0")
        # A number of more digits is not converted, because that would take long.
        if not length.isdecimal() or len(length) > 18 or int(length) > self._limits.body:
            return self._too_large(length[:20])
        return None

    def _check_token(self, header: str, method: str, client: str) -> tuple[str, Answer | None]:
        """Return the name of the client, and the answer if it may not do this."""
        assert self._tokens is not None
        kind, _, text = header.partition(" ")
        token = None
        if kind.lower() == "bearer":
            try:
                token = self._tokens.find(text.strip().encode())
            except EsbasError as error:
                headers = {"retry-after": "1"}
                return client, error_answer(503, type(error).__name__, str(error), headers)
        if not header:
            return client, _unauthorized("The request has no token")
        if token is None:
            return client, _unauthorized("The token of the request is unknown")
        if is_expired(token):
            return client, _unauthorized("The token of the request has expired")
        client = f"token {token.name}"
        if method not in READING and not token.writes:
            message = (
                "A request that changes a study must have a token with the scope write, but this "
                "one has the scope read: use another token."
            )
            return client, error_answer(403, "Forbidden", message)
        return client, None

    async def _body(self, receive: Receive) -> bytes | None:
        """Return the whole body; None if it is too large. The rest is then not read."""
        parts = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b""
            part = message.get("body", b"")
            size += len(part)
            if size > self._limits.body:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_slow(self) -> Answer:
        message = (
            f"The body of a request must arrive within {self._limits.body_seconds:g} s, but did "
            "not: send it again."
        )
        return error_answer(408, "RequestTimeout", message, {"connection": "close"})

    def _too_large(self, got: str) -> Answer:
        message = (
            f"The body of a request must have at most {self._limits.body:,} bytes, but has {got}: "
            "send less."
        )
        return error_answer(413, "ContentTooLarge", message, {"connection": "close"})


def _unauthorized(what: str) -> Answer:
    message = (
        f"{what}: send the header 'Authorization: Bearer TOKEN' with a token of the service's "
        "token file."
    )
    return error_answer(401, "Unauthorized", message, {"www-authenticate": "Bearer"})


class RateLimits:
    """Token buckets, one per client. Each holds the requests of one second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Return the seconds until the client may send a request.

        If it may send one now, return 0 and count the request.
        """
        now = time.monotonic()
        level, at = self._levels.pop(client, (self._most, now))
        level = min(self._most, level + (now - at) * self._rate)
        wait = 0.0
        if level >= 1:
            level -= 1
        else:
            wait = (1 - level) / self._rate
        self._levels[client] = (level, now)
        if len(self._levels) > MOST_CLIENTS:
            self._levels.popitem(last=False)  # the client that sent nothing for the longest time
        return wait


def path_of(raw: bytes) -> str:
    """Return the path for routing.

    In each segment, `/` and `%` stay encoded, so that names may contain them: see `segment`.
    """
    segments = [unquote(encoded) for encoded in raw.decode("ascii", "replace").split("/")]
    return "/".join(text.replace("%", "%25").replace("/", "%2F") for text in segments)


def segment(text: str) -> str:
    """Return the text of a segment of a path that `path_of` returned."""
    return unquote(text)


def is_local(headers: Headers) -> bool:
    """Return whether a request is for this machine, and not sent by a page of another site.

    A browser on this machine would send requests for pages of other sites, too.
    """
    host = headers.get("host", "")
    origin = headers.get("origin")
    return is_loopback(_hostname(f"//{host}")) and origin in (None, f"http://{host}")


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
