"""The service of studies: ask + tell pairs per second of several client processes on this machine."""

import multiprocessing
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.studies import ARMS
from esbas.client import Client

CLIENTS, SECONDS = 4, 8.0


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
                _measure(url, selector, clients)
            finally:
                server.terminate()


def _measure(url: str, selector: str, clients: int) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(clients), context.Queue()
    workers = [context.Process(target=_work, args=(url, n, barrier, results)) for n in range(clients)]
    for worker in workers:
        worker.start()
    taken = np.concatenate([results.get() for _ in workers])
    for worker in workers:
        worker.join()
    half, nearly, longest = (float(np.quantile(taken, q)) * 1e3 for q in (0.5, 0.99, 1.0))
    latency = f"{half:.1f} ms median, {nearly:.1f} ms p99, {longest:.0f} ms at most"
    print(f"{selector}, {clients} clients: {len(taken) / 2 / SECONDS:.0f} ask + tell pairs/s, {latency}", flush=True)


def _work(url: str, worker: int, barrier: Any, results: Any) -> None:
    rng, taken = np.random.default_rng(worker), []
    with Client(url) as client:
        study = client.existing_study("benchmark")
        barrier.wait()
        end, n = time.perf_counter() + SECONDS, 0
        while (start := time.perf_counter()) < end:
            choice = study.ask(key=f"{worker}-ask-{n}")
            middle = time.perf_counter()
            study.tell(choice, float(rng.random()), key=f"{worker}-tell-{n}")
            taken += [middle - start, time.perf_counter() - middle]
            n += 1
    results.put(np.array(taken))
