"""Replay memories: mutated states, and mutated files of rows."""

import atexit
import hashlib
import shutil
import tempfile
import zlib
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np

from esbas import Transition
from esbas.learners.dqn.replay import files as replay_files
from esbas.learners.dqn.replay.memory import SharedReplay
from fuzz.harness import nonsense_allowed, target
from fuzz.mutations import mutated, mutated_bytes
from fuzz.states import load

TASK = SimpleNamespace(
    observation_space=gym.spaces.Box(0, 255, (2, 3), np.uint8), action_space=gym.spaces.Discrete(3)
)


@cache
def holder() -> Path:
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    return Path(made.name)


def memory(folder: Path | None) -> SharedReplay:
    return SharedReplay(TASK, buffer_size=12, stack=2, folder=folder)


def add(replay: SharedReplay, steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames = rng.integers(256, size=(steps + 2, 3)).astype(np.uint8)
    for t in range(steps):
        over = t == steps - 1
        replay.add(
            Transition(
                frames[t : t + 2], int(rng.integers(3)), 1.0, frames[t + 1 : t + 3], over, False
            )
        )


@cache
def saved(on_disk: bool) -> tuple[Path, dict[str, Any]]:
    """A folder, and a state that needs it."""
    folder = holder() / f"saved {on_disk}"
    replay = memory(folder)
    with mock.patch.object(replay_files, "LARGE", 0 if on_disk else 2**30):
        for seed, steps in enumerate((5, 7, 4)):
            add(replay, steps, seed)
            state = replay.state_dict()
    return folder, state


def use(replay: SharedReplay) -> None:
    if len(replay):
        rows = replay.rows(replay.draw(np.random.default_rng(0), 8))
        with np.errstate(over="ignore", invalid="ignore"):  # rewards may be any numbers
            replay.batch(rows, steps=3, gamma=0.9)
    add(replay, 3, seed=9)
    replay.state_dict()


@target("states of replay memories")
def replay_states(rng: np.random.Generator) -> None:
    folder, state = saved(bool(rng.integers(2)))
    replay = memory(folder)
    load(replay, mutated(state, rng, odd=True))
    with nonsense_allowed():
        use(replay)


@target("rows of replay memories")
def replay_rows(rng: np.random.Generator) -> None:
    """Bytes of a file, or of its rows with a size and a checksum that are right."""
    source, state = saved(True)
    folder = holder() / "mutated"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    paths = sorted(folder.iterdir())
    number = int(rng.integers(len(paths)))
    data = paths[number].read_bytes()
    if rng.random() < 0.5:
        rows = zlib.decompress(data)
        data = zlib.compress(mutated_bytes(rows, rng))
    else:
        data = mutated_bytes(data, rng)
    paths[number].write_bytes(data)
    if rng.random() < 0.8:
        state = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in state.items()
        }
        state["files"][number, 2] = len(data)
        state["digests"][number] = list(hashlib.sha256(data).digest())
    replay = memory(folder)
    load(replay, state)
    with nonsense_allowed():
        use(replay)
