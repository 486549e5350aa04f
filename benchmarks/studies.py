"""Durable studies: requests per second of several processes, and how long it takes to open a study with a million rounds."""

import json
import multiprocessing
import os
import tempfile
import time
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
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [context.Process(target=_work, args=(url, name, n, barrier, results)) for n in range(processes)]
    for worker in workers:
        worker.start()
    taken = np.concatenate([results.get() for _ in workers])
    for worker in workers:
        worker.join()
    half, nearly, longest = (float(np.quantile(taken, q)) * 1e3 for q in (0.5, 0.99, 1.0))
    latency = f"{half:.1f} ms median, {nearly:.0f} ms p99, {longest:.0f} ms at most"
    where = url.partition(":")[0] + ("" if "synchronous=" not in url else " (synchronous=full)")
    print(f"{where}, {selector}, {processes} processes: {len(taken) / 2 / SECONDS:.0f} ask + tell pairs/s, {latency}", flush=True)


def _work(url: str, name: str, worker: int, barrier: Any, results: Any) -> None:
    rng, taken = np.random.default_rng(worker), []
    with esbas.open_study(url, name) as study:
        barrier.wait()
        end, n = time.perf_counter() + SECONDS, 0
        while (start := time.perf_counter()) < end:
            choice = study.ask(key=f"{worker}-ask-{n}")
            middle = time.perf_counter()
            study.tell(choice, float(rng.random()), key=f"{worker}-tell-{n}")
            taken += [middle - start, time.perf_counter() - middle]
            n += 1
    results.put(np.array(taken))


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
