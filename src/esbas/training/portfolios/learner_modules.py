"""Modules of `esbas.learners` that are imported only when they are needed, or whose names differ between versions."""

from importlib import import_module
from types import ModuleType


def find_module(name: str) -> ModuleType:
    """The module `esbas.learners.NAME`, or `esbas.learners._NAME` if there is no public one."""
    public = f"esbas.learners.{name}"
    try:
        return import_module(public)
    except ModuleNotFoundError as error:
        if error.name != public:
            raise
        return import_module(f"esbas.learners._{name}")
