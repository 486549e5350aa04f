"""Bandits, with formula and reference in each docstring.

A new bandit is a file in this folder with a registered class.
"""

from typing import TYPE_CHECKING, Any

from esbas.bandits.agent57 import Agent57
from esbas.bandits.balancing import D3RB, ED2RB
from esbas.bandits.bandit import BANDITS, Bandit, BanditFactory, make_bandit
from esbas.bandits.corral import Corral
from esbas.bandits.discounted import Discounted
from esbas.bandits.elimination import ExploreThenCommit, MedianElimination, SuccessiveElimination
from esbas.bandits.exp3 import Exp3, Exp3S
from esbas.bandits.exp3_restarts import Exp3R, Rexp3
from esbas.bandits.kalman_thompson import KalmanThompson
from esbas.bandits.kl_ucb import KLUCB
from esbas.bandits.memory_bandit import AllRounds, Arm, IndexBandit, Memory, MemoryBandit, Round
from esbas.bandits.nonstationary_ucb import SWUCB, DiscountedUCB, SWUCBSharp
from esbas.bandits.on_window import Staggered, on_window
from esbas.bandits.random_bandit import RandomBandit
from esbas.bandits.rising import RLessUCB
from esbas.bandits.simple import EpsilonGreedyBandit, RoundRobin, UniformBandit
from esbas.bandits.thompson import (
    BetaThompson,
    DiscountedThompson,
    GaussianThompson,
    SlidingThompson,
)
from esbas.bandits.ucb import UCB1, SlidingUCB
from esbas.bandits.ucb_variance import UCBV, UCBTuned
from esbas.bandits.window import Window

__all__ = [
    "BANDITS",
    "D3RB",
    "ED2RB",
    "KLUCB",
    "SWUCB",
    "UCB1",
    "UCBV",
    "Agent57",
    "AllRounds",
    "Arm",
    "Bandit",
    "BanditFactory",
    "BetaThompson",
    "Corral",
    "Discounted",
    "DiscountedThompson",
    "DiscountedUCB",
    "EpsilonGreedyBandit",
    "Exp3",
    "Exp3R",
    "Exp3S",
    "ExploreThenCommit",
    "GaussianThompson",
    "IndexBandit",
    "KalmanThompson",
    "MedianElimination",
    "Memory",
    "MemoryBandit",
    "RLessUCB",
    "RandomBandit",
    "Rexp3",
    "Round",
    "RoundRobin",
    "SWUCBSharp",
    "SlidingThompson",
    "SlidingUCB",
    "Staggered",
    "SuccessiveElimination",
    "UCBTuned",
    "UniformBandit",
    "Window",
    "make_bandit",
    "on_window",
]

if not TYPE_CHECKING:  # A type checker should report unknown names.

    def __getattr__(name: str) -> Any:
        """Return a registered class that is not imported above, by the name of the class."""
        if not name.startswith("_"):
            for registered in BANDITS:
                found = BANDITS.find(registered)
                if getattr(found, "__name__", "") == name:
                    return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
