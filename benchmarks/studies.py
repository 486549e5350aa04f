"""Durable studies: requests per second of several processes, and how long it takes to open a study with a million rounds."""

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import esbas
from esbas.store import open_store
from esbas.store.events import ASKED, TOLD, Event
from esbas.store.log import SNAPSHOT_EVERY
from esbas.store.replica import Replica

ARMS = ["a", "b", "c", "d", "e", "f"]
PROCESSES, SECONDS, ROUNDS = 8, 8.0, 1_000_000
CHUNK = 50_000  # rounds that are written at a time


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for selector in ("esbas", "ssbas"):
            for processes in (1, PROCESSES):
                _requests(f"sqlite:///{folder}/{selector}-{processes}.db", selector, processes)
        _requests(f"sqlite:///{folder}/full.db?synchronous=full", "esbas", PROCESSES)
        for selector in ("esbas", "ssbas"):
            _opening(f"sqlite:///{folder}/long-{selector}.db", selector)
    url = os.environ.get("ESBAS_POSTGRESQL")
    if url:
        for processes in (1, PROCESSES):
            _requests(url, "esbas", processes)


def _requests(url: str, selector: str, processes: int) -> None:
    name = f"benchmark of {processes} at {time.time()}"
    esbas.open_study(url, name, selector=selector, arms=ARMS).close()
    rates = measure(_work, processes, url, name)
    where = url.partition(":")[0] + ("" if "synchronous=" not in url else " (synchronous=full)")
    print(f"{where}, {selector}, {processes} processes: {rates}", flush=True)


def measure(work: Callable[..., None], processes: int, *where: str) -> str:
    """Pairs of requests per second and their latency, if `work(worker, barrier, results, *where)` runs in some processes."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [context.Process(target=work, args=(number, barrier, results, *where)) for number in range(processes)]
    for worker in workers:
        worker.start()
    taken = np.concatenate([results.get() for _ in workers])
    for worker in workers:
        worker.join()
    half, nearly, longest = (float(np.quantile(taken, q)) * 1e3 for q in (0.5, 0.99, 1.0))
    latency = f"{half:.1f} ms median, {nearly:.1f} ms p99, {longest:.0f} ms at most"
    return f"{len(taken) / 2 / SECONDS:.0f} ask + tell pairs/s, {latency}"


def send_pairs(study: Any, worker: int, barrier: Any, results: Any) -> None:
    """Ask and tell for some seconds, once all workers are ready."""
    rng, taken = np.random.default_rng(worker), []
    barrier.wait()
    end, n = time.perf_counter() + SECONDS, 0
    while (start := time.perf_counter()) < end:
        choice = study.ask(key=f"{worker}-ask-{n}")
        middle = time.perf_counter()
        study.tell(choice, float(rng.random()), key=f"{worker}-tell-{n}")
        taken += [middle - start, time.perf_counter() - middle]
        n += 1
    results.put(np.array(taken))


def _work(worker: int, barrier: Any, results: Any, url: str, name: str) -> None:
    with esbas.open_study(url, name) as study:
        send_pairs(study, worker, barrier, results)


def _opening(url: str, selector: str) -> None:
    """Write a long log without a transaction per request, and open it. As many events as possible follow the last snapshot."""
    with esbas.open_study(url, "long", selector=selector, arms=ARMS) as study:
        description = study.description["selector"]
    store, rng, replica = open_store(url), np.random.default_rng(0), Replica(description)
    row, state = store.get("long"), ""
    for _ in range(ROUNDS // CHUNK):
        events = []
        for value in rng.random(CHUNK).tolist():
            choice = replica.ask(None, None)
            made = choice.number, choice.arm, None, choice.propensity, choice.epoch
            events.append(Event(replica.seq + 1, ASKED, *made, at=float(choice.number)))
            replica.note(events[-1], choice)
            events.append(Event(replica.seq + 1, TOLD, choice.number, choice.arm, value, at=float(choice.number)))
            replica.note(events[-1])
            if replica.seq == 2 * ROUNDS - SNAPSHOT_EVERY:
                state = json.dumps(replica.state_dict())
        with store.write(row.id):
            store.append(row.id, events)
    store.add_snapshot(row.id, 2 * ROUNDS - SNAPSHOT_EVERY, state)
    store.close()
    start, computing = time.perf_counter(), time.process_time()
    with esbas.open_study(url, "long") as study:
        taken, computed = time.perf_counter() - start, time.process_time() - computing
        assert study.number == ROUNDS
    size = Path(url.partition("sqlite:///")[2]).stat().st_size / ROUNDS
    print(
        f"{selector}, {ROUNDS:,} rounds: opened in {taken:.2f} s ({computed:.2f} s of computing); "
        f"the snapshot has {len(state) / 1e6:.1f} MB; {size:.0f} bytes per round",
        flush=True,
    )
