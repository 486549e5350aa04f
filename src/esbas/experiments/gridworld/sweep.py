"""All runs of every meta-algorithm, in blocks that are stored as they finish."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.experiments.gridworld.setup import COMPILED, RULES, XI, Setup
from esbas.experiments.kernels.fruit_grid import whole_runs
from esbas.experiments.kernels.fruit_grid.random import stream
from esbas.experiments.kernels.fruit_grid.whole_runs import EPOCHAL, SLIDING, Counters
from esbas.experiments.options import SweepOptions
from esbas.reporting import Results
from esbas.session import needs_data

BLOCK = 25  # runs that are stored together
Arrays = dict[str, NDArray[Any]]


def compiled_run(setup: Setup, name: str, *, seed: int, run: int) -> Counters:
    """Execute one compiled run.

    Run number `run` starts with the same random numbers under every meta-algorithm.
    """
    grid = whole_runs.grid_tables(setup.grid)
    learning = setup.learning(name)
    rule = EPOCHAL if setup.epochal else RULES.get(name, SLIDING)
    own = stream(seed, "gridworld", run)
    of_selector = stream(seed, "gridworld", run, "selector")
    counted = whole_runs.whole_run(own, of_selector, grid, learning, XI, rule, setup.edges())
    return Counters(*counted)


def ordinary_run(setup: Setup, name: str, *, seed: int, run: int) -> Counters:
    """Execute one run with the library's objects, episode by episode.

    It works with any selector, but is much slower.
    """
    env = setup.environment()
    portfolio = setup.portfolio(name)
    run_seed = esbas.seeding.integer(seed, "gridworld", run)
    selector = setup.selector(name, seed=run_seed)
    edges = setup.edges()
    transitions = np.zeros(len(edges), np.int64)
    objective = np.zeros(len(edges), np.int64)
    selections = np.zeros((len(edges), len(portfolio)), np.int64)
    episodes = esbas.run(
        env,
        portfolio,
        selector,
        episodes=setup.episodes,
        objective=setup.objective(),
        seed=run_seed,
        keep_data=needs_data(portfolio, selector),
    )
    for record in episodes:
        b = np.searchsorted(edges, record.number)
        transitions[b] += record.length
        objective[b] += int(record.value)
        selections[b, selector.arms.index(record.learner)] += 1
    return Counters(transitions, objective, selections)


def block(
    one_run: Callable[..., Counters], setup: Setup, name: str, seed: int, runs: Sequence[int]
) -> Arrays:
    """Return the counters of several runs, stacked along the first axis."""
    counted = [one_run(setup, name, seed=seed, run=run) for run in runs]
    stacked = {}
    for key in Counters._fields:
        stacked[key] = np.stack([getattr(counters, key) for counters in counted])
    return stacked


def run_sweep(
    options: SweepOptions,
    results: Results,
    setup: Setup,
    names: Sequence[str],
    *,
    block_size: int = BLOCK,
    prefix: str = "",
    description: str = "fruit grid",
    note: Callable[[dict[str, Counters]], str] | None = None,
) -> dict[str, Counters]:
    """Execute all runs of the named meta-algorithms.

    Args:
        options: seed, number of runs, jobs, engine.
        results: the results folder.
        setup: what is compared.
        names: the meta-algorithms.
        block_size: runs that are stored together.
        prefix: what the names of stored parts begin with.
        description: text of the progress line.
        note: gives the text beside the progress, from the counters so far.

    Returns:
        The counters of each meta-algorithm, with the runs along the first axis.
    """
    compiled = [name for name in names if name in COMPILED or name in RULES]
    ordinary = [name for name in names if name not in compiled]
    counters: dict[str, Counters] = {}
    for one_run, own_names in ((compiled_run, compiled), (ordinary_run, ordinary)):
        processes = one_run is ordinary_run  # it is plain Python
        parts: dict[str, Callable[[], Arrays]] = {}
        owners: dict[str, str] = {}  # the meta-algorithm of each part
        for first in range(0, options.runs, block_size):
            runs = range(first, min(first + block_size, options.runs))
            for name in own_names:
                part = f"{prefix}{name}-{first:05d}"
                parts[part] = partial(block, one_run, setup, name, options.seed, runs)
                owners[part] = name
        finished = options.run_parts(
            results,
            parts,
            description=f"{description}, not compiled" if processes else description,
            processes=processes,
            note=None if note is None else partial(_note, note, owners),
        )
        counters |= _join(owners, finished)
    return {name: counters[name] for name in names}


def _note(
    note: Callable[[dict[str, Counters]], str],
    owners: Mapping[str, str],
    finished: Mapping[str, Arrays],
) -> str:
    return note(_join(owners, finished))


def _join(owners: Mapping[str, str], finished: Mapping[str, Arrays]) -> dict[str, Counters]:
    """Concatenate the finished parts of each meta-algorithm, in the order of the runs."""
    blocks: dict[str, list[Arrays]] = {}
    for part, name in owners.items():
        if part in finished:
            blocks.setdefault(name, []).append(finished[part])
    joined = {}
    for name, own in blocks.items():
        columns = [np.concatenate([arrays[key] for arrays in own]) for key in Counters._fields]
        joined[name] = Counters(*columns)
    return joined
