"""What the routes have in common."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import Path, Request
from pydantic import AfterValidator

from esbas.server.guard import segment
from esbas.server.models import ErrorAnswer
from esbas.server.open_studies import OpenStudies
from esbas.server.settings import ServiceLimits
from esbas.store import Event
from esbas.store.requests import LONGEST_NAME

T = TypeVar("T")
Extra = dict[int | str, dict[str, Any]]
_LENGTHS: Any = {"minLength": 1, "maxLength": LONGEST_NAME}  # of the name itself, which is longer while it is encoded
StudyName = Annotated[str, AfterValidator(segment), Path(description="The name of the study.", json_schema_extra=_LENGTHS)]
ArmName = Annotated[str, AfterValidator(segment), Path(description="The name of the arm.", json_schema_extra=_LENGTHS)]

_MEANINGS = {
    400: "The body is not JSON in UTF-8.",
    401: "The token is missing, unknown or expired.",
    403: "The token may only read; or the request would import modules; or, without tokens, it comes from another site.",
    404: "There is no study, arm or selector of this name.",
    405: "The path has other methods.",
    408: "The body did not arrive in time.",
    409: "The request does not fit what happened before: a choice that was told, a key of another request, another selector.",
    413: "The body is too large.",
    422: "A value breaks a rule.",
    429: "Too many requests; the header Retry-After says how many seconds to wait.",
    503: "The store cannot be reached at the moment. Send the request again.",
}
ERRORS: Extra = {status: {"description": text, "model": ErrorAnswer} for status, text in _MEANINGS.items()}
"""The errors of every route, for the documentation."""


class Service:
    """What the routes share, in `app.state.service`.

    Args:
        studies: the studies.
        limits: see `ServiceLimits`.
    """

    def __init__(self, studies: OpenStudies, limits: ServiceLimits) -> None:
        self.studies, self.limits = studies, limits
        self.stopping = False
        self.streams = 0
        self._slow, self._slowest = anyio.CapacityLimiter(limits.slow_requests), anyio.CapacityLimiter(limits.explanations)
        self._last: dict[str, tuple[float, int]] = {}  # of studies with streams: when it was read, the number of the last event

    async def slowly(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that may take long in a thread. Few do at a time, so that quick requests are not kept waiting."""
        return await anyio.to_thread.run_sync(partial(function, *arguments), limiter=self._slow)

    async def very_slowly(self, function: Callable[..., T], *arguments: Any) -> T:
        """The same for a function that may take half a minute."""
        return await anyio.to_thread.run_sync(partial(function, *arguments), limiter=self._slowest)

    def stop(self) -> None:
        """End the streams."""
        self.stopping = True

    async def last(self, name: str) -> int:
        """The number of the last event of a study. All its streams together read it once in `poll_seconds`."""
        now = time.monotonic()
        at, seq = self._last.get(name, (-math.inf, 0))
        if now - at >= self.limits.poll_seconds:
            self._last[name] = now, seq  # others need not read it meanwhile
            self._last[name] = now, await self.slowly(self._read_last, name)
        if len(self._last) > 2 * self.limits.streams:
            self._last.clear()
        return self._last.get(name, (now, seq))[1]

    def _read_last(self, name: str) -> int:
        with self.studies.use(name) as study:
            return study.last()


def service_of(request: Request) -> Service:
    """What the routes of the application share."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


def studies_of(request: Request) -> OpenStudies:
    """The studies of the service."""
    return service_of(request).studies


def event_data(event: Event) -> dict[str, Any]:
    """An event as plain data."""
    return event._asdict()
