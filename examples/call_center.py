"""A call centre: eight processes hold conversations, some of them are killed, and the board shows who is in control, and why.

Callers negotiate, as in Section 4 of the paper, with two models that learn by fitted Q iteration, and with rules that never
change. A study decides who holds the next conversation. When an epoch is due, exactly one process retrains both models from the
conversations of all. A process that is killed loses the conversation that it holds, and nothing else: that choice expires.

Run it with `python examples/call_centre.py [CONVERSATIONS]`, and open the address that it prints. Everything is in the folder
`call-centre`: after Ctrl-C, the same command continues.
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
from pathlib import Path
from typing import Any

import numpy as np

import esbas
from esbas.envs import DialogueFeatures, NegotiationDialogue, negotiation_return
from esbas.learners import LinearFQI
from esbas.store import replay

FOLDER = Path("call-centre")
STUDY = f"sqlite:///{FOLDER}/study.db", "calls"
CALLS, MODELS = FOLDER / "calls.db", FOLDER / "models.npz"
WORKERS, KILLS = 8, 3
SECONDS = 0.02  # that a conversation takes on average; a real one takes minutes
EXPIRE, CLAIM = 5.0, 10.0  # seconds after which a conversation without an outcome, and a retraining, are given up
PROPOSE, ACCEPT = 1, 3  # actions of the dialogue
LEARNERS = {"simple": "simple", "quadratic": "simple-2"}  # arms that learn, and their features


class Rules:
    """What somebody wrote down: offer the best option first, then the others, and accept whatever is cheap."""

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        del rng
        heard, costs = int(observation[2]), observation[5:]
        return ACCEPT if heard >= 0 and costs[heard] < 0.5 else PROPOSE


def new_learners(epsilon: float = 0.0) -> dict[str, LinearFQI]:
    """The models, untrained."""
    features = {arm: DialogueFeatures(name) for arm, name in LEARNERS.items()}
    return {arm: LinearFQI(arm, each, actions=5, gamma=0.9, epsilon=lambda _: epsilon) for arm, each in features.items()}


def retrain() -> None:
    """Fit both models to all conversations so far, and put them in place at once."""
    data, learners = esbas.TrajectorySet(), new_learners()
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
    """The policy of each arm, from the models that are in place. Models explore a little, before the first training always."""
    weights = np.load(MODELS, allow_pickle=False) if MODELS.exists() else {}
    learners = new_learners(epsilon=0.05 if weights else 1.0)
    for arm in weights:
        learners[arm].weights = weights[arm]
    return {"rules": Rules()} | {arm: learner.policy() for arm, learner in learners.items()}


def work(number: int, conversations: int) -> None:
    """One process of the call centre: ask, hold the conversation, keep it, tell its value."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process
    rng = np.random.default_rng([number, time.time_ns()])
    env, value_of, epoch = NegotiationDialogue(), negotiation_return(), -1
    with esbas.open_study(*STUDY) as study, closing(sqlite3.connect(CALLS, timeout=60)) as calls:
        while study.number < conversations:
            due = study.claim_epoch()
            if due is not None:  # nobody else gets it; if this process is killed, another one does after a while
                retrain()
                study.epoch_ready(due)
            choice = study.ask()
            if choice.epoch != epoch:
                epoch, acting = choice.epoch, policies()
            call = esbas.play(env, acting[choice.arm], rng=rng, seed=int(rng.integers(2**31)))
            time.sleep(rng.exponential(SECONDS))
            content = io.BytesIO()
            np.savez(content, observations=call.observations, actions=call.actions, rewards=call.rewards)
            with calls:
                calls.execute("INSERT INTO call VALUES (?, ?, ?)", (choice.number, choice.arm, content.getvalue()))
            study.tell(choice, value_of(call))


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


def centre(conversations: int) -> None:
    """Keep eight processes working, and kill one at random, three times in all."""
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=work, args=(number, conversations), daemon=True) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    with esbas.open_study(*STUDY) as study:
        first, killed = study.number, 0
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.2)
            if killed < KILLS and study.number - first > (killed + 1) * (conversations - first) / (KILLS + 1):
                killed += 1
                place = random.randrange(WORKERS)
                workers[place].kill()
                workers[place].join()
                print(f"{study.number:,} conversations: process {place} is killed, and another one starts", flush=True)
                workers[place] = spawn.Process(target=work, args=(WORKERS + killed, conversations), daemon=True)
                workers[place].start()


def report() -> None:
    """Print who held the conversations of each epoch, and check that the log is complete."""
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
            print(f"epoch {epoch}, {total:5,} conversations:", ", ".join(f"{arm} {n / total:.0%}" for arm, n in arms.items()))
        counts, repeated = study.counts(), replay(study)
        print(f"{counts['asked']:,} choices, {counts['told']:,} told, {counts.get('expired', 0)} expired")
        print("the log repeats every choice" if repeated.difference is None else repeated.difference.message)


def main(conversations: int = 1_000) -> None:
    """Create what does not exist yet, then work."""
    FOLDER.mkdir(exist_ok=True)
    with closing(sqlite3.connect(CALLS)) as calls:
        calls.execute("PRAGMA journal_mode=WAL")
        calls.execute("CREATE TABLE IF NOT EXISTS call (number INTEGER PRIMARY KEY, arm TEXT, content BLOB)")
    arms, epochs = ["rules", *LEARNERS], {"epochs": [50, 50]}
    with esbas.open_study(
        *STUDY, selector="esbas", arms=arms, stationary=["rules"], options=epochs, expire_after=EXPIRE, claim_expires=CLAIM
    ):
        pass
    with board():
        centre(conversations)
        report()


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except KeyboardInterrupt:
        print("Stopped. The same command continues.")
