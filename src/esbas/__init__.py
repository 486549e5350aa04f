"""Online algorithm selection in reinforcement learning.

Implements ESBAS and SSBAS (Laroche & Féraud, ICLR 2018).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from esbas.bandits import UCB1, Bandit, KalmanThompson, SlidingUCB
from esbas.errors import EsbasError
from esbas.evidence import Evidence
from esbas.learner import Learner, Policy, Portfolio
from esbas.loop import EpisodeRecord, play
from esbas.objective import (
    Objective,
    constrained_return,
    discounted_return,
    episode_length,
    success_rate,
    success_time,
    total_return,
)
from esbas.roster import Fault
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
    from esbas.studies.opening import open_study as open_study
    from esbas.training.callbacks import Callback as Callback
    from esbas.training.compare import compare as compare
    from esbas.training.policies.loaded import load_policy as load_policy
    from esbas.training.train import train as train
    from esbas.training.training import Training as Training
    from esbas.training.training import load_training as load_training

__version__ = "0.7.0"

__all__ = [
    "ESBAS",
    "SSBAS",
    "UCB1",
    "Bandit",
    "BanditSelector",
    "Callback",
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
    "Training",
    "Trajectory",
    "TrajectorySet",
    "Transition",
    "Uniform",
    "__version__",
    "compare",
    "constrained_return",
    "default_selector",
    "discounted_return",
    "episode_length",
    "load_policy",
    "load_training",
    "open_study",
    "play",
    "resume",
    "run",
    "success_rate",
    "success_time",
    "total_return",
    "train",
]


_LATER = {  # imported on first use, so that `import esbas` needs NumPy alone
    "Callback": "esbas.training.callbacks",
    "Training": "esbas.training.training",
    "compare": "esbas.training.compare",
    "load_policy": "esbas.training.policies.loaded",
    "load_training": "esbas.training.training",
    "open_study": "esbas.studies.opening",
    "train": "esbas.training.train",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_LATER[name]), name)
    globals()[name] = found  # a submodule may have the same name, such as `esbas.training.train`
    return found


def __dir__() -> list[str]:
    """Return the table of contents: submodules that were imported are left out."""
    return sorted(__all__)
