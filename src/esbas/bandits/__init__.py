"""Bandits: one file each, formula and reference in the docstring."""

from esbas.bandits.bandit import Bandit, BanditFactory
from esbas.bandits.index import IndexBandit
from esbas.bandits.memory import AllRounds, Memory, Window
from esbas.bandits.ucb import UCB1, SlidingUCB

__all__ = ["UCB1", "AllRounds", "Bandit", "BanditFactory", "IndexBandit", "Memory", "SlidingUCB", "Window"]
