"""Experiments: `esbas reproduce NAME` runs those of this package, `esbas reproduce module:Class` any other.

An experiment is a frozen dataclass that inherits `esbas.experiments.options.SweepOptions`, adds its own options, and defines
`run`. All experiments of this package are packages with the same modules:

- `__init__.py`: the options and `run`. The first line of its docstring is the summary in `esbas --help`;
  `EXPERIMENT = TheClass` declares the experiment, so that it is found without a list of experiments elsewhere.
- `setup.py`: what is compared.
- `sweep.py`: the runs, in parts that are stored as they finish.
- `report.py`: tables, figures and the report. Long reports have modules `analysis.py` and `figures.py` as well.
"""

import ast
from pathlib import Path
from typing import Any

from esbas.errors import InvalidValueError, unknown
from esbas.registry import import_object

DECLARATION = "EXPERIMENT"


def summaries() -> dict[str, str]:
    """The experiments of this package by name, each with its summary. No experiment is imported, so this is fast."""
    found: dict[str, str] = {}
    for source in sorted(path for folder in __path__ for path in Path(folder).glob("*/__init__.py")):
        module = ast.parse(source.read_text("utf-8"))
        names = [target for node in module.body if isinstance(node, ast.Assign) for target in node.targets]
        if any(isinstance(name, ast.Name) and name.id == DECLARATION for name in names):
            found[source.parent.name] = (ast.get_docstring(module) or "").partition("\n")[0]
    return found


def find_experiment(name: str) -> Any:
    """The class of the experiment with this name, or the class that `module:Class` names."""
    if ":" not in name and name not in summaries():
        raise unknown("experiment", name, summaries())
    found = import_object(name if ":" in name else f"{__name__}.{name}:{DECLARATION}")
    if not (isinstance(found, type) and callable(getattr(found, "run", None))):
        rule = "an experiment must be a class with a method `run`"
        raise InvalidValueError(f"{rule}, but {name!r} is {found!r}: inherit esbas.experiments.options.SweepOptions")
    return found
