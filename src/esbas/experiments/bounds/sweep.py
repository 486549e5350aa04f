"""Many runs of every meta-algorithm in every regime, in blocks that are stored as they finish."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from esbas.engine import run_parts
from esbas.experiments.bounds.meta_algorithms import META_ALGORITHMS
from esbas.experiments.bounds.setup import REGIMES, Floats, Regime, checkpoints
from esbas.kernels.counter import run_key
from esbas.reporting import Results

BLOCK = 100  # runs that go in lockstep and are stored together


@dataclass(frozen=True)
class Method:
    """A meta-algorithm in the experiment: its name in tables, the key of META_ALGORITHMS, its ξ, and how many runs."""

    name: str
    algorithm: str
    xi: float
    runs: int

    @property
    def frozen(self) -> bool:
        """Whether learners learn at the starts of epochs alone."""
        return self.algorithm == "ESBAS"

    def plays(self, regime: Regime) -> bool:
        """ESBAS plays everywhere, a rival where rivals are compared."""
        return self.frozen or regime.compared


def esbas_name(xi: float) -> str:
    """How tables call ESBAS with this ξ."""
    return f"ESBAS, ξ = {xi:g}"


def methods(*, runs: int, rival_runs: int, xi: float, safe_xi: float) -> list[Method]:
    """ESBAS with both ξ, then the rivals."""
    own = [Method(esbas_name(value), "ESBAS", value, runs) for value in dict.fromkeys((xi, safe_xi))]
    return own + [Method(name, name, xi, rival_runs) for name in META_ALGORITHMS if name != "ESBAS"]


def block(method: Method, regime: Regime, horizon: int, seed: int, first: int, last: int) -> dict[str, Floats]:
    """Runs first .. last - 1; run number r meets the same luck under every meta-algorithm."""
    expectations = regime.frozen(horizon) if method.frozen else regime.online(horizon)
    keys = np.array([run_key(seed, "bounds", regime.name, run) for run in range(first, last)])
    run = META_ALGORITHMS[method.algorithm]
    return {"short_sighted": run(expectations, keys, checkpoints(horizon), xi=method.xi)}


def sweep(results: Results, compared: list[Method], *, horizon: int, seed: int, jobs: int) -> Mapping[tuple[str, str], Floats]:
    """The short-sighted regret at the checkpoints, (R, C), by regime and name of the method."""
    parts, owners = {}, {}
    for regime in REGIMES.values():
        for method in compared:
            for first in range(0, method.runs if method.plays(regime) else 0, BLOCK):
                part = f"{_slug(method)}-{regime.name}-{first:05d}"
                last = min(first + BLOCK, method.runs)
                parts[part] = partial(block, method, regime, horizon, seed, first, last)
                owners[part] = (regime.name, method.name)
    finished = run_parts(parts, load=results.part, store=results.store_part, jobs=jobs, description="regret bounds")
    gathered: dict[tuple[str, str], list[Floats]] = {}
    for part, arrays in finished.items():
        gathered.setdefault(owners[part], []).append(arrays["short_sighted"])
    return {owner: np.concatenate(blocks) for owner, blocks in gathered.items()}


def _slug(method: Method) -> str:
    name = method.algorithm.lower().replace("#", "sharp").replace(".", "")
    return f"{name}-xi-{method.xi:g}" if method.frozen else name
