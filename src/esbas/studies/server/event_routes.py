"""Server-sent events: the log of a study while it grows."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import Response, StreamingResponse

from esbas.errors import EsbasError
from esbas.studies import Event
from esbas.studies.server.answers import error_answer, to_json
from esbas.studies.server.routing import ERRORS, Service, StudyName, event_data, service_of
from esbas.studies.server.study_routes import After

CHUNK = 100  # events that are read at a time
QUIET = 15.0  # seconds without events until a comment is sent, so that proxies keep the connection
router = APIRouter(prefix="/v1/studies/{study}", tags=["events"], responses=ERRORS)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": (
            "A stream of events: `id` is `seq`, `event` is the kind, `data` is the event as JSON."
        ),
        "content": {"text/event-stream": {}},
    }
}


@router.get(
    "/events", response_class=StreamingResponse, responses=_STREAM, summary="Follow the log"
)
async def follow(
    request: Request,
    study: StudyName,
    after: After = 0,
    last_event_id: Annotated[
        str | None, Header(pattern="^[0-9]{1,16}$", description="Continue after this event.")
    ] = None,
) -> Response:
    """All events after `after`, and then new ones as they happen.

    The stream ends after some minutes and when the service stops. Browsers connect again by
    themselves with the header Last-Event-ID, so that no event is missing.
    """
    service = service_of(request)
    start = after if last_event_id is None else int(last_event_id)
    first = await service.slowly(_read, service, study, start)
    if service.streams >= service.limits.streams:
        message = (
            f"The service has at most {service.limits.streams} streams at a time, and all are in "
            "use: try again later."
        )
        return error_answer(429, "TooManyRequests", message, {"retry-after": "5"})
    service.streams += 1
    return CountedStream(service, _stream(service, study, start, first))


class CountedStream(StreamingResponse):
    """A stream that is counted until it ends, however it ends."""

    def __init__(self, service: Service, content: AsyncIterator[str]) -> None:
        super().__init__(
            content,
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )
        self._service = service

    async def __call__(self, *arguments: Any) -> None:
        try:
            # A client that reads nothing must not keep the stream for ever.
            async with asyncio.timeout(2 * self._service.limits.stream_seconds):
                await super().__call__(*arguments)
        except TimeoutError:
            pass  # the server closes the connection
        finally:
            self._service.streams -= 1


async def _stream(
    service: Service, study: str, after: int, events: list[Event]
) -> AsyncIterator[str]:
    end = time.monotonic() + service.limits.stream_seconds
    sent = time.monotonic()
    yield "retry: 1000\n\n"  # milliseconds until a browser connects again
    while True:
        if events:
            for event in events:
                yield _text(event)
            after = events[-1].seq
            sent = time.monotonic()
        elif time.monotonic() > sent + QUIET:
            yield ": still here\n\n"
            sent = time.monotonic()
        try:
            # If the last read was not a full chunk, there may be no more events: wait.
            while len(events) < CHUNK and time.monotonic() <= sent + QUIET:
                if service.stopping or time.monotonic() > end:
                    return
                await asyncio.sleep(service.limits.poll_seconds)
                if await service.last(study) > after:
                    break
            if service.stopping or time.monotonic() > end:
                return
            events = await service.slowly(_read, service, study, after)
        except EsbasError:
            return  # the client connects again, and gets the error as an answer


def _text(event: Event) -> str:
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {to_json(event_data(event))}\n\n"


def _read(service: Service, name: str, after: int) -> list[Event]:
    with service.studies.use(name) as study:
        return list(study.history(after=after, limit=CHUNK))
