"""What every request passes before it reaches a route: tokens, sizes and rates. Plain ASGI, because it runs for every request."""

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
from esbas.server.answers import Answer, error_answer
from esbas.server.settings import ServiceLimits
from esbas.server.tokens import TokenFile, is_expired

PUBLIC = frozenset({"/", "/docs", "/favicon.ico", "/healthz", "/openapi.json"})
PUBLIC_FOLDER = "/static/"  # files without data of studies
READING = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_CLIENTS = 10_000  # whose rate is known


class Guard:
    """Middleware that answers requests which may not pass.

    Args:
        app: what comes next.
        tokens: who may use the service; None: every program on this machine.
        limits: see `ServiceLimits`.
        public: paths that need no token.
    """

    def __init__(
        self, app: ASGIApp, *, tokens: TokenFile | None, limits: ServiceLimits, public: Collection[str] = PUBLIC
    ) -> None:
        self._app, self._tokens, self._limits, self._public = app, tokens, limits, public
        self._rates = Rates(limits.rate)

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
                rule = f"a body must arrive within {self._limits.body_seconds:g} s"
                refusal = error_answer(408, "RequestTimeout", f"{rule}, but did not: send it again", {"connection": "close"})
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
        """The answer to a request that is refused because of its headers."""
        headers, path = Headers(scope=scope), str(scope["path"])
        client = str(scope["client"][0]) if scope.get("client") else ""
        public = path in self._public or path.startswith(PUBLIC_FOLDER)
        refusal = None
        if self._tokens is None:
            if not is_local(headers):
                what = "without tokens, the service is for programs on this machine and its own page"
                refusal = error_answer(
                    403, "Forbidden", f"{what}, but Host or Origin is another: connect to 127.0.0.1, or use --token-file"
                )
        elif not public:
            client, refusal = self._check_token(headers.get("authorization", ""), scope["method"], client)
        wait = self._rates.wait(client)
        if wait > 0:
            what = f"a client may send {self._limits.rate:g} requests per second, but there were more"
            return error_answer(429, "TooManyRequests", f"{what}: wait {wait:.3f} s", {"retry-after": str(math.ceil(wait))})
        length = headers.get("content-length", "0")
        if refusal is None and (not length.isdecimal() or len(length) > 18 or int(length) > self._limits.body):
            return self._too_large(length[:20])
        return refusal

    def _check_token(self, header: str, method: str, client: str) -> tuple[str, Answer | None]:
        """Who the client is, and the answer if it may not do this."""
        assert self._tokens is not None
        kind, _, text = header.partition(" ")
        try:
            token = self._tokens.find(text.strip().encode()) if kind.lower() == "bearer" else None
        except EsbasError as error:
            return client, error_answer(503, type(error).__name__, str(error), {"retry-after": "1"})
        if token is None or is_expired(token):
            what = "has none" if not header else "its token has expired" if token is not None else "its token is unknown"
            remedy = "send the header 'Authorization: Bearer TOKEN' with a token of the service's token file"
            return client, error_answer(
                401, "Unauthorized", f"a request must have a valid token, but {what}: {remedy}", {"www-authenticate": "Bearer"}
            )
        client = f"token {token.name}"
        if method not in READING and not token.writes:
            what = "a request that changes a study must have a token with the scope write, but this one has the scope read"
            return client, error_answer(403, "Forbidden", f"{what}: use another token")
        return client, None

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None if it is too large. What comes after that is not read."""
        parts, size = [], 0
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

    def _too_large(self, got: str) -> Answer:
        rule = f"the body of a request must have at most {self._limits.body:,} bytes"
        return error_answer(413, "ContentTooLarge", f"{rule}, but has {got}: send less", {"connection": "close"})


class Rates:
    """Token buckets, one per client: each holds the requests of a second."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, rate)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until the client may send a request; 0 if it may now, which is then counted."""
        now = time.monotonic()
        level, at = self._levels.pop(client, (self._most, now))
        level = min(self._most, level + (now - at) * self._rate)
        allowed = level >= 1
        self._levels[client] = level - 1 if allowed else level, now
        if len(self._levels) > MOST_CLIENTS:
            self._levels.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._rate


def path_of(raw: bytes) -> str:
    """The path for routing. In each segment, `/` and `%` stay encoded, so that names may contain them: see `segment`."""
    segments = (unquote(each) for each in raw.decode("ascii", "replace").split("/"))
    return "/".join(each.replace("%", "%25").replace("/", "%2F") for each in segments)


def segment(text: str) -> str:
    """The text of a segment of a path that `path_of` returned."""
    return unquote(text)


def is_local(headers: Headers) -> bool:
    """Whether a request is for this machine, and not sent by a page of another site (which a browser would do for it)."""
    host, origin = headers.get("host", ""), headers.get("origin")
    return is_loopback(_hostname(f"//{host}")) and origin in (None, f"http://{host}")


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
