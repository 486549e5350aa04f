"""The service under attack, and killed: `make test-services`."""

import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import esbas
from esbas.errors import ServiceError, StoreError
from esbas.studies import replay
from esbas.studies.client import Client
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.tokens import TokenFile
from processes import WAIT, wait_until
from studies.server.serving import ARMS, error_of, free_port, path_of, process, send, serving
from studies.servers import postgresql

pytestmark = pytest.mark.services
TOKEN = "schemathesis-0123456789"


def test_generated_requests_cause_no_server_error_and_no_undocumented_answer(store, tmp_path):
    program = Path(sys.executable).with_name("schemathesis")
    assert program.exists(), "make test-services installs schemathesis"
    (tmp_path / "tokens.toml").write_text(
        f'[[token]]\nname = "a"\nscope = "write"\ntoken = "{TOKEN}"\n'
    )
    limits = ServiceLimits(stream_seconds=0.05, poll_seconds=0.01)
    # Valid JSON can break rules between fields.
    options = ["--checks", "all", "--exclude-checks", "positive_data_acceptance"]
    options += [
        "--max-examples",
        "8",
        "--max-time",
        "45",
        "--no-shrink",
        "--no-color",
        "--generation-deterministic",
    ]
    with serving(store, tokens=TokenFile(tmp_path / "tokens.toml"), limits=limits) as url:
        command = [
            str(program),
            "run",
            f"{url}/openapi.json",
            "--header",
            f"Authorization: Bearer {TOKEN}",
            *options,
        ]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=2 * WAIT
        )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "Tested: 21" in done.stdout


@pytest.mark.parametrize("header", [b"content-length: 100000000", b"transfer-encoding: chunked"])
def test_a_body_of_100_mb_is_refused_early(header, store):
    with serving(store) as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), WAIT) as connection:
            connection.sendall(
                b"POST /v1/studies HTTP/1.1\r\nhost: 127.0.0.1\r\n" + header + b"\r\n\r\n"
            )
            chunk = (
                b"10000\r\n" + b"x" * 0x10000 + b"\r\n" if b"chunked" in header else b"x" * 0x10000
            )
            sent = 0
            with contextlib.suppress(ConnectionError):
                while sent < 100_000_000 and not select.select([connection], [], [], 0)[0]:
                    connection.sendall(chunk)
                    sent += len(chunk)
            assert sent < 20_000_000  # what the buffers of the operating system take
            assert b" 413 " in connection.recv(1000)
        with Client(url) as client:
            assert client.health()["status"] == "ok"


class Workers:
    """Threads that share one client, ask and tell without keys, and note the answers."""

    def __init__(self, client, number):
        self.study = client.existing_study("killed")
        self.stop = threading.Event()
        self.answers = []
        self.told = {}
        self.failures = []
        self.threads = [
            threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(number)
        ]
        for thread in self.threads:
            thread.start()

    def work(self, worker):
        rng = random.Random(worker)
        try:
            while not self.stop.is_set():
                epoch = self.study.claim_epoch()
                if epoch is not None:
                    self.study.epoch_ready(epoch)
                choice = self.study.ask()
                value = rng.random()
                self.answers.append((choice.number, choice.arm))
                self.study.tell(choice, value)
                self.told[choice.number] = value
        except Exception as error:
            self.failures.append(error)

    def join(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(WAIT)
            assert not thread.is_alive()


def test_a_killed_service_loses_and_doubles_nothing(store):
    esbas.open_study(
        store, "killed", selector="esbas", arms=ARMS, options={"epochs": [5]}, claim_expires=0.5
    ).close()
    port = free_port()
    followed = []
    client = Client(f"http://127.0.0.1:{port}", patience=WAIT)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(process(store, port))
        workers = Workers(client, 4)
        follower = threading.Thread(
            target=lambda: follow(client.existing_study("killed"), followed), daemon=True
        )
        follower.start()
        for kill in range(5):
            wait_until(
                lambda k=kill: workers.failures or len(workers.told) > 20 * (k + 1), "answers"
            )
            assert workers.failures == []
            os.kill(server.pid, signal.SIGKILL)
            server.wait(WAIT)
            server = stack.enter_context(process(store, port))
        workers.join()
        assert workers.failures == []
        with esbas.open_study(store, "killed") as study:
            history = list(study.history())
            assert replay(study).difference is None
        wait_until(lambda: len(followed) >= len(history), "all events in the stream")
        assert (
            [event.seq for event in followed]
            == [event.seq for event in history]
            == list(range(1, len(history) + 1))
        )
    asked = {event.number: event.arm for event in history if event.kind == "asked"}
    assert asked == dict(workers.answers)
    assert len(asked) == len(workers.answers) == [event.kind for event in history].count("asked")
    assert {event.number: event.value for event in history if event.kind == "told"} == workers.told
    assert [event.kind for event in history].count("told") == len(workers.told)
    client.close()


def follow(study, into):
    with contextlib.suppress(ServiceError):  # at the end of the test, the service is gone
        for event in study.follow():
            into.append(event)  # one at a time: others look


def test_a_stream_ends_when_the_service_stops(store):
    port = free_port()
    with process(store, port) as server, Client(f"http://127.0.0.1:{port}", patience=0.0) as client:
        study = client.study("stopped", selector="uniform", arms=ARMS)
        study.ask()
        followed = study.follow()
        assert next(followed).seq == 1
        started = time.monotonic()
        server.send_signal(signal.SIGTERM)
        with pytest.raises(ServiceError, match="cannot be reached"):
            next(followed)
        assert server.wait(WAIT) == -signal.SIGTERM
        assert time.monotonic() - started < 60


def test_a_service_on_postgresql_survives_a_crash_of_the_database():
    with (
        postgresql(sync=False) as database,
        serving(database.url) as url,
        Client(url, patience=0.0) as client,
    ):
        study = client.study("kept / ' <b>", selector="ssbas", arms=ARMS)
        choice = study.ask(key="first")
        followed = study.follow()
        assert next(followed).kind == "asked"
        database.stop()
        with pytest.raises(StoreError, match="PostgreSQL cannot be reached"):
            study.tell(choice, 1.0, key="second")
        with pytest.raises(StoreError, match="PostgreSQL cannot be reached"):
            next(followed)
        assert send(url, "GET", "/healthz")[0] == 503
        database.start()
        study.tell(choice, 1.0, key="second")
        assert study.ask(key="first") == choice
        assert [event.kind for event in study.history()] == ["asked", "told"]
        assert error_of(send(url, "GET", "/v1/studies/%00")) == (422, "InvalidValueError")
        assert client.health()["status"] == "ok"


def test_a_client_that_does_not_read_its_stream_is_given_up(store):
    limits = ServiceLimits(streams=1, stream_seconds=0.5, poll_seconds=0.01)
    with serving(store, limits=limits) as url, Client(url) as client:
        study = client.study("large", selector="uniform", arms=ARMS)
        rng = np.random.default_rng(0)
        for _ in range(120):
            study.ask(context=rng.random(10_000))
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), WAIT) as silent:
            silent.sendall(
                f"GET {path_of('large', '/events')} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
            )
            assert silent.recv(12) == b"HTTP/1.1 200"
            rest = path_of("large", "/events?after=120")
            assert send(url, "GET", rest)[0] == 429
            wait_until(lambda: send(url, "GET", rest)[0] == 200, "its end")
