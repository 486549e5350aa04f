"""Learners: off-policy algorithms that come with esbas. Those that need an extra are imported when they are asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from esbas.learners.constant import Constant
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.isolated import Isolated
from esbas.learners.linear_fqi import LinearFQI, linear_constant
from esbas.learners.replay import SharedReplay
from esbas.learners.tabular_q import TabularQ

if TYPE_CHECKING:
    from esbas.learners.d3 import D3Learner as D3Learner
    from esbas.learners.dqn import DQN as DQN
    from esbas.learners.fqi import FittedQ as FittedQ
    from esbas.learners.sb3 import SB3Learner as SB3Learner

__all__ = ["Constant", "EpsilonGreedy", "Isolated", "LinearFQI", "SharedReplay", "TabularQ", "linear_constant"]
_WITH_EXTRAS = {"DQN": "dqn", "SB3Learner": "sb3", "FittedQ": "fqi", "D3Learner": "d3"}


def __getattr__(name: str) -> Any:
    if name not in _WITH_EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_EXTRAS[name]}"), name)
