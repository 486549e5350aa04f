"""Learners: off-policy algorithms that come with esbas."""

from esbas.learners.constant import Constant
from esbas.learners.dialogue_features import DialogueFeatures
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.isolated import Isolated
from esbas.learners.linear_fqi import LinearFQI, linear_constant
from esbas.learners.tabular_q import TabularQ

__all__ = ["Constant", "DialogueFeatures", "EpsilonGreedy", "Isolated", "LinearFQI", "TabularQ", "linear_constant"]
