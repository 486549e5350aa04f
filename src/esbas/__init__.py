"""Online algorithm selection in reinforcement learning: ESBAS and SSBAS (Laroche & Féraud, ICLR 2018)."""

from esbas.bandits import UCB1, Bandit, SlidingUCB
from esbas.errors import EsbasError
from esbas.evidence import Evidence
from esbas.faults import Fault
from esbas.learner import Learner, Policy, Portfolio
from esbas.objective import Objective, discounted_return, episode_length, success_time, total_return
from esbas.runner import EpisodeRecord, play
from esbas.selectors import ESBAS, SSBAS, BanditSelector, Choice, Fixed, LinearThompson, Pick, Selector, Uniform
from esbas.session import Run, resume, run
from esbas.trajectory import Trajectory, TrajectorySet, Transition

__version__ = "0.2.0"

__all__ = [
    "ESBAS",
    "SSBAS",
    "UCB1",
    "Bandit",
    "BanditSelector",
    "Choice",
    "EpisodeRecord",
    "EsbasError",
    "Evidence",
    "Fault",
    "Fixed",
    "Learner",
    "LinearThompson",
    "Objective",
    "Pick",
    "Policy",
    "Portfolio",
    "Run",
    "Selector",
    "SlidingUCB",
    "Trajectory",
    "TrajectorySet",
    "Transition",
    "Uniform",
    "discounted_return",
    "episode_length",
    "play",
    "resume",
    "run",
    "success_time",
    "total_return",
]
