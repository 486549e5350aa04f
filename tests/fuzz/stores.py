"""Stores of studies: mutated bytes of the file, mutated rows, and mutated requests."""

import json
import sqlite3
from contextlib import closing
from functools import cache
from typing import Any

import numpy as np

import esbas
from esbas.errors import EsbasError
from esbas.studies import replay
from fuzz.files import folder
from fuzz.harness import target
from fuzz.mutations import mutated, mutated_bytes

COLUMNS = ["seq", "kind", "number", "arm", "value", "propensity", "epoch", "at", "key", "data"]


@cache
def saved() -> bytes:
    """The file of a store with a study that has seen every kind of event."""
    path = folder() / "whole.db"
    with esbas.open_study(
        str(path), "study", selector="esbas", arms=["a", "b"], expire_after=1e-6
    ) as study:
        assert study.claim_epoch() == 0
        study.tell(study.ask(context=[1.0], key="key"), 1.0)
        study.epoch_ready(0)
        study.add_arm("c")
        study.ask()
        study.remove_arm("a")
        study.withdraw(study.ask())
    return path.read_bytes()


def use(data: bytes) -> None:
    """Open the store and use it."""
    path = folder() / "hostile.db"
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(data)
    with esbas.open_study(str(path), "study") as study:
        replay(study)
        study.explain(1)
        study.tell(study.ask(), 1.0)


@target("bytes of stores")
def bytes_of_stores(rng: np.random.Generator) -> None:
    use(mutated_bytes(saved(), rng))


@target("rows of stores")
def rows_of_stores(rng: np.random.Generator) -> None:
    path = folder() / "rows.db"
    path.write_bytes(saved())
    with closing(sqlite3.connect(path)) as connection:
        column = str(rng.choice(COLUMNS))
        rows = connection.execute(f"SELECT {column} FROM esbas_event ORDER BY seq").fetchall()
        row = int(rng.integers(len(rows)))
        old = rows[row][0]
        new: Any = mutated(
            {"row": json.loads(old) if column == "data" and old else old}, rng, odd=False
        )
        new = new.get("row") if isinstance(new, dict) else new
        try:
            plain = json.dumps(new) if column == "data" or isinstance(new, list | dict) else new
            connection.execute(
                f"UPDATE esbas_event SET {column} = ? WHERE seq = ?", (plain, row + 1)
            )
        except (sqlite3.Error, OverflowError, TypeError, ValueError):
            return  # not something that a file can contain
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(truncate)")
    use(path.read_bytes())


@target("requests to studies")
def requests_to_studies(rng: np.random.Generator) -> None:
    path = folder() / "requests.db"
    with esbas.open_study(str(path), "study", selector="ssbas", arms=["a", "b"]) as study:
        request: Any = {
            "among": ["a"],
            "context": [1.0, 2.0],
            "key": "key",
            "value": 0.5,
            "log_probs": {"a": [-1.0]},
        }
        request = mutated(request, rng, odd=True)
        request = request if isinstance(request, dict) else {"among": request, "key": request}
        before = study.counts()
        try:
            choice = study.ask(
                among=request.get("among"), context=request.get("context"), key=request.get("key")
            )
            study.tell(choice, request.get("value", 0.5), log_probs=request.get("log_probs"))
        finally:
            assert study.counts().get("asked", 0) - before.get("asked", 0) <= 1
            try:
                study.explain()
            except EsbasError as error:
                raise AssertionError("a refused request has damaged the study") from error
