"""All cells, in blocks of seeds that are stored as they finish.

Each block depends on its task, method and seeds alone.
"""

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
"""By task and method, the arrays of all seeds, along the first axis."""
RANDOM = "random"
"""Not a method, but the cell of random actions: it has `returns` alone."""


def seed_of(seed: int, task: str, number: int) -> int:
    """Return the seed of run number `number`.

    All methods share it: the same environments, weights and fresh episodes.
    """
    return seeding.integer(seed, "control", task, number)


def block(task: Task, method: Method, protocol: Protocol, seeds: Sequence[int]) -> Arrays:
    """Return the cells of several seeds, stacked along the first axis."""
    cells = [run_cell(task, method, protocol, seed) for seed in seeds]
    return {name: np.stack([cell[name] for cell in cells]) for name in cells[0]}


def run_sweep(options: "Control", results: Results) -> Cells:
    """Run what is missing, and return everything that was asked for."""
    protocol = options.protocol
    parts: dict[str, Callable[[], Arrays]] = {}
    owners: dict[str, tuple[str, str]] = {}  # the task and the method of each part
    for task in options.chosen_tasks:
        name = _part_name(task, RANDOM, "", task.wrappers, protocol.random_steps, options.seed)
        parts[name] = partial(random_returns, task, protocol, seed_of(options.seed, task.name, 0))
        owners[name] = (task.name, RANDOM)
        for method in options.chosen_methods(task).values():
            if method.copied_from(task, protocol.chance) is not None:
                continue
            decisive = _decisive(task, method, protocol, options.seed)
            count = options.seeds_of(task)
            for first in range(0, count, protocol.block):
                last = min(first + protocol.block, count) - 1
                numbers = range(first, last + 1)
                seeds = [seed_of(options.seed, task.name, number) for number in numbers]
                name = _part_name(task, method.name, f"-{first}-{last}", *decisive)
                parts[name] = partial(block, task, method, protocol, seeds)
                owners[name] = (task.name, method.name)
    finished = options.run_parts(results, parts, description="control benchmark", processes=True)
    return _join(owners, finished)


def _decisive(task: Task, method: Method, protocol: Protocol, seed: int) -> tuple[object, ...]:
    """Return what decides the results of a method on a task, besides environment and budget.

    Order and contents must not change: the names of stored parts have a digest of them.
    """
    return (
        method,
        method.recipe.learners,  # the repr of a recipe has only its text
        method.recipe.memory,
        protocol.bins,
        protocol.commit_share,
        protocol.chance,
        task.final_episodes,
        task.share_data,
        task.evaluate_all,
        seed,
    )


def _part_name(task: Task, method: str, numbers: str, *decisive: object) -> str:
    """Return a name with a digest of all that decides the results.

    So those of another protocol are never mixed in.
    """
    digest = hashlib.sha256(repr((task.env, task.steps, *decisive)).encode()).hexdigest()[:8]
    method_name = re.sub(r"[^A-Za-z0-9.]+", "_", method)
    return f"{task.name}-{method_name}{numbers}-{digest}"


def _join(owners: Mapping[str, tuple[str, str]], finished: Mapping[str, Arrays]) -> Cells:
    """Concatenate the parts of each task and method."""
    blocks: dict[tuple[str, str], list[Arrays]] = {}
    for part, owner in owners.items():
        blocks.setdefault(owner, []).append(finished[part])
    cells: Cells = {}
    for (task, method), own in blocks.items():
        joined = {name: np.concatenate([each[name] for each in own]) for name in own[0]}
        cells.setdefault(task, {})[method] = joined
    return cells
