"""All runs of every meta-algorithm, in blocks that are stored as they finish."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.experiments.gridworld.setup import COMPILED, RULES, XI, Setup
from esbas.experiments.options import SweepOptions
from esbas.kernels.fruit_grid import whole_runs
from esbas.kernels.fruit_grid.random import stream
from esbas.kernels.fruit_grid.whole_runs import EPOCHAL, SLIDING, Counters
from esbas.reporting import Results
from esbas.session import needs_data

BLOCK = 25  # runs that are stored together
Arrays = dict[str, NDArray[Any]]


def compiled_run(setup: Setup, name: str, *, seed: int, run: int) -> Counters:
    """One compiled run. Run number `run` starts with the same random numbers under every meta-algorithm."""
    task, learning = whole_runs.task(setup.grid), setup.learning(name)
    rule = EPOCHAL if setup.epochal else RULES.get(name, SLIDING)
    streams = stream(seed, "gridworld", run), stream(seed, "gridworld", run, "selector")
    return Counters(*whole_runs.whole_run(*streams, task, learning, XI, rule, setup.edges()))


def ordinary_run(setup: Setup, name: str, *, seed: int, run: int) -> Counters:
    """One run with the library's objects, episode by episode: works with any selector, but is much slower."""
    env, portfolio = setup.environment(), setup.portfolio(name)
    run_seed = esbas.seeding.integer(seed, "gridworld", run)
    selector, edges = setup.selector(name, seed=run_seed), setup.edges()
    transitions, objective = np.zeros((2, len(edges)), np.int64)
    selections = np.zeros((len(edges), len(portfolio)), np.int64)
    keep = needs_data(portfolio, selector)
    episodes = esbas.run(
        env, portfolio, selector, episodes=setup.episodes, objective=setup.objective(), seed=run_seed, keep_data=keep
    )
    for record in episodes:
        b = np.searchsorted(edges, record.number)
        transitions[b] += record.length
        objective[b] += int(record.value)
        selections[b, selector.arms.index(record.arm)] += 1
    return Counters(transitions, objective, selections)


def block(one_run: Callable[..., Counters], setup: Setup, name: str, seed: int, runs: Sequence[int]) -> Arrays:
    """Several runs, stacked along the first axis."""
    counted = [one_run(setup, name, seed=seed, run=run) for run in runs]
    return {key: np.stack([getattr(counters, key) for counters in counted]) for key in Counters._fields}


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
    """All runs of the named meta-algorithms. Returns the counters of each, with the runs along the first axis.

    The names of stored parts begin with `prefix`. `note` gives the text beside the progress, from the counters so far.
    """
    counters: dict[str, Counters] = {}
    for one_run, processes in ((compiled_run, False), (ordinary_run, True)):
        own_names = [name for name in names if (name not in (*COMPILED, *RULES)) == processes]
        blocks = {
            f"{prefix}{name}-{first:05d}": (name, range(first, min(first + block_size, options.runs)))
            for first in range(0, options.runs, block_size)
            for name in own_names
        }
        joined = partial(_join, {part: name for part, (name, _) in blocks.items()})
        finished = options.run_parts(
            results,
            {part: partial(block, one_run, setup, name, options.seed, numbers) for part, (name, numbers) in blocks.items()},
            description=f"{description}, not compiled" if processes else description,
            processes=processes,
            note=None if note is None else partial(_note, note, joined),
        )
        counters |= joined(finished)
    return {name: counters[name] for name in names}


def _note(
    note: Callable[[dict[str, Counters]], str],
    joined: Callable[[Mapping[str, Arrays]], dict[str, Counters]],
    done: Mapping[str, Arrays],
) -> str:
    return note(joined(done))


def _join(names: Mapping[str, str], finished: Mapping[str, Arrays]) -> dict[str, Counters]:
    """Concatenate the finished parts of each meta-algorithm, in the order of the runs. `names` maps parts to meta-algorithms."""
    own: dict[str, list[Arrays]] = {}
    for part, name in names.items():
        if part in finished:
            own.setdefault(name, []).append(finished[part])
    return {
        name: Counters(**{key: np.concatenate([a[key] for a in arrays]) for key in Counters._fields})
        for name, arrays in own.items()
    }
