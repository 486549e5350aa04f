"""Trainings: one configuration, runs with checkpoints, folders, policies, reports, progress.

The functions for users are in `esbas` itself: `train`, `load_training`, `compare` and
`load_policy`. Names are imported on first use: the options of a command must not load what only its
execution needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esbas.specs.envs import make_env as make_env
    from esbas.specs.portfolios import ALGORITHMS as ALGORITHMS
    from esbas.specs.portfolios import Recipe as Recipe
    from esbas.specs.portfolios import default_recipe as default_recipe
    from esbas.specs.portfolios import example as example
    from esbas.specs.portfolios import read_recipe as read_recipe
    from esbas.specs.portfolios import recipe_of as recipe_of
    from esbas.training.callbacks import Callback as Callback
    from esbas.training.callbacks import Evaluation as Evaluation
    from esbas.training.callbacks import RunInfo as RunInfo
    from esbas.training.compare import Comparison as Comparison
    from esbas.training.config import TrainingConfig as TrainingConfig
    from esbas.training.evaluating import PolicyEvaluation as PolicyEvaluation
    from esbas.training.folder import open_folder as open_folder
    from esbas.training.runs.plan import Plan as Plan
    from esbas.training.training import Training as Training

_MODULES = {
    "ALGORITHMS": "specs.portfolios",
    "Callback": "training.callbacks",
    "Comparison": "training.compare",
    "Evaluation": "training.callbacks",
    "Plan": "training.runs.plan",
    "PolicyEvaluation": "training.evaluating",
    "Recipe": "specs.portfolios",
    "RunInfo": "training.callbacks",
    "Training": "training.training",
    "TrainingConfig": "training.config",
    "default_recipe": "specs.portfolios",
    "example": "specs.portfolios",
    "make_env": "specs.envs",
    "open_folder": "training.folder",
    "read_recipe": "specs.portfolios",
    "recipe_of": "specs.portfolios",
}
__all__ = sorted(_MODULES)  # noqa: PLE0605, RUF100


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"esbas.{_MODULES[name]}"), name)
