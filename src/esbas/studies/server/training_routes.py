"""Trainings for the board: a list, and the state of each."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, FastAPI, Path, Request

from esbas.errors import EsbasError, UnknownNameError
from esbas.studies.server.answers import Answer, error_answer
from esbas.studies.server.app import new_app
from esbas.studies.server.pages import add_board
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.training_files import WatchedTraining

router = APIRouter(prefix="/v1/trainings")


def create_training_app(trainings: Sequence[WatchedTraining]) -> FastAPI:
    """Create the board of some trainings, for programs on this machine."""

    def pages(app: FastAPI) -> None:
        add_board(app, source="trainings")

    app = new_app(tokens=None, limits=ServiceLimits(), pages=pages)
    app.state.trainings = tuple(trainings)
    app.include_router(router)
    return app


@router.get("")
def list_trainings(request: Request) -> Answer:
    return Answer({"trainings": [each.about() for each in request.app.state.trainings]})


@router.get("/{number}")
def training(request: Request, number: Annotated[int, Path(ge=1)]) -> Answer:
    trainings: tuple[WatchedTraining, ...] = request.app.state.trainings
    if number > len(trainings):
        raise UnknownNameError(
            f"There is no training {number} on this board, which has {len(trainings)}: "
            "see /v1/trainings."
        )
    try:
        return Answer(trainings[number - 1].data())
    except EsbasError as error:  # a file that is damaged, or missing at the moment
        return error_answer(503, type(error).__name__, str(error), {"retry-after": "1"})
