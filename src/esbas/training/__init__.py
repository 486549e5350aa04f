"""`esbas train` and what belongs to it: portfolios as text, tasks by name, runs with checkpoints, live view, reports."""

from esbas.training.callbacks import Callback, Evaluation, RunInfo
from esbas.training.commands.train import main, train
from esbas.training.config import Train
from esbas.training.extending import extend
from esbas.training.folder import open_folder
from esbas.training.portfolios import ALGORITHMS, Recipe, default_recipe, read_recipe, recipe_of
from esbas.training.runs.plan import Plan
from esbas.training.tasks import make_task

__all__ = [
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
