"""All bandits by name."""

from esbas.bandits.balancing import D3RB, ED2RB
from esbas.bandits.bandit import BanditFactory
from esbas.bandits.corral import Corral
from esbas.bandits.elimination import ExploreThenCommit, MedianElimination, SuccessiveElimination
from esbas.bandits.exp3 import Exp3, Exp3S
from esbas.bandits.exp3_restarts import Exp3R, Rexp3
from esbas.bandits.kl_ucb import KLUCB
from esbas.bandits.nonstationary_ucb import SWUCB, DiscountedUCB, SWUCBSharp
from esbas.bandits.rising import RLessUCB
from esbas.bandits.simple import EpsilonGreedyBandit, RoundRobin, UniformBandit
from esbas.bandits.thompson import BetaThompson, DiscountedThompson, GaussianThompson, SlidingThompson
from esbas.bandits.ucb import UCB1, SlidingUCB
from esbas.bandits.ucb_variance import UCBV, UCBTuned
from esbas.errors import unknown

BANDITS: dict[str, BanditFactory] = {
    "ucb1": UCB1,
    "ucbv": UCBV,
    "ucbtuned": UCBTuned,
    "klucb": KLUCB,
    "gaussianthompson": GaussianThompson,
    "betathompson": BetaThompson,
    "successiveelimination": SuccessiveElimination,
    "medianelimination": MedianElimination,
    "explorethencommit": ExploreThenCommit,
    "epsilongreedy": EpsilonGreedyBandit,
    "uniform": UniformBandit,
    "roundrobin": RoundRobin,
    "slidingucb": SlidingUCB,
    "swucb": SWUCB,
    "swucbsharp": SWUCBSharp,
    "discounteducb": DiscountedUCB,
    "slidingthompson": SlidingThompson,
    "discountedthompson": DiscountedThompson,
    "exp3": Exp3,
    "exp3s": Exp3S,
    "exp3r": Exp3R,
    "rexp3": Rexp3,
    "corral": Corral,
    "d3rb": D3RB,
    "ed2rb": ED2RB,
    "rlessucb": RLessUCB,
}
"""Each called as `factory(n_arms, rng=generator)`; parameters are given with `functools.partial`."""


def make_bandit(name: str) -> BanditFactory:
    """The factory of the bandit with this name; case, spaces, dots, dashes and underscores do not matter, # is "sharp".

    >>> make_bandit("KL-UCB")(3).n_arms
    3
    """
    short = "".join(letter for letter in name.lower().replace("#", "sharp") if letter.isalnum())
    if short not in BANDITS:
        raise unknown("bandit", name, BANDITS)
    return BANDITS[short]
