"""A call center: eight processes hold conversations, some are killed, and the board shows it.

Callers negotiate, as in Section 4 of the paper, with two models that learn by fitted Q iteration,
and with rules that never change. A study decides who holds the next conversation. When an epoch is
due, exactly one process retrains both models from the conversations of all. A process that is
killed loses the conversation that it holds, and nothing else: that choice expires.

Run it with `python examples/call_center.py [CONVERSATIONS]`, and open the address that it prints.
Everything is in the folder `call-center`: after Ctrl-C, the same command continues.
"""

import io
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

import esbas
from esbas.experiments.envs import DialogueFeatures, NegotiationDialogue, negotiation_return
from esbas.learners import LinearFQI
from esbas.studies import replay

FOLDER = Path("call-center")
STUDY = (f"sqlite:///{FOLDER}/study.db", "calls")
CALLS = FOLDER / "calls.db"
MODELS = FOLDER / "models.npz"
WORKERS = 8
KILLS = 3
SECONDS = 0.02  # that a conversation takes on average; a real one takes minutes
EXPIRE = 5.0  # seconds after which a conversation without an outcome is given up
CLAIM = 10.0  # seconds after which a retraining is given up
PROPOSE = 1  # an action of the dialogue
ACCEPT = 3
LEARNERS = {"simple": "simple", "quadratic": "simple-2"}  # arms that learn, and their features


class Rules:
    """Rules by hand: offer the best option first, then the others, and accept whatever is cheap."""

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        del rng
        heard = int(observation[2])
        costs = observation[5:]
        return ACCEPT if heard >= 0 and costs[heard] < 0.5 else PROPOSE


def new_learners(epsilon: float = 0.0) -> dict[str, LinearFQI]:
    """Create the models, untrained."""
    learners = {}
    for arm, name in LEARNERS.items():
        features = DialogueFeatures(name)
        learners[arm] = LinearFQI(arm, features, actions=5, gamma=0.9, epsilon=lambda _: epsilon)
    return learners


def retrain() -> None:
    """Fit both models to all conversations so far, and replace the file of the models at once."""
    data = esbas.TrajectorySet()
    learners = new_learners()
    with closing(sqlite3.connect(CALLS, timeout=60)) as calls:
        for arm, content in calls.execute("SELECT arm, content FROM call ORDER BY number"):
            columns = np.load(io.BytesIO(content), allow_pickle=False)
            data.append(esbas.Trajectory(**columns, terminated=True, truncated=False), arm=arm)
    if not len(data):  # before the first conversation
        return
    for learner in learners.values():
        learner.learn(data)
    new = MODELS.with_suffix(f".{os.getpid()}.npz")
    weights: dict[str, Any] = {arm: learner.weights for arm, learner in learners.items()}
    np.savez(new, allow_pickle=False, **weights)
    new.replace(MODELS)


def policies() -> dict[str, Any]:
    """Return the policy of each arm. Models explore a little; before the first training, always."""
    weights = np.load(MODELS, allow_pickle=False) if MODELS.exists() else {}
    learners = new_learners(epsilon=0.05 if weights else 1.0)
    for arm in weights:
        learners[arm].weights = weights[arm]
    found: dict[str, Any] = {"rules": Rules()}
    for arm, learner in learners.items():
        found[arm] = learner.policy()
    return found


def work(number: int, conversations: int) -> None:
    """Work in one process: ask, hold the conversation, keep it, tell its value."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process
    rng = np.random.default_rng([number, time.time_ns()])
    env = NegotiationDialogue()
    value_of = negotiation_return()
    epoch = -1
    with esbas.open_study(*STUDY) as study, closing(sqlite3.connect(CALLS, timeout=60)) as calls:
        while study.number < conversations:
            with study.retraining() as due:
                # One process gets the epoch. If it is killed, another one gets it after a while.
                if due is not None:
                    retrain()
            with study.choose() as choice:
                if choice.epoch != epoch:
                    epoch = choice.epoch
                    acting = policies()
                call = esbas.play(env, acting[choice.arm], rng=rng, seed=int(rng.integers(2**31)))
                time.sleep(rng.exponential(SECONDS))
                content = io.BytesIO()
                np.savez(
                    content,
                    observations=call.observations,
                    actions=call.actions,
                    rewards=call.rewards,
                )
                with calls:
                    row = (choice.number, choice.arm, content.getvalue())
                    calls.execute("INSERT INTO call VALUES (?, ?, ?)", row)
                choice.value = value_of(call)


@contextmanager
def board() -> Iterator[None]:
    """Serve the study and its board until the end of the block."""
    command = [sys.executable, "-m", "esbas", "serve", STUDY[0], "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        assert server.stdout is not None
        print(server.stdout.readline().strip(), flush=True)
        try:
            yield
        finally:
            server.terminate()


def center(conversations: int) -> None:
    """Keep eight processes working, and kill one at random, three times in all."""
    workers = [start_worker(number, conversations) for number in range(WORKERS)]
    with esbas.open_study(*STUDY) as study:
        first = study.number
        pause = (conversations - first) / (KILLS + 1)  # conversations between two kills
        killed = 0
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.2)
            if killed < KILLS and study.number - first > (killed + 1) * pause:
                killed += 1
                index = random.randrange(WORKERS)
                workers[index].kill()
                workers[index].join()
                print(
                    f"{study.number:,} conversations: process {index} is killed, "
                    "and another one starts",
                    flush=True,
                )
                workers[index] = start_worker(WORKERS + killed, conversations)


def start_worker(number: int, conversations: int) -> SpawnProcess:
    """Start a process of the call center."""
    spawn = multiprocessing.get_context("spawn")
    worker = spawn.Process(target=work, args=(number, conversations), daemon=True)
    worker.start()
    return worker


def report() -> None:
    """Print which arms held the conversations of each epoch, and check that the log is complete."""
    with esbas.open_study(*STUDY) as study:
        time.sleep(EXPIRE)
        study.expire()
        shares: dict[int, dict[str, int]] = {}
        for event in study.history():
            if event.kind == "asked":
                arms = shares.setdefault(event.epoch or 0, dict.fromkeys(study.arms, 0))
                arms[str(event.arm)] += 1
        for epoch, arms in shares.items():
            total = sum(arms.values())
            listed = ", ".join(f"{arm} {count / total:.0%}" for arm, count in arms.items())
            print(f"epoch {epoch}, {total:5,} conversations: {listed}")
        counts = study.counts()
        expired = counts.get("expired", 0)
        print(f"{counts['asked']:,} choices, {counts['told']:,} told, {expired} expired")
        difference = replay(study).difference
        if difference is None:
            print("the log repeats every choice")
        else:
            print(difference.message)


def main(conversations: int = 1_000) -> None:
    """Create what does not exist yet, then work."""
    FOLDER.mkdir(exist_ok=True)
    with closing(sqlite3.connect(CALLS)) as calls:
        calls.execute("PRAGMA journal_mode=WAL")
        calls.execute(
            "CREATE TABLE IF NOT EXISTS call (number INTEGER PRIMARY KEY, arm TEXT, content BLOB)"
        )
    study = esbas.open_study(
        *STUDY,
        selector="esbas",
        arms=["rules", *LEARNERS],
        stationary=["rules"],
        options={"epochs": [50, 50]},
        expire_after=EXPIRE,
        claim_expires=CLAIM,
    )
    study.close()
    with board():
        center(conversations)
        report()


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except KeyboardInterrupt:
        print("Stopped. The same command continues.")
