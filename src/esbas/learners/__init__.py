"""Learners: off-policy algorithms that come with esbas."""

from esbas.learners.constant import Constant
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.tabular_q import TabularQ

__all__ = ["Constant", "EpsilonGreedy", "TabularQ"]
