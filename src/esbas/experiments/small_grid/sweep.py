"""The runs of both selectors and of each learner alone."""

from collections.abc import Mapping
from functools import partial

from esbas.experiments.gridworld import sweep as gridworld
from esbas.experiments.gridworld.analysis import GridworldAnalysis
from esbas.experiments.gridworld.setup import RATES, Setup
from esbas.experiments.kernels.fruit_grid.whole_runs import Counters
from esbas.experiments.options import SweepOptions
from esbas.reporting import Results

BLOCK = 5


def run_sweep(
    options: SweepOptions, results: Results, setups: Mapping[str, Setup]
) -> dict[str, GridworldAnalysis]:
    """Execute all runs, and return their analysis by selector."""
    analyses = {}
    for selector, setup in setups.items():
        counters = gridworld.run_sweep(
            options,
            results,
            setup,
            [selector, *map(str, RATES)],
            block_size=BLOCK,
            prefix=f"{selector}-small-",
            description=f"small grid, {selector.upper()}",
            note=partial(_shares_so_far, selector),
        )
        analyses[selector] = GridworldAnalysis(setup, counters)
    return analyses


def _shares_so_far(selector: str, counters: Mapping[str, Counters]) -> str:
    """Return how often the selector chose each rate in the finished runs."""
    if selector not in counters:
        return ""
    chosen = counters[selector].selections.sum(axis=(0, 1))  # (K,)
    shares = chosen / chosen.sum()
    texts = [f"{rate} {share:.0%}" for rate, share in zip(RATES, shares, strict=True)]
    return f"{selector.upper()} chose {', '.join(texts)}"
