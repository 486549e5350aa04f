"""Whole runs of meta-algorithms on synthetic learners with known expectations."""

from esbas.experiments.kernels.bounds.balancing import balancing_regrets
from esbas.experiments.kernels.bounds.exponential import exp3_regrets
from esbas.experiments.kernels.bounds.rising import rising_regrets
from esbas.experiments.kernels.bounds.ucb import discounted_regrets, ucb_regrets, window_regrets

__all__ = [
    "balancing_regrets",
    "discounted_regrets",
    "exp3_regrets",
    "rising_regrets",
    "ucb_regrets",
    "window_regrets",
]
