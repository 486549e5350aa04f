"""Answers in JSON. All errors have the same shape and a documented status."""

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
    """Return JSON in ASCII."""
    try:
        return _JSON.encode(content)
    except ValueError:
        return _JSON.encode(_finite(content))


def error_answer(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return the answer for an error.

    Args:
        status: of the answer.
        kind: the name of a class in `esbas.errors`, or a word for an error of the service itself.
        message: one sentence.
        headers: of the answer.
    """
    return Answer({"error": {"type": kind, "message": message}}, status, headers)


def add_error_answers(app: FastAPI) -> None:
    """Let the application answer errors in this shape."""
    app.add_exception_handler(EsbasError, _study_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failure)


def error_of(error: EsbasError) -> Answer:
    """Return the answer for an error of a study."""
    status = _status_of(error)
    headers = {"retry-after": "1"} if status == 503 else None
    return error_answer(status, type(error).__name__, str(error), headers)


def _status_of(error: EsbasError) -> int:
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return status
    return 500


async def _study_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, EsbasError)
    return error_of(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        message = "The body of a request must be JSON, but this one is not: check its syntax."
        return error_answer(400, "BadRequest", message)
    where = ".".join(str(each)[:60] for each in first["loc"][:6])
    cause = str(first["msg"])[:200]
    message = f"`{where}` does not fit the schema of the request ({cause}): see /openapi.json."
    return error_answer(422, InvalidValueError.__name__, message)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    kind = _WORDS.get(status, "HTTPError")
    message = str(error.detail)
    headers = error.headers
    if status == 400:
        message = (
            "The body of a request must be JSON in UTF-8, but this one is not: check its encoding."
        )
    elif status == 404:
        message = f"There is no path {request.url.path[:200]!r}: see /openapi.json."
    elif status == 405:
        message = f"This path has no method {request.method[:20]}: see /openapi.json."
        headers = {"allow": ", ".join(_methods(request))}
    return error_answer(status, kind, message, headers)


def _methods(request: Request) -> list[str]:
    """Return the methods of a path, which several routes may share."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    segments = request.scope["path"].split("/")
    found: set[str] = set()
    for path, methods in paths.items():
        if _fits(path.split("/"), segments):
            found.update(method.upper() for method in methods)
    return sorted(found) or ["GET"]


def _fits(pattern: list[str], segments: list[str]) -> bool:
    if len(pattern) != len(segments):
        return False
    for wanted, found in zip(pattern, segments, strict=True):
        is_parameter = wanted.startswith("{") and found != ""
        if wanted != found and not is_parameter:
            return False
    return True


async def _failure(_: Request, error: Exception) -> Response:
    message = f"The service failed ({describe(error)[:300]}): see its log."
    return error_answer(500, "InternalError", message)


def _finite(value: Any) -> Any:
    """Return a copy in which numbers that are not finite are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
