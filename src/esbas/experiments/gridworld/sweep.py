"""Many runs of every meta-algorithm, in blocks that are stored as they finish."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.engine import run_parts
from esbas.experiments.gridworld.setup import COMPILED, XI, Setup
from esbas.kernels import fruit_grid
from esbas.kernels.fruit_grid import Counters
from esbas.kernels.random import stream
from esbas.reporting import Results

BLOCK = 25  # runs that are stored together
Arrays = dict[str, NDArray[Any]]


def compiled_run(setup: Setup, name: str, *, seed: int, run: int) -> Counters:
    """One run as a whole; run number `run` begins with the same random numbers under every meta-algorithm."""
    task, learning = fruit_grid.task(setup.grid), setup.learning(name)
    counted = fruit_grid.whole_run(stream(seed, "gridworld", run), task, learning, XI, name == "esbas", setup.edges())
    return Counters(*counted)


def ordinary_run(setup: Setup, name: str, *, seed: int, run: int) -> Counters:
    """One run of the ordinary objects, episode by episode: any selector of the library, and much slower."""
    env, portfolio = setup.environment(), setup.portfolio(name)
    run_seed = esbas.seeding.integer(seed, "gridworld", run)
    selector, edges = setup.selector(name, seed=run_seed), setup.edges()
    transitions, objective = np.zeros((2, len(edges)), np.int64)
    selections = np.zeros((len(edges), len(portfolio)), np.int64)
    keep = not selector.online
    going = esbas.run(
        env, portfolio, selector, episodes=setup.episodes, objective=setup.objective(), seed=run_seed, keep_data=keep
    )
    for record in going:
        b = np.searchsorted(edges, record.number)
        transitions[b] += record.length
        objective[b] += int(record.value)
        selections[b, selector.arms.index(record.arm)] += 1
    return Counters(transitions, objective, selections)


def block(one_run: Callable[..., Counters], setup: Setup, name: str, seed: int, runs: Sequence[int]) -> Arrays:
    """Several runs, stacked along the first axis."""
    counted = [one_run(setup, name, seed=seed, run=run) for run in runs]
    return {key: np.stack([getattr(counters, key) for counters in counted]) for key in Counters._fields}


def sweep(results: Results, setup: Setup, *, also: Sequence[str], runs: int, seed: int, jobs: int) -> dict[str, Counters]:
    """All runs of all meta-algorithms; per meta-algorithm its counters, the runs along the first axis."""
    compiled = [*COMPILED, *(name for name in also if name == "esbas")]
    kinds = ((compiled, compiled_run, False), ([name for name in also if name not in compiled], ordinary_run, True))
    counters = {}
    for names, one_run, processes in kinds:
        blocks = {
            f"{name}-{first:05d}": (name, partial(block, one_run, setup, name, seed, range(first, min(first + BLOCK, runs))))
            for first in range(0, runs, BLOCK)
            for name in names
        }
        finished = run_parts(
            {part: work for part, (_, work) in blocks.items()},
            load=results.part,
            store=results.store_part,
            jobs=jobs,
            description="fruit grid" if not processes else "fruit grid, ordinary objects",
            processes=processes,
        )
        for name in names:
            own = [finished[part] for part, (whose, _) in blocks.items() if whose == name]
            counters[name] = Counters(**{key: np.concatenate([arrays[key] for arrays in own]) for key in Counters._fields})
    return counters
