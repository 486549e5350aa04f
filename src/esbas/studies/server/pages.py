"""Pages for browsers: the board, and a list of the routes. Nothing comes from other sites."""

import os
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

BOARD = Path(__file__).parent / "board"
_ALWAYS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
_BOARD_HEADERS = _ALWAYS | {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",  # after an update of esbas, browsers ask for the new files
}
_DOCS_HEADERS = _ALWAYS | {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    )
}


def add_pages(app: FastAPI) -> None:
    """Serve the board of studies at `/`, and a list of the routes at `/docs`.

    An application with other pages passes another function to `create_app`.
    """
    add_board(app, source="studies")
    app.add_api_route("/docs", _docs, include_in_schema=False)


def add_board(app: FastAPI, *, source: str) -> None:
    """Serve the board at `/` and its files in `/static/`.

    Args:
        app: the application.
        source: what the board shows, "studies" or "trainings": it reads `/v1/SOURCE`.
    """

    async def start() -> Response:
        text = (BOARD / "index.html").read_text("utf-8")
        text = text.replace('content="studies"', f'content="{source}"')
        return HTMLResponse(text, headers=_BOARD_HEADERS)

    app.add_api_route("/", start, include_in_schema=False)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.mount("/static", BoardFiles(directory=BOARD))


class BoardFiles(StaticFiles):
    """The files of the board, with the headers that keep browsers from running anything else."""

    def file_response(
        self, full_path: str | os.PathLike[str], *arguments: Any, **options: Any
    ) -> Response:
        answer = super().file_response(full_path, *arguments, **options)
        answer.headers.update(_BOARD_HEADERS)
        return answer


async def _docs(request: Request) -> Response:
    text = resources.files("esbas.studies.server").joinpath("page.html").read_text("utf-8")
    text = text.replace("<!-- content -->", _table(request.app.openapi()))
    return HTMLResponse(text, headers=_DOCS_HEADERS)


async def _icon() -> Response:
    return Response(status_code=204)


def _table(schema: dict[str, Any]) -> str:
    rows = []
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            summary = escape(route.get("summary", ""))
            rows.append(
                f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td>"
                f"<td>{summary}</td></tr>"
            )
    head = "<thead><tr><th>method<th>path<th>what it does</tr></thead>"
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
