"""Experiments: `esbas reproduce NAME` runs one, `esbas reproduce module:Class` one of your own.

An experiment is a frozen dataclass that inherits `esbas.experiments.options.SweepOptions`, adds its
own options, and defines `run`. All experiments of this package are packages with the same modules:

- `__init__.py`: the options and `run`. The first line of its docstring is the summary in `esbas
  --help`; `EXPERIMENT = TheClass` declares the experiment, so that it is found without a list of
  experiments elsewhere.
- `setup.py`: what is compared.
- `sweep.py`: the runs, in parts that are stored as they finish.
- `report.py`: tables, figures and the report. Long reports have modules `analysis.py` and
  `figures.py` as well.
"""

import ast
from pathlib import Path
from typing import Any

from esbas._internal.registry import import_object
from esbas.errors import InvalidValueError, unknown

DECLARATION = "EXPERIMENT"


def summaries() -> dict[str, str]:
    """Return the summaries of the experiments of this package by name.

    No experiment is imported, so this is fast.
    """
    sources: list[Path] = []
    for folder in __path__:
        sources += Path(folder).glob("*/__init__.py")
    found: dict[str, str] = {}
    for source in sorted(sources):
        module = ast.parse(source.read_text("utf-8"))
        if any(_declares_experiment(node) for node in module.body):
            docstring = ast.get_docstring(module) or ""
            found[source.parent.name] = docstring.partition("\n")[0]
    return found


def _declares_experiment(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    return DECLARATION in names


def find_experiment(name: str) -> Any:
    """Return the class of the experiment with this name, or the class that `module:Class` names."""
    target = name
    if ":" not in name:
        if name not in summaries():
            raise unknown("experiment", name, summaries())
        target = f"{__name__}.{name}:{DECLARATION}"
    found = import_object(target)
    if not (isinstance(found, type) and callable(getattr(found, "run", None))):
        raise InvalidValueError(
            f"An experiment must be a class with a method `run`, but {name!r} is {found!r}:"
            " inherit esbas.experiments.options.SweepOptions."
        )
    return found
