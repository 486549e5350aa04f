"""Pages for people: what this service is, and its routes. Nothing is loaded from other sites."""

from html import escape
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def add_pages(app: FastAPI) -> None:
    """Serve `/` and `/docs`. An application with other pages passes another function to `create_app`."""
    app.add_api_route("/", _start, include_in_schema=False)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)


async def _start() -> Response:
    return _page("<p>This service chooses among algorithms for live systems: it serves the studies of a store over HTTP.</p>")


async def _docs(request: Request) -> Response:
    return _page(_table(request.app.openapi()))


async def _icon() -> Response:
    return Response(status_code=204)


def _table(schema: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td><td>{escape(each.get('summary', ''))}</td></tr>"
        for path, methods in schema["paths"].items()
        for method, each in methods.items()
    ]
    return f"<table><thead><tr><th>method<th>path<th>what it does</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _page(content: str) -> Response:
    text = resources.files("esbas.server").joinpath("page.html").read_text("utf-8")
    return HTMLResponse(text.replace("<!-- content -->", content), headers=_HEADERS)
