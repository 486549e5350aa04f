"""Runs the service with uvicorn."""

import socket

import uvicorn
from fastapi import FastAPI

from esbas.errors import ServiceError, require

KEEP_ALIVE = 75  # seconds until an idle connection is closed
MOST_CONNECTIONS = 1000
GRACE = 10  # seconds for requests that are being answered when the service stops


class StudyServer(uvicorn.Server):
    """A server that ends streams before it waits for its connections."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                limit_concurrency=MOST_CONNECTIONS,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
                timeout_keep_alive=KEEP_ALIVE,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stop()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket for the service; port 0: any that is free."""
    require(0 <= port < 2**16, "0 <= port <= 65535", port=port)  # the operating system would take another one
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        place = socket.socket(family, kind, protocol)
        try:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind(address)
            place.listen(2048)
        except BaseException:
            place.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ServiceError(
            f"the address must be free, but {host}:{port} is not usable ({cause}): use another port or host"
        ) from None
    return place


def address_of(place: socket.socket) -> str:
    """The URL of a service that listens there."""
    host, port, *_ = place.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: FastAPI, place: socket.socket) -> None:
    """Serve until the process gets a signal."""
    StudyServer(app).run(sockets=[place])
