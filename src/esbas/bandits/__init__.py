"""Bandits: one file each, formula and reference in the docstring."""

from esbas.bandits.bandit import Bandit, BanditFactory
from esbas.bandits.discounted import Discounted
from esbas.bandits.index import IndexBandit
from esbas.bandits.memory import AllRounds, Memory
from esbas.bandits.ucb import UCB1, SlidingUCB
from esbas.bandits.window import Window

__all__ = ["UCB1", "AllRounds", "Bandit", "BanditFactory", "Discounted", "IndexBandit", "Memory", "SlidingUCB", "Window"]
