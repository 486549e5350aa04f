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
    """Open a socket for the service. Port 0 stands for any free port."""
    # Checked here, because the operating system would use another port instead.
    require(0 <= port < 2**16, f"`port` must be between 0 and 65535, but got {port!r}.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(2048)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ServiceError(
            f"The address {host}:{port} cannot be used ({cause}): use another port or host."
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a service that listens there."""
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: FastAPI, listener: socket.socket) -> None:
    """Serve until the process gets a signal."""
    StudyServer(app).run(sockets=[listener])
