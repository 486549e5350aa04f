"""The application of the service: its routes, errors and limits."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request

from esbas import __version__
from esbas.studies.server import choice_routes, event_routes, study_routes
from esbas.studies.server.answers import Answer, add_error_answers
from esbas.studies.server.guard import PUBLIC, Guard
from esbas.studies.server.models import HealthAnswer
from esbas.studies.server.open_studies import OpenStudies
from esbas.studies.server.pages import add_pages
from esbas.studies.server.routing import ERRORS, Service, studies_of
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.tokens import TokenFile

DESCRIPTION = """Studies over HTTP: ask which arm goes next, tell what it was worth.

Every error has the shape `{"error": {"type", "message"}}`. In answers, numbers that are not finite
are null. A request with a key can be sent again without further effect. Names in paths are
percent-encoded, `/` included."""

_health = APIRouter(responses={status: ERRORS[status] for status in (403, 405, 408, 413, 429, 503)})


def create_app(
    url: str,
    *,
    tokens: TokenFile | None = None,
    limits: ServiceLimits | None = None,
    trust: bool = False,
    pages: Callable[[FastAPI], None] = add_pages,
) -> FastAPI:
    """Create the service of the studies in a store, for an ASGI server such as uvicorn.

    Args:
        url: the store, see `esbas.studies.open_store`; it is created if there is none.
        tokens: see `new_app`.
        limits: see `ServiceLimits`.
        trust: whether modules that studies in the store name may be imported. Imported modules can
            run any code.
        pages: see `new_app`.
    """
    limits = limits or ServiceLimits()
    service = Service(OpenStudies(url, limits=limits, trust=trust), limits)
    app = new_app(
        tokens=tokens, limits=limits, pages=pages, stop=service.stop, close=service.studies.close
    )
    app.state.service = service
    # The most frequent requests come first: routes are searched in this order.
    for router in (choice_routes.router, event_routes.router, study_routes.router, _health):
        app.include_router(router)
    return app


def new_app(
    *,
    tokens: TokenFile | None,
    limits: ServiceLimits,
    pages: Callable[[FastAPI], None],
    stop: Callable[[], None] = lambda: None,
    close: Callable[[], None] = lambda: None,
) -> FastAPI:
    """Create an application with the errors, limits and tokens of the service, but without studies.

    Args:
        tokens: who may use it. None: every program on this machine; requests to other hosts are
            refused.
        limits: see `ServiceLimits`.
        pages: adds pages for browsers. Their paths need tokens unless they are in `guard.PUBLIC` or
            start with `/static/`.
        stop: called when the server starts to shut down; it ends what would delay that.
        close: called when all requests are answered.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        stop()
        close()

    app = FastAPI(
        title="esbas",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,  # these pages would load scripts from other sites
        redoc_url=None,
    )
    app.state.stop = stop
    add_error_answers(app)
    pages(app)
    app.add_middleware(Guard, tokens=tokens, limits=limits)
    _require_tokens(app)
    return app


@_health.get(
    "/healthz",
    response_model=HealthAnswer,
    summary="Whether the service and its store work",
    tags=["health"],
)
def health(request: Request) -> Answer:
    """Needs no token."""
    store = studies_of(request).store
    with store.lock:
        store.execute("SELECT 1")
    return Answer({"status": "ok", "version": __version__})


def _require_tokens(app: FastAPI) -> None:
    """Declare in the OpenAPI description that paths which are not public need a token."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        schema = describe()
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in schema["paths"].items():
            for method in methods.values():
                method["security"] = [] if path in PUBLIC else [{"token": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
