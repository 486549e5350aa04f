"""All cells, in blocks of seeds that are stored as they finish. Each block depends on its task, method and seeds alone."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from esbas import seeding
from esbas.experiments.control.cells import Arrays, random_returns, run_cell
from esbas.experiments.control.protocol import Protocol, Task
from esbas.experiments.control.setup import Method
from esbas.reporting import Results

if TYPE_CHECKING:
    from esbas.experiments.control import Control

Cells = dict[str, dict[str, Arrays]]
"""By task and method, the arrays of all seeds, along the first axis. The method "random" has `returns`."""
RANDOM = "random"


def seed_of(seed: int, task: str, number: int) -> int:
    """The seed of run number `number`, which all methods share: the same environments, weights and fresh episodes."""
    return seeding.integer(seed, "control", task, number)


def block(task: Task, method: Method, protocol: Protocol, seeds: Sequence[int]) -> Arrays:
    """The cells of several seeds, stacked along the first axis."""
    cells = [run_cell(task, method, protocol, seed) for seed in seeds]
    return {name: np.stack([cell[name] for cell in cells]) for name in cells[0]}


def run_sweep(options: "Control", results: Results) -> Cells:
    """Run what is missing, and return everything that was asked for."""
    protocol, parts, places = options.protocol, dict[str, Callable[[], Arrays]](), dict[str, tuple[str, str]]()
    for task in options.chosen_tasks:
        name = _part_name(task, RANDOM, "", task.wrappers, protocol.random_steps, options.seed)
        parts[name] = partial(random_returns, task, protocol, seed_of(options.seed, task.name, 0))
        places[name] = task.name, RANDOM
        for method in options.chosen_methods(task).values():
            if method.copied_from(task, protocol.chance) is not None:
                continue
            decisive = method, method.recipe.members, method.recipe.memory, protocol.bins, protocol.commit_share, protocol.chance
            own = task.final_episodes, task.share_data, task.evaluate_all, options.seed
            for first in range(0, options.seeds_of(task), protocol.block):
                numbers = range(first, min(first + protocol.block, options.seeds_of(task)))
                name = _part_name(task, method.name, f"-{numbers[0]}-{numbers[-1]}", *decisive, *own)
                seeds = [seed_of(options.seed, task.name, number) for number in numbers]
                parts[name] = partial(block, task, method, protocol, seeds)
                places[name] = task.name, method.name
    finished = options.run_parts(results, parts, description="control benchmark", processes=True)
    return _join(places, finished)


def _part_name(task: Task, method: str, numbers: str, *decisive: object) -> str:
    """With a digest of all that decides the results, so that those of another protocol are never mixed in."""
    digest = hashlib.sha256(repr((task.env, task.steps, *decisive)).encode()).hexdigest()[:8]
    return f"{task.name}-{re.sub(r'[^A-Za-z0-9.]+', '_', method)}{numbers}-{digest}"


def _join(places: Mapping[str, tuple[str, str]], finished: Mapping[str, Arrays]) -> Cells:
    found: dict[str, dict[str, list[Arrays]]] = {}
    for part, (task, method) in places.items():
        found.setdefault(task, {}).setdefault(method, []).append(finished[part])
    return {
        task: {
            method: {name: np.concatenate([each[name] for each in blocks]) for name in blocks[0]}
            for method, blocks in methods.items()
        }
        for task, methods in found.items()
    }
