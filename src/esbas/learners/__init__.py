"""Off-policy learners. Those that need more than NumPy are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from esbas.isolation import Isolated
from esbas.learners.constant import Constant
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.ez_greedy import EZGreedy
from esbas.learners.linear_fqi import LinearFQI, linear_constant
from esbas.learners.persistent_random import PersistentRandom
from esbas.learners.tabular.bonus_q import BonusQ
from esbas.learners.tabular.double_q import DoubleQ
from esbas.learners.tabular.expected_sarsa import ExpectedSARSA
from esbas.learners.tabular.q_lambda import QLambda
from esbas.learners.tabular.q_learning import TabularQ

if TYPE_CHECKING:
    from esbas.learners.d3rlpy.learner import D3Learner as D3Learner
    from esbas.learners.dqn.learner import DQN as DQN
    from esbas.learners.fitted_q import FittedQ as FittedQ
    from esbas.learners.sb3.learner import SB3Learner as SB3Learner
    from esbas.learners.tabular.prioritized_sweeping import (
        PrioritizedSweeping as PrioritizedSweeping,
    )
    from esbas.learners.tabular.r_max import RMax as RMax

__all__ = [
    "BonusQ",
    "Constant",
    "DoubleQ",
    "EZGreedy",
    "EpsilonGreedy",
    "ExpectedSARSA",
    "Isolated",
    "LinearFQI",
    "PersistentRandom",
    "QLambda",
    "SharedReplay",
    "TabularQ",
    "linear_constant",
]
_OPTIONAL = {
    "DQN": "dqn.learner",
    "SB3Learner": "sb3.learner",
    "FittedQ": "fitted_q",
    "D3Learner": "d3rlpy.learner",
    "PrioritizedSweeping": "tabular.prioritized_sweeping",
    "RMax": "tabular.r_max",
}


def __getattr__(name: str) -> Any:
    if name not in _OPTIONAL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OPTIONAL[name]}"), name)
