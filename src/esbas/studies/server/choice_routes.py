"""Choices, arms and epochs: the requests that change a study."""

import math
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from esbas.errors import InvalidValueError
from esbas.selectors import Choice
from esbas.server.answers import Answer
from esbas.server.models import (
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
from esbas.server.routing import ERRORS, ArmName, StudyName, studies_of
from esbas.store import Study

MOST_OPEN = 1000  # open choices in an answer
Epoch = Annotated[int, Path(ge=0, le=LARGEST, description="The epoch that was claimed.")]
router = APIRouter(prefix="/v1/studies/{study}", responses=ERRORS)


@router.post("/ask", response_model=ChoiceAnswer, summary="Choose an arm for the next episode", tags=["choices"])
def ask(request: Request, study: StudyName, body: AskRequest) -> Answer:
    context = None if body.context is None else _numbers(body.context)
    with studies_of(request).use(study) as opened:
        return Answer(_data(opened.ask(among=body.among, context=context, key=body.key)))


@router.post("/tell", response_model=NumberAnswer, summary="Report the value of a choice", tags=["choices"])
def tell(request: Request, study: StudyName, body: TellRequest) -> Answer:
    """The same value may be told again, without effect; another one is refused. Values of expired choices are only recorded."""
    log_probs = None if body.log_probs is None else {arm: _numbers(each) for arm, each in body.log_probs.items()}
    with studies_of(request).use(study) as opened:
        choice = _choice(opened, body)
        opened.tell(choice, body.value, log_probs=log_probs, key=body.key)
    return Answer({"number": choice if isinstance(choice, int) else choice.number})


@router.post("/withdraw", response_model=NumberAnswer, summary="Close a choice without a value", tags=["choices"])
def withdraw(request: Request, study: StudyName, body: WithdrawRequest) -> Answer:
    with studies_of(request).use(study) as opened:
        choice = _choice(opened, body)
        opened.withdraw(choice, key=body.key)
    return Answer({"number": choice if isinstance(choice, int) else choice.number})


@router.get("/choices", response_model=OpenChoicesAnswer, summary="List the open choices", tags=["choices"])
def open_choices(request: Request, study: StudyName) -> Answer:
    with studies_of(request).use(study) as opened:
        since, found = opened.open_since, opened.open_choices
    listed = [_data(choice) | {"at": since[choice.number]} for choice in found if choice.number in since]
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
def remove_arm(request: Request, study: StudyName, arm: ArmName, key: Annotated[Name | None, Query()] = None) -> Answer:
    """Values of its open choices are recorded and have no effect."""
    with studies_of(request).use(study) as opened:
        opened.remove_arm(arm, key=key)
        return Answer({"arms": opened.arms})


@router.post("/epochs/claim", response_model=EpochAnswer, summary="Claim the epoch that is due", tags=["epochs"])
def claim_epoch(request: Request, study: StudyName, body: ClaimRequest) -> Answer:
    """One client gets the epoch, retrains, and calls `ready` or `release` as the same claimant. All others get null."""
    with studies_of(request).use(study) as opened:
        return Answer({"epoch": opened.claim_epoch(claimant=body.claimant, key=body.key)})


@router.post("/epochs/{epoch}/ready", response_model=EpochAnswer, summary="Start a claimed epoch", tags=["epochs"])
def epoch_ready(request: Request, study: StudyName, epoch: Epoch, body: ClaimRequest) -> Answer:
    with studies_of(request).use(study) as opened:
        opened.epoch_ready(epoch, claimant=body.claimant, key=body.key)
    return Answer({"epoch": epoch})


@router.post("/epochs/{epoch}/release", response_model=EpochAnswer, summary="Give a claimed epoch back", tags=["epochs"])
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
    """Numbers of a request: null is not a number."""
    return [math.nan if each is None else each for each in numbers]


def _choice(study: Study, body: TellRequest | WithdrawRequest) -> Choice | int:
    """The choice that a request is about: its number, and its arm if it was sent."""
    if (body.choice is None) == (body.ask_key is None):
        raise InvalidValueError("a choice must be given by `choice` or by `ask_key`, but got both or neither: send one of them")
    number = body.choice if body.choice is not None else study.find_choice(str(body.ask_key)).number
    return number if body.arm is None else Choice(number=number, arm=body.arm, epoch=0)
