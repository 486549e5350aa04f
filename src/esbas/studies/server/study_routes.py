"""Studies: list, create, describe; their logs and explanations."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from esbas.server.answers import Answer
from esbas.server.models import (
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
from esbas.server.open_studies import OpenStudies
from esbas.server.routing import ERRORS, StudyName, event_data, service_of, studies_of
from esbas.store import StudyRow
from esbas.store.overview import overview
from esbas.store.requests import check_name

After = Annotated[int, Query(ge=0, le=LARGEST, description="Only events with larger numbers.")]
ChoiceNumber = Annotated[int | None, Query(ge=1, le=LARGEST, description="The number of a choice. Default: the next one.")]
router = APIRouter(prefix="/v1/studies", tags=["studies"], responses=ERRORS)


@router.get("", response_model=StudiesAnswer, summary="List the studies")
async def list_studies(request: Request) -> Answer:
    return Answer(await service_of(request).slowly(_listed, studies_of(request)))


@router.post("", response_model=StudyAnswer, summary="Create a study, or open an existing one")
async def open_or_create(request: Request, body: OpenRequest) -> Answer:
    """With a selector, the study is created unless it exists. A different selector or different settings are refused."""
    return Answer(await service_of(request).slowly(_opened, studies_of(request), body))


@router.get("/{study}", response_model=StudyAnswer, summary="Describe a study")
async def describe(request: Request, study: StudyName) -> Answer:
    return Answer(await service_of(request).slowly(_described, studies_of(request), study))


@router.get("/{study}/history", response_model=HistoryAnswer, summary="Read the log")
async def history(
    request: Request,
    study: StudyName,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=LARGEST, description="How many events at most; the service has a limit, too.")] = 500,
) -> Answer:
    """The events after the event number `after`. To continue, pass the number of the last one that was returned."""
    most = min(limit, service_of(request).limits.page)
    return Answer(await service_of(request).slowly(_page, studies_of(request), study, after, most))


@router.get("/{study}/overview", response_model=OverviewAnswer, summary="Sum up the log")
async def sum_up(
    request: Request,
    study: StudyName,
    parts: Annotated[int, Query(ge=1, le=1000, description="In how many parts, of equally many rounds, at most.")] = 200,
) -> Answer:
    """Per part and arm: how often it was chosen, and the sums from which the mean of its values and their spread follow."""
    return Answer(await service_of(request).very_slowly(_summed_up, studies_of(request), study, parts))


@router.get("/{study}/explain", response_model=ExplainAnswer, summary="Explain the next choice, or an earlier one")
async def explain(request: Request, study: StudyName, choice: ChoiceNumber = None) -> Answer:
    """Per arm: what the selector knows, or, with `choice`, what it knew when it made that choice."""
    run = service_of(request).slowly if choice is None else service_of(request).very_slowly
    return Answer(await run(_explained, studies_of(request), study, choice))


@router.get("/{study}/choices/{number}", response_model=ChoiceEventsAnswer, summary="What happened to a choice")
def choice_events(request: Request, study: StudyName, number: Annotated[int, Path(ge=1, le=LARGEST)]) -> Answer:
    with studies_of(request).use(study) as opened:
        return Answer({"events": {kind: event_data(event) for kind, event in opened.events_of(number).items()}})


@router.get("/{study}/counts", response_model=CountsAnswer, summary="Count the events by kind")
async def counts(request: Request, study: StudyName) -> Answer:
    def count() -> dict[str, Any]:
        with studies_of(request).use(study) as opened:
            return {"counts": opened.counts()}

    return Answer(await service_of(request).slowly(count))


@router.post("/{study}/expire", response_model=ExpiredAnswer, summary="Give up choices whose time is over")
def expire(request: Request, study: StudyName) -> Answer:
    """Every other request does so, too; a system without requests can call this from time to time."""
    with studies_of(request).use(study) as opened:
        return Answer({"expired": opened.expire()})


def _listed(studies: OpenStudies) -> dict[str, Any]:
    with studies.store.lock:
        return {"studies": [_summary(row, studies.store.last(row.id)) for row in studies.store.studies()]}


def _summary(row: StudyRow, last: int) -> dict[str, Any]:
    return {"name": row.name, **row.description, "created": row.created, "last": last}


def _opened(studies: OpenStudies, body: OpenRequest) -> dict[str, Any]:
    settings = {"arms": body.arms, "stationary": body.stationary, "seed": body.seed, "options": body.options}
    times = {"expire_after": body.expire_after, "claim_expires": body.claim_expires}
    studies.open(body.name, selector=body.selector, settings=settings, **times)
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
        return {"events": list(map(event_data, study.history(after=after, limit=limit))), "last": study.last()}


def _summed_up(studies: OpenStudies, name: str, parts: int) -> dict[str, Any]:
    """Reads with the connection that requests of clients do not use: a long log takes seconds."""
    check_name(name, "the name of a study")
    with studies.store.lock:
        row = studies.store.get(name)
    found = overview(studies.store, row.id, parts=parts)
    return found._asdict() | {"totals": [each._asdict() for each in found.totals]}


def _explained(studies: OpenStudies, name: str, choice: int | None) -> dict[str, Any]:
    with studies.use(name) as study:
        asked = None if choice is None else event_data(study.events_of(choice)["asked"])
        return {"choice": asked, "arms": study.explain(choice)}
