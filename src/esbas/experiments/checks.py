"""What all sweeps refuse, in one sentence and before there is a results folder."""

from esbas.errors import require


def check_sweep(*, runs: int, seed: int, jobs: int, least: int = 1) -> None:
    """Refuse too few runs (fewer than `least`) or jobs, and seeds below 0: a folder would remember the wrong setting."""
    require(runs >= least, f"runs >= {least}", runs=runs)
    require(seed >= 0, "seed >= 0", seed=seed)
    require(jobs >= 1, "jobs >= 1", jobs=jobs)
