"""Answers in JSON, and errors as answers: every error has one shape and a documented status."""

import json
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from esbas.errors import (
    ChoiceError,
    EsbasError,
    FileError,
    InvalidValueError,
    MissingExtraError,
    StoreError,
    StudyError,
    TrustError,
    UnknownNameError,
    describe,
)

STATUSES: dict[type[EsbasError], int] = {
    InvalidValueError: 422,
    UnknownNameError: 404,
    ChoiceError: 409,
    StudyError: 409,
    TrustError: 403,
    StoreError: 503,
    FileError: 503,
    MissingExtraError: 503,
}
"""The status of each error of a study."""
_WORDS = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed"}
_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Answer(Response):
    """JSON, in which numbers that are not finite are null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content).encode()


def to_json(content: Any) -> str:
    """JSON in ASCII."""
    try:
        return _JSON.encode(content)
    except ValueError:
        return _JSON.encode(_finite(content))


def error_answer(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An error: `type` is the name of a class in `esbas.errors`, or a word for what only the service has."""
    return Answer({"error": {"type": kind, "message": message}}, status, headers)


def add_error_answers(app: FastAPI) -> None:
    """Let the application answer errors in this shape."""
    app.add_exception_handler(EsbasError, _study_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failure)


def error_of(error: EsbasError) -> Answer:
    """The answer for an error of a study."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    headers = {"retry-after": "1"} if status == 503 else None
    return error_answer(status, type(error).__name__, str(error), headers)


async def _study_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, EsbasError)
    return error_of(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return error_answer(400, "BadRequest", "the body of a request must be JSON, but this one is not: check its syntax")
    where = ".".join(str(each)[:60] for each in first["loc"][:6])
    rule = f"`{where}` must fit the schema of the request, but: {str(first['msg'])[:200]}"
    return error_answer(422, InvalidValueError.__name__, f"{rule}: see /openapi.json")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {
        400: "the body of a request must be JSON in UTF-8, but this one is not: check its encoding",
        404: f"a path must be one of /openapi.json, but {request.url.path[:200]!r} is not: check it",
        405: f"a path must be used with its methods, but {request.method[:20]} is none of this one's: see /openapi.json",
    }
    kind = _WORDS.get(error.status_code, "HTTPError")
    headers = {"allow": ", ".join(_methods(request))} if error.status_code == 405 else error.headers
    return error_answer(error.status_code, kind, messages.get(error.status_code, str(error.detail)), headers)


def _methods(request: Request) -> list[str]:
    """The methods of a path, which several routes may share."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    steps = request.scope["path"].split("/")
    found = {method.upper() for path, methods in paths.items() if _fits(path.split("/"), steps) for method in methods}
    return sorted(found) or ["GET"]


def _fits(pattern: list[str], steps: list[str]) -> bool:
    return len(pattern) == len(steps) and all(
        wanted == found or (wanted.startswith("{") and found != "") for wanted, found in zip(pattern, steps, strict=True)
    )


async def _failure(_: Request, error: Exception) -> Response:
    return error_answer(500, "InternalError", f"the service failed ({describe(error)[:300]}): see its log")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
