"""The service of studies: ask + tell pairs per second of client processes on this machine."""

import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.studies import ARMS, measure, send_pairs
from esbas.studies.client import Client

CLIENTS = 4


def main() -> None:
    for selector in ("esbas", "ssbas"):
        for clients in (1, CLIENTS):
            _requests(selector, clients)


def _requests(selector: str, clients: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "esbas", "serve", f"{folder}/studies.db", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().partition(" at ")[2].partition(",")[0]
                Client(url).study("benchmark", selector=selector, arms=ARMS)
                print(f"{selector}, {clients} clients: {measure(_work, clients, url)}", flush=True)
            finally:
                server.terminate()


def _work(worker: int, barrier: Any, results: Any, url: str) -> None:
    with Client(url) as client:
        send_pairs(client.existing_study("benchmark"), worker, barrier, results)
