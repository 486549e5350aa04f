"""`esbas reproduce stationary`: the regret of every bandit on arms that do not change, as a yardstick and a check."""

from esbas.experiments.stationary.command import Stationary, main

__all__ = ["Stationary", "main"]
