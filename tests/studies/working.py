"""Processes that use a study, are killed, and continue where they were."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import esbas
from esbas.studies import replay
from processes import WAIT, wait_until

_FORK = multiprocessing.get_context("fork")  # starts in milliseconds


def work(url: str, name: str, worker: int, folder: Path) -> None:
    """Send requests, each twice, and write down what was answered, until there is a file `stop`."""
    lines = (
        (folder / f"{worker}.txt").read_text().splitlines()
        if (folder / f"{worker}.txt").exists()
        else []
    )
    done = len(lines)
    descriptor = os.open(folder / f"{worker}.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with esbas.open_study(url, name) as study:
        stopping = False
        # At least one request: the last one of a killed process may have no answer yet
        while not stopping:
            stopping = (folder / "stop").exists()
            epoch = study.claim_epoch()
            if epoch is not None:
                study.epoch_ready(epoch)
            choice = study.ask(key=f"{worker} asks {done}")
            again = study.ask(key=f"{worker} asks {done}")
            assert choice == again
            for _ in range(2):
                study.tell(choice.number, value(worker, done), key=f"{worker} tells {done}")
            os.write(descriptor, f"{choice.number} {choice.arm}\n".encode())
            done += 1


def value(worker: int, request: int) -> float:
    return random.Random(f"{worker} {request}").random()


def start(target: Callable[..., None], *arguments: object) -> multiprocessing.Process:
    process = _FORK.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def kill_often(url: str, folder: Path, *, processes: int, kills: int) -> None:
    """Let processes share a study, kill them, and check that nothing is lost or doubled."""
    arms = ["rules", "small", "large"]
    esbas.open_study(
        url, "killed", selector="esbas", arms=arms, options={"epochs": [5]}, claim_expires=0.3
    ).close()
    rng = random.Random(0)
    workers = [start(work, url, "killed", n, folder) for n in range(processes)]
    for _ in range(kills):
        victim = rng.randrange(processes)
        file = folder / f"{victim}.txt"
        process = workers[victim]
        before = file.stat().st_size if file.exists() else 0
        wait_until(
            lambda f=file, b=before: f.exists() and f.stat().st_size > b,
            f"an answer to worker {victim}",
        )
        time.sleep(rng.random() * 0.01)
        assert process.is_alive()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        workers[victim] = start(work, url, "killed", victim, folder)
    (folder / "stop").touch()
    for process in workers:
        process.join(WAIT)
        assert process.exitcode == 0
    check_log(url, folder, processes)


def check_log(url: str, folder: Path, processes: int) -> None:
    with esbas.open_study(url, "killed") as study:
        history = list(study.history())
        repeated = replay(study)
    assert [event.seq for event in history] == list(range(1, len(history) + 1))
    by_key = {event.key: event for event in history if event.key is not None}
    answered = 0
    for worker in range(processes):
        lines = (folder / f"{worker}.txt").read_text().splitlines()
        answered += len(lines)
        for request, line in enumerate(lines):
            asked = by_key[f"{worker} asks {request}"]
            told = by_key[f"{worker} tells {request}"]
            assert line == f"{asked.number} {asked.arm}"
            assert (told.number, told.value) == (asked.number, value(worker, request))
    kinds = [event.kind for event in history]
    assert kinds.count("asked") == kinds.count("told") == answered
    assert sorted(event.number for event in history if event.kind == "asked") == list(
        range(1, answered + 1)
    )
    ready = [event.epoch for event in history if event.kind == "epoch_ready"]
    assert ready == list(range(len(ready)))
    assert len(ready) > 2
    assert repeated.difference is None
    assert repeated.choices == answered
