"""A service in this process, or in one that can be killed."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

from esbas.studies.server.app import create_app
from esbas.studies.server.running import StudyServer, address_of, listen
from processes import WAIT, wait_until

ARMS = ["rules", "small", "large"]


@contextlib.contextmanager
def serving(store: str, *, port: int = 0, **options) -> Iterator[str]:
    """The URL of a service in a thread of this process, which is stopped after the block."""
    with running_app(create_app(store, **options), port=port) as url:
        yield url


@contextlib.contextmanager
def running_app(app, *, port: int = 0) -> Iterator[str]:
    """The same for any application."""
    with listen("127.0.0.1", port) as listener:
        server = StudyServer(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive(), "the start of the service")
            assert thread.is_alive()
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join(WAIT)
            assert not thread.is_alive()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def process(store: str, port: int) -> Iterator[subprocess.Popen]:
    """`esbas serve` in a process, which is ended after the block."""
    command = [sys.executable, "-m", "esbas", "serve", store, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert "at http://127.0.0.1" in running.stdout.readline()
            yield running
        finally:
            running.kill()


def send(url, method, path, body=None, headers=None):
    """Status, headers and body of an answer. `body` is sent as JSON unless it is bytes."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname, parts.port, timeout=WAIT)
    try:
        content = body if isinstance(body, bytes | None) else json.dumps(body)
        given = {} if body is None else {"content-type": "application/json"}
        connection.request(method, path, content, given | (headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def path_of(name, rest=""):
    return f"/v1/studies/{quote(name, safe='')}{rest}"


def error_of(answer):
    """Status and type of an error, whose shape is checked."""
    status, _, body = answer
    error = json.loads(body)["error"]
    assert set(error) == {"type", "message"}
    assert "\n" not in error["message"]
    return status, error["type"]
