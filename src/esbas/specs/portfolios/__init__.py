"""Portfolios as TOML text, and how their learners are built."""

from esbas.specs.portfolios.algorithms import ALGORITHMS, find_algorithm
from esbas.specs.portfolios.build import AlgorithmSpec, BuildContext
from esbas.specs.portfolios.recipe import Recipe, default_recipe, example, read_recipe, recipe_of

__all__ = [
    "ALGORITHMS",
    "AlgorithmSpec",
    "BuildContext",
    "Recipe",
    "default_recipe",
    "example",
    "find_algorithm",
    "read_recipe",
    "recipe_of",
]
