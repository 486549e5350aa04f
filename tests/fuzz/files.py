"""Save files: mutated bytes, mutated content, and whole runs."""

import atexit
import io
import json
import tempfile
import zipfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from esbas import ESBAS, SSBAS, LinearThompson, Uniform, resume, run
from esbas._internal import archive
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor
from fuzz.harness import nonsense_allowed, target
from fuzz.mutations import mutated, mutated_bytes

NAMES = ["slow", "fast", "a"]
RUNS = [
    partial(ESBAS, NAMES),
    partial(SSBAS, NAMES),
    partial(Uniform, NAMES),
    partial(LinearThompson, NAMES),
]


def learners() -> list[Any]:
    tabular = [
        TabularQ(name, states=4, actions=2, learning_rate=rate)
        for name, rate in (("slow", 0.1), ("fast", 0.9))
    ]
    return [*tabular, Constant("a", lambda seen: 1)]


@cache
def folder() -> Path:
    holder = tempfile.TemporaryDirectory()
    atexit.register(holder.cleanup)
    return Path(holder.name)


@cache
def saved() -> list[bytes]:
    """A save file of a run with each selector."""
    found = []
    for selector in RUNS:
        episodes = run(Corridor(4, max_episode_steps=6), learners(), selector(), episodes=9)
        for _ in range(6):
            next(episodes)
        episodes.save(folder() / "run")
        found.append((folder() / "run").read_bytes())
    return found


def entries(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {entry.filename: file.read(entry) for entry in file.infolist()}


def npy(data: bytes) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.frombuffer(data, np.uint8))
    return stream.getvalue()


@target("bytes of save files")
def archive_bytes(rng: np.random.Generator) -> None:
    path = folder() / "bytes"
    path.write_bytes(mutated_bytes(saved()[int(rng.integers(len(RUNS)))], rng))
    archive.read(path, "run")


@target("entries of save files")
def archive_entries(rng: np.random.Generator) -> None:
    """Checksums and sizes are right, but what they cover is not."""
    path = folder() / "entries"
    found = entries(saved()[int(rng.integers(len(RUNS)))])
    name = str(rng.choice(list(found)))
    content = json.loads(np.load(io.BytesIO(found["json.npy"])).tobytes())
    if name != "json.npy":
        found[name] = mutated_bytes(found[name], rng)
    elif rng.random() < 0.5:
        found[name] = npy(json.dumps(mutated(content, rng, odd=False)).encode())
    else:
        found[name] = npy(mutated_bytes(json.dumps(content).encode(), rng))
    method = zipfile.ZIP_STORED if rng.random() < 0.9 else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", method) as file:
        for key, data in found.items():
            file.writestr(key, data)
    archive.read(path, "run")


@cache
def contents() -> list[Any]:
    found = []
    for data in saved():
        (folder() / "run").write_bytes(data)
        found.append(archive.read(folder() / "run", "run"))
    return found


@target("run files")
def run_files(rng: np.random.Generator) -> None:
    number = int(rng.integers(len(RUNS)))
    path = folder() / "mutated"
    given = learners()
    selector = RUNS[number]()
    archive.write(path, "run", mutated(contents()[number], rng, odd=False))
    parts = [selector, *given]
    before = [repr(part.state_dict()) for part in parts]
    try:
        resumed = resume(path, Corridor(4, max_episode_steps=6), given, selector)
    except BaseException:
        assert [repr(part.state_dict()) for part in parts] == before, (
            "a run that was refused changed what was passed"
        )
        raise
    with nonsense_allowed():
        for _, _ in zip(range(2), resumed, strict=False):
            pass
