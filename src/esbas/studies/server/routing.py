"""What the routes have in common."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import Path, Request
from pydantic import AfterValidator

from esbas.studies import Event
from esbas.studies.requests import LONGEST_NAME
from esbas.studies.server.guard import segment
from esbas.studies.server.models import ErrorAnswer
from esbas.studies.server.open_studies import OpenStudies
from esbas.studies.server.settings import ServiceLimits

T = TypeVar("T")
Extra = dict[int | str, dict[str, Any]]
# The length of the name itself, which is longer while it is encoded
_LENGTHS: Any = {"minLength": 1, "maxLength": LONGEST_NAME}
StudyName = Annotated[
    str,
    AfterValidator(segment),
    Path(description="The name of the study.", json_schema_extra=_LENGTHS),
]
ArmName = Annotated[
    str,
    AfterValidator(segment),
    Path(description="The name of the arm.", json_schema_extra=_LENGTHS),
]

_MEANINGS = {
    400: "The body is not JSON in UTF-8.",
    401: "The token is missing, unknown or expired.",
    403: (
        "The token may only read; or the request would import modules; or, without tokens, it "
        "comes from another site."
    ),
    404: "There is no study, arm or selector of this name.",
    405: "The path has other methods.",
    408: "The body did not arrive in time.",
    409: (
        "The request does not fit what happened before: a choice that was told, a key of another "
        "request, another selector."
    ),
    413: "The body is too large.",
    422: "A value breaks a rule.",
    429: "Too many requests; the header Retry-After says how many seconds to wait.",
    503: "The store cannot be reached at the moment. Send the request again.",
}
ERRORS: Extra = {
    status: {"description": text, "model": ErrorAnswer} for status, text in _MEANINGS.items()
}
"""The errors of every route, for the documentation."""


class Service:
    """The state that the routes share, in `app.state.service`.

    Args:
        studies: the studies.
        limits: see `ServiceLimits`.
    """

    def __init__(self, studies: OpenStudies, limits: ServiceLimits) -> None:
        self.studies = studies
        self.limits = limits
        self.stopping = False
        self.streams = 0
        self._slow = anyio.CapacityLimiter(limits.slow_requests)
        self._slowest = anyio.CapacityLimiter(limits.explanations)
        # Of studies with streams: the number of the last event, and when it was read
        self._last: dict[str, tuple[float, int]] = {}

    async def slowly(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that may take long in a thread.

        Only a few run at a time, so that quick requests need not wait.
        """
        return await anyio.to_thread.run_sync(partial(function, *arguments), limiter=self._slow)

    async def very_slowly(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that may take half a minute in a thread; even fewer run at a time."""
        return await anyio.to_thread.run_sync(partial(function, *arguments), limiter=self._slowest)

    def stop(self) -> None:
        """End the streams."""
        self.stopping = True

    async def last(self, name: str) -> int:
        """Return the number of the last event of a study.

        All its streams together read it once in `poll_seconds`.
        """
        now = time.monotonic()
        at, seq = self._last.get(name, (-math.inf, 0))
        if now - at >= self.limits.poll_seconds:
            self._last[name] = (now, seq)  # other streams need not read it meanwhile
            self._last[name] = (now, await self.slowly(self._read_last, name))
        if len(self._last) > 2 * self.limits.streams:
            self._last.clear()
        _, newest = self._last.get(name, (now, seq))
        return newest

    def _read_last(self, name: str) -> int:
        with self.studies.use(name) as study:
            return study.last()


def service_of(request: Request) -> Service:
    """Return the state that the routes of the application share."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


def studies_of(request: Request) -> OpenStudies:
    """Return the studies of the service."""
    return service_of(request).studies


def event_data(event: Event) -> dict[str, Any]:
    """Return an event as plain data."""
    return event._asdict()
