"""Pseudo-regrets from known expectations, and the bounds of the paper's theorems and Table 1."""

from esbas.experiments.regrets.bounds import (
    LOG,
    Growth,
    absolute_growth,
    canonical_growth,
    kappa_of_theorem_3,
    short_sighted_growth,
    table_1_absolute,
    theorem_1,
    theorem_2,
    theorem_3,
)
from esbas.experiments.regrets.expectations import (
    absolute,
    canonical_absolute,
    epoch_gaps,
    gaps,
    relative,
    short_sighted,
    smallest_gap,
)

__all__ = [
    "LOG",
    "Growth",
    "absolute",
    "absolute_growth",
    "canonical_absolute",
    "canonical_growth",
    "epoch_gaps",
    "gaps",
    "kappa_of_theorem_3",
    "relative",
    "short_sighted",
    "short_sighted_growth",
    "smallest_gap",
    "table_1_absolute",
    "theorem_1",
    "theorem_2",
    "theorem_3",
]
