"""Online algorithm selection in reinforcement learning: ESBAS and SSBAS (Laroche & Féraud, ICLR 2018)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from esbas.bandits import UCB1, Bandit, BudgetedThompson, KalmanThompson, SlidingUCB
from esbas.errors import EsbasError
from esbas.evidence import Evidence
from esbas.faults import Fault
from esbas.learner import Learner, Policy, Portfolio
from esbas.objective import Objective, discounted_return, episode_length, success_time, total_return
from esbas.runner import EpisodeRecord, play
from esbas.selectors import (
    ESBAS,
    SSBAS,
    BanditSelector,
    Choice,
    Fixed,
    LinearThompson,
    Pick,
    Selector,
    SharedEvidence,
    Uniform,
    default_selector,
)
from esbas.session import Run, resume, run
from esbas.trajectory import Trajectory, TrajectorySet, Transition

if TYPE_CHECKING:
    from esbas.store.opening import open_study as open_study
    from esbas.training.policies.loaded import load_policy as load_policy

__version__ = "0.7.0"

__all__ = [
    "ESBAS",
    "SSBAS",
    "UCB1",
    "Bandit",
    "BanditSelector",
    "BudgetedThompson",
    "Choice",
    "EpisodeRecord",
    "EsbasError",
    "Evidence",
    "Fault",
    "Fixed",
    "KalmanThompson",
    "Learner",
    "LinearThompson",
    "Objective",
    "Pick",
    "Policy",
    "Portfolio",
    "Run",
    "Selector",
    "SharedEvidence",
    "SlidingUCB",
    "Trajectory",
    "TrajectorySet",
    "Transition",
    "Uniform",
    "default_selector",
    "discounted_return",
    "episode_length",
    "play",
    "resume",
    "run",
    "success_time",
    "total_return",
]


_LATER = {"load_policy": "esbas.training.policies.loaded", "open_study": "esbas.store.opening"}  # imported on first use


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
