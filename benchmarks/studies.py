"""Durable studies: requests per second of several processes, and opening a million rounds."""

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
from esbas.studies import open_store
from esbas.studies.events import ASKED, TOLD, Event
from esbas.studies.log import SNAPSHOT_EVERY
from esbas.studies.replica import Replica

ARMS = ["a", "b", "c", "d", "e", "f"]
PROCESSES = 8
SECONDS = 8.0
ROUNDS = 1_000_000
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
    store = url.partition(":")[0]
    if "synchronous=" in url:
        store += " (synchronous=full)"
    print(f"{store}, {selector}, {processes} processes: {rates}", flush=True)


def measure(work: Callable[..., None], processes: int, *where: str) -> str:
    """Return pairs of requests per second and their latency.

    Args:
        work: called as `work(worker, barrier, results, *where)` in each process.
        processes: how many processes work at the same time.
        where: what `work` needs to find the study.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes)
    results = context.Queue()
    workers = [
        context.Process(target=work, args=(number, barrier, results, *where))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    taken = np.concatenate([results.get() for _ in workers])
    for worker in workers:
        worker.join()
    median, p99, longest = 1e3 * np.quantile(taken, (0.5, 0.99, 1.0))
    latency = f"{median:.1f} ms median, {p99:.1f} ms p99, {longest:.0f} ms at most"
    return f"{len(taken) / 2 / SECONDS:.0f} ask + tell pairs/s, {latency}"


def send_pairs(study: Any, worker: int, barrier: Any, results: Any) -> None:
    """Ask and tell for some seconds, once all workers are ready."""
    rng = np.random.default_rng(worker)
    taken = []
    barrier.wait()
    end = time.perf_counter() + SECONDS
    number = 0
    start = time.perf_counter()
    while start < end:
        choice = study.ask(key=f"{worker}-ask-{number}")
        middle = time.perf_counter()
        study.tell(choice, float(rng.random()), key=f"{worker}-tell-{number}")
        taken += [middle - start, time.perf_counter() - middle]
        number += 1
        start = time.perf_counter()
    results.put(np.array(taken))


def _work(worker: int, barrier: Any, results: Any, url: str, name: str) -> None:
    with esbas.open_study(url, name) as study:
        send_pairs(study, worker, barrier, results)


def _opening(url: str, selector: str) -> None:
    """Write a long log without a transaction per request, and open it.

    As many events as possible follow the last snapshot.
    """
    with esbas.open_study(url, "long", selector=selector, arms=ARMS) as study:
        description = study.description["selector"]
    store = open_store(url)
    rng = np.random.default_rng(0)
    replica = Replica(description)
    row = store.get("long")
    state = ""
    for _ in range(ROUNDS // CHUNK):
        events = []
        for value in rng.random(CHUNK).tolist():
            choice = replica.ask(None, None)
            number = choice.number
            asked = Event(
                replica.seq + 1,
                ASKED,
                number,
                choice.arm,
                None,
                choice.propensity,
                choice.epoch,
                at=float(number),
            )
            replica.note(asked, choice)
            told = Event(replica.seq + 1, TOLD, number, choice.arm, value, at=float(number))
            replica.note(told)
            events += [asked, told]
            if replica.seq == 2 * ROUNDS - SNAPSHOT_EVERY:
                state = json.dumps(replica.state_dict())
        with store.write(row.id):
            store.append(row.id, events)
    store.add_snapshot(row.id, 2 * ROUNDS - SNAPSHOT_EVERY, state)
    store.close()
    start = time.perf_counter()
    computing = time.process_time()
    with esbas.open_study(url, "long") as study:
        taken = time.perf_counter() - start
        computed = time.process_time() - computing
        assert study.number == ROUNDS
    size = Path(url.partition("sqlite:///")[2]).stat().st_size / ROUNDS
    print(
        f"{selector}, {ROUNDS:,} rounds: opened in {taken:.2f} s ({computed:.2f} s of computing); "
        f"the snapshot has {len(state) / 1e6:.1f} MB; {size:.0f} bytes per round",
        flush=True,
    )
