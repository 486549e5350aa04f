"""All runs of every meta-algorithm in every regime, in blocks that are stored as they finish."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from esbas.experiments.bounds.meta_algorithms import META_ALGORITHMS
from esbas.experiments.bounds.setup import REGIMES, Floats, MetaAlgorithm, Regime, checkpoints
from esbas.experiments.kernels.counter import run_key
from esbas.experiments.options import SweepOptions
from esbas.reporting import Results

BLOCK = 100  # runs that are computed in lockstep and stored together


def block(
    method: MetaAlgorithm, regime: Regime, horizon: int, seed: int, first: int, last: int
) -> dict[str, Floats]:
    """Return the regrets of the runs first, ..., last - 1.

    Run number r has the same random numbers under every meta-algorithm.
    """
    expectations = regime.frozen(horizon) if method.frozen else regime.online(horizon)
    keys = np.array([run_key(seed, "bounds", regime.name, run) for run in range(first, last)])
    run = META_ALGORITHMS[method.algorithm]
    return {"short_sighted": run(expectations, keys, checkpoints(horizon), xi=method.xi)}


def run_sweep(
    options: SweepOptions, results: Results, methods: Sequence[MetaAlgorithm], *, horizon: int
) -> Mapping[tuple[str, str], Floats]:
    """Return the short-sighted regret at the checkpoints, (R, C), by regime and method."""
    parts = {}
    owners = {}
    for regime in REGIMES.values():
        for method in methods:
            if not method.plays(regime):
                continue
            for first in range(0, method.runs, BLOCK):
                part = f"{_slug(method)}-{regime.name}-{first:05d}"
                last = min(first + BLOCK, method.runs)
                parts[part] = partial(block, method, regime, horizon, options.seed, first, last)
                owners[part] = (regime.name, method.name)
    finished = options.run_parts(results, parts, description="regret bounds")
    gathered: dict[tuple[str, str], list[Floats]] = {}
    for part, arrays in finished.items():
        gathered.setdefault(owners[part], []).append(arrays["short_sighted"])
    return {owner: np.concatenate(blocks) for owner, blocks in gathered.items()}


def _slug(method: MetaAlgorithm) -> str:
    name = method.algorithm.lower().replace("#", "sharp").replace(".", "")
    return f"{name}-xi-{method.xi:g}" if method.frozen else name
