"""Studies: list, create, describe; their logs and explanations."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from esbas.studies import StudyRow
from esbas.studies.events import ASKED
from esbas.studies.overview import overview
from esbas.studies.requests import check_name
from esbas.studies.server.answers import Answer
from esbas.studies.server.models import (
    LARGEST,
    ChoiceEventsAnswer,
    CountsAnswer,
    ExpiredAnswer,
    ExplainAnswer,
    HistoryAnswer,
    OpenRequest,
    OverviewAnswer,
    StudiesAnswer,
    StudyAnswer,
)
from esbas.studies.server.open_studies import OpenStudies
from esbas.studies.server.routing import ERRORS, StudyName, event_data, service_of, studies_of

After = Annotated[int, Query(ge=0, le=LARGEST, description="Only events with larger numbers.")]
ChoiceNumber = Annotated[
    int | None,
    Query(ge=1, le=LARGEST, description="The number of a choice. Default: the next one."),
]
router = APIRouter(prefix="/v1/studies", tags=["studies"], responses=ERRORS)


@router.get("", response_model=StudiesAnswer, summary="List the studies")
async def list_studies(request: Request) -> Answer:
    return Answer(await service_of(request).slowly(_listed, studies_of(request)))


@router.post("", response_model=StudyAnswer, summary="Create a study, or open an existing one")
async def open_or_create(request: Request, body: OpenRequest) -> Answer:
    """With a selector, the study is created unless it exists.

    A different selector or different settings are refused.
    """
    return Answer(await service_of(request).slowly(_opened, studies_of(request), body))


@router.get("/{study}", response_model=StudyAnswer, summary="Describe a study")
async def describe(request: Request, study: StudyName) -> Answer:
    return Answer(await service_of(request).slowly(_described, studies_of(request), study))


@router.get("/{study}/history", response_model=HistoryAnswer, summary="Read the log")
async def history(
    request: Request,
    study: StudyName,
    after: After = 0,
    limit: Annotated[
        int,
        Query(
            ge=1, le=LARGEST, description="How many events at most; the service has a limit, too."
        ),
    ] = 500,
) -> Answer:
    """The events after the event number `after`.

    To continue, pass the number of the last one that was returned.
    """
    service = service_of(request)
    most = min(limit, service.limits.page)
    return Answer(await service.slowly(_page, service.studies, study, after, most))


@router.get("/{study}/overview", response_model=OverviewAnswer, summary="Sum up the log")
async def sum_up(
    request: Request,
    study: StudyName,
    parts: Annotated[
        int, Query(ge=1, le=1000, description="In how many parts, of equally many rounds, at most.")
    ] = 200,
) -> Answer:
    """Per part and arm: how often it was chosen, and sums of its values.

    The mean of the values and their spread follow from the sums.
    """
    service = service_of(request)
    return Answer(await service.very_slowly(_summed_up, service.studies, study, parts))


@router.get(
    "/{study}/explain",
    response_model=ExplainAnswer,
    summary="Explain the next choice, or an earlier one",
)
async def explain(request: Request, study: StudyName, choice: ChoiceNumber = None) -> Answer:
    """Per arm: what the selector knows; with `choice`, what it knew when it made that choice."""
    service = service_of(request)
    run = service.slowly if choice is None else service.very_slowly
    return Answer(await run(_explained, service.studies, study, choice))


@router.get(
    "/{study}/choices/{number}",
    response_model=ChoiceEventsAnswer,
    summary="What happened to a choice",
)
def choice_events(
    request: Request, study: StudyName, number: Annotated[int, Path(ge=1, le=LARGEST)]
) -> Answer:
    with studies_of(request).use(study) as opened:
        found = opened.events_of(number)
    return Answer({"events": {kind: event_data(event) for kind, event in found.items()}})


@router.get("/{study}/counts", response_model=CountsAnswer, summary="Count the events by kind")
async def counts(request: Request, study: StudyName) -> Answer:
    def count() -> dict[str, Any]:
        with studies_of(request).use(study) as opened:
            return {"counts": opened.counts()}

    return Answer(await service_of(request).slowly(count))


@router.post(
    "/{study}/expire", response_model=ExpiredAnswer, summary="Give up choices whose time is over"
)
def expire(request: Request, study: StudyName) -> Answer:
    """Every other request does so, too.

    A system without requests can call this from time to time.
    """
    with studies_of(request).use(study) as opened:
        return Answer({"expired": opened.expire()})


def _listed(studies: OpenStudies) -> dict[str, Any]:
    store = studies.store
    with store.lock:
        return {"studies": [_summary(row, store.last(row.id)) for row in store.studies()]}


def _summary(row: StudyRow, last: int) -> dict[str, Any]:
    return {"name": row.name, **row.description, "created": row.created, "last": last}


def _opened(studies: OpenStudies, body: OpenRequest) -> dict[str, Any]:
    settings = {
        "arms": body.arms,
        "stationary": body.stationary,
        "seed": body.seed,
        "options": body.options,
    }
    studies.open(
        body.name,
        selector=body.selector,
        settings=settings,
        expire_after=body.expire_after,
        claim_expires=body.claim_expires,
    )
    return _described(studies, body.name)


def _described(studies: OpenStudies, name: str) -> dict[str, Any]:
    with studies.use(name) as study:
        with studies.store.lock:
            row = studies.store.get(name)
        claim = study.claim
        return _summary(row, study.last()) | {
            "arms": study.arms,
            "number": study.number,
            "epoch": study.epoch,
            "open": len(study.open_since),
            "claim": None if claim is None else claim._asdict(),
            "counts": study.counts(),
        }


def _page(studies: OpenStudies, name: str, after: int, limit: int) -> dict[str, Any]:
    with studies.use(name) as study:
        found = study.history(after=after, limit=limit)
        return {"events": [event_data(event) for event in found], "last": study.last()}


def _summed_up(studies: OpenStudies, name: str, parts: int) -> dict[str, Any]:
    """Sum up a log with the connection that requests of clients do not use: it may take seconds."""
    check_name(name, "The name of a study")
    with studies.store.lock:
        row = studies.store.get(name)
    found = overview(studies.store, row.id, parts=parts)
    return found._asdict() | {"totals": [each._asdict() for each in found.totals]}


def _explained(studies: OpenStudies, name: str, choice: int | None) -> dict[str, Any]:
    with studies.use(name) as study:
        asked = None
        if choice is not None:
            asked = event_data(study.events_of(choice)[ASKED])
        return {"choice": asked, "arms": study.explain(choice)}
