"""Choices, arms and epochs: the requests that change a study."""

import math
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from esbas.errors import InvalidValueError
from esbas.selectors import Choice
from esbas.studies import Study
from esbas.studies.server.answers import Answer
from esbas.studies.server.models import (
    LARGEST,
    ArmRequest,
    ArmsAnswer,
    AskRequest,
    ChoiceAnswer,
    ClaimRequest,
    EpochAnswer,
    Name,
    NumberAnswer,
    OpenChoicesAnswer,
    TellRequest,
    WithdrawRequest,
)
from esbas.studies.server.routing import ERRORS, ArmName, StudyName, studies_of

MOST_OPEN = 1000  # open choices in an answer
Epoch = Annotated[int, Path(ge=0, le=LARGEST, description="The epoch that was claimed.")]
router = APIRouter(prefix="/v1/studies/{study}", responses=ERRORS)


@router.post(
    "/ask",
    response_model=ChoiceAnswer,
    summary="Choose an arm for the next episode",
    tags=["choices"],
)
def ask(request: Request, study: StudyName, body: AskRequest) -> Answer:
    context = None if body.context is None else _numbers(body.context)
    with studies_of(request).use(study) as opened:
        return Answer(_data(opened.ask(among=body.among, context=context, key=body.key)))


@router.post(
    "/tell", response_model=NumberAnswer, summary="Report the value of a choice", tags=["choices"]
)
def tell(request: Request, study: StudyName, body: TellRequest) -> Answer:
    """The same value may be told again, without effect; another one is refused.

    Values of expired choices are only recorded.
    """
    log_probs = None
    if body.log_probs is not None:
        log_probs = {arm: _numbers(each) for arm, each in body.log_probs.items()}
    with studies_of(request).use(study) as opened:
        number = _number(opened, body)
        choice = _choice(number, body.arm)
        opened.tell(choice, body.value, log_probs=log_probs, key=body.key)
    return Answer({"number": number})


@router.post(
    "/withdraw",
    response_model=NumberAnswer,
    summary="Close a choice without a value",
    tags=["choices"],
)
def withdraw(request: Request, study: StudyName, body: WithdrawRequest) -> Answer:
    with studies_of(request).use(study) as opened:
        number = _number(opened, body)
        opened.withdraw(_choice(number, body.arm), key=body.key)
    return Answer({"number": number})


@router.get(
    "/choices", response_model=OpenChoicesAnswer, summary="List the open choices", tags=["choices"]
)
def open_choices(request: Request, study: StudyName) -> Answer:
    with studies_of(request).use(study) as opened:
        since = opened.open_since
        choices = opened.open_choices
    # Another process may have made a choice between the two reads.
    choices = tuple(choice for choice in choices if choice.number in since)
    listed = [_data(choice) | {"at": since[choice.number]} for choice in choices]
    return Answer({"open": len(listed), "choices": listed[:MOST_OPEN]})


@router.get("/arms", response_model=ArmsAnswer, summary="List the arms", tags=["arms"])
def list_arms(request: Request, study: StudyName) -> Answer:
    with studies_of(request).use(study) as opened:
        return Answer({"arms": opened.arms})


@router.post("/arms", response_model=ArmsAnswer, summary="Add an arm", tags=["arms"])
def add_arm(request: Request, study: StudyName, body: ArmRequest) -> Answer:
    with studies_of(request).use(study) as opened:
        opened.add_arm(body.name, stationary=body.stationary, key=body.key)
        return Answer({"arms": opened.arms})


@router.delete("/arms/{arm}", response_model=ArmsAnswer, summary="Remove an arm", tags=["arms"])
def remove_arm(
    request: Request, study: StudyName, arm: ArmName, key: Annotated[Name | None, Query()] = None
) -> Answer:
    """Values of its open choices are recorded and have no effect."""
    with studies_of(request).use(study) as opened:
        opened.remove_arm(arm, key=key)
        return Answer({"arms": opened.arms})


@router.post(
    "/epochs/claim",
    response_model=EpochAnswer,
    summary="Claim the epoch that is due",
    tags=["epochs"],
)
def claim_epoch(request: Request, study: StudyName, body: ClaimRequest) -> Answer:
    """One client gets the epoch, retrains, and calls `ready` or `release` as the same claimant.

    All others get null.
    """
    with studies_of(request).use(study) as opened:
        return Answer({"epoch": opened.claim_epoch(claimant=body.claimant, key=body.key)})


@router.post(
    "/epochs/{epoch}/ready",
    response_model=EpochAnswer,
    summary="Start a claimed epoch",
    tags=["epochs"],
)
def epoch_ready(request: Request, study: StudyName, epoch: Epoch, body: ClaimRequest) -> Answer:
    with studies_of(request).use(study) as opened:
        opened.epoch_ready(epoch, claimant=body.claimant, key=body.key)
    return Answer({"epoch": epoch})


@router.post(
    "/epochs/{epoch}/release",
    response_model=EpochAnswer,
    summary="Give a claimed epoch back",
    tags=["epochs"],
)
def release_epoch(request: Request, study: StudyName, epoch: Epoch, body: ClaimRequest) -> Answer:
    with studies_of(request).use(study) as opened:
        opened.release_epoch(epoch, claimant=body.claimant, key=body.key)
    return Answer({"epoch": epoch})


def _data(choice: Choice) -> dict[str, Any]:
    return {
        "number": choice.number,
        "arm": choice.arm,
        "epoch": choice.epoch,
        "context": choice.context,
        "propensity": choice.propensity,
    }


def _numbers(numbers: list[float | None]) -> list[float]:
    """Return the numbers of a request, in which null stands for NaN."""
    return [math.nan if each is None else each for each in numbers]


def _number(study: Study, body: TellRequest | WithdrawRequest) -> int:
    """Return the number of the choice that a request is about."""
    if (body.choice is None) == (body.ask_key is None):
        raise InvalidValueError("Send `choice` or `ask_key`, but not both and not neither.")
    if body.choice is not None:
        return body.choice
    return study.find_choice(str(body.ask_key)).number


def _choice(number: int, arm: str | None) -> Choice | int:
    """Return a choice for the study. If its arm was sent, the study compares it."""
    return number if arm is None else Choice(number=number, arm=arm, epoch=0)
