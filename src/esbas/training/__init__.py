"""`esbas train` and what belongs to it: portfolios as text, tasks by name, runs with checkpoints, live view, reports.

Names are imported on first use: the options of a command must not load what only its execution needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esbas.training.callbacks import Callback as Callback
    from esbas.training.callbacks import Evaluation as Evaluation
    from esbas.training.callbacks import RunInfo as RunInfo
    from esbas.training.commands.train import main as main
    from esbas.training.commands.train import train as train
    from esbas.training.config import Train as Train
    from esbas.training.extending import extend as extend
    from esbas.training.folder import open_folder as open_folder
    from esbas.training.portfolios import ALGORITHMS as ALGORITHMS
    from esbas.training.portfolios import Recipe as Recipe
    from esbas.training.portfolios import default_recipe as default_recipe
    from esbas.training.portfolios import read_recipe as read_recipe
    from esbas.training.portfolios import recipe_of as recipe_of
    from esbas.training.runs.plan import Plan as Plan
    from esbas.training.tasks import make_task as make_task

_MODULES = {
    **dict.fromkeys(("ALGORITHMS", "Recipe", "default_recipe", "read_recipe", "recipe_of"), "portfolios"),
    **dict.fromkeys(("Callback", "Evaluation", "RunInfo"), "callbacks"),
    **dict.fromkeys(("main", "train"), "commands.train"),
    "Plan": "runs.plan",
    "Train": "config",
    "extend": "extending",
    "make_task": "tasks",
    "open_folder": "folder",
}
__all__ = [  # noqa: F822, RUF100
    "ALGORITHMS",
    "Callback",
    "Evaluation",
    "Plan",
    "Recipe",
    "RunInfo",
    "Train",
    "default_recipe",
    "extend",
    "main",
    "make_task",
    "open_folder",
    "read_recipe",
    "recipe_of",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
