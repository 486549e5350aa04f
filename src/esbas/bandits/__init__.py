"""tmp"""
from esbas.bandits.bandit import BANDITS, Bandit, BanditFactory
from esbas.bandits.memory_bandit import AllRounds, Memory, MemoryBandit, IndexBandit
from esbas.bandits.ucb import UCB1, SlidingUCB
from esbas.bandits.window import Window
from esbas.bandits.discounted import Discounted
def make_bandit(name): return BANDITS.find(name)
