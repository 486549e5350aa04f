"""Methods that another program has measured, for tables and figures beside those of the protocol.

A file holds the runs of one method on one task, as JSON: `method`, its name; `task`, the `facts` of the task; and `runs`, where
run number i has the seed `sweep.seed_of(seed, task, i)`. `curve`, `final`, `steps`, `episodes` and `cpu` of a run are those of
`cells.run_cell`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from esbas import schema
from esbas.errors import InvalidValueError, require, unknown
from esbas.experiments.control.cells import Arrays
from esbas.experiments.control.protocol import Protocol, Task
from esbas.experiments.control.setup import EXTERNAL, Method, methods_of
from esbas.files import read_file
from esbas.reporting.files import write_json
from esbas.schema import COUNT, Number
from esbas.training.portfolios.recipe import Recipe

if TYPE_CHECKING:
    from esbas.experiments.control import Control

_RETURN, _POSITIVE = Number(min=-1e100, max=1e100), Number(min=1, whole=True)  # sums of returns are finite
_RUN = {"curve": [_RETURN], "final": _RETURN, "steps": _POSITIVE, "episodes": _POSITIVE, "cpu": Number(min=0)}
_FACTS = {"name": str, "env": str, "wrappers": [str], "steps": COUNT, "final_episodes": COUNT, "bins": COUNT, "seed": COUNT}
_FILE = {"method": str, "task": _FACTS, "runs": [_RUN]}
_REMEDY = "measure it again"


def facts(task: Task, protocol: Protocol, seed: int) -> dict[str, Any]:
    """What must be equal for results to be comparable. `seed`: that of the whole benchmark."""
    own = {name: getattr(task, name) for name in ("name", "env", "steps", "final_episodes")}
    return own | {"wrappers": list(task.wrappers), "bins": protocol.bins, "seed": seed}


def read_runs(path: Path, expected: Mapping[str, Any], *, missing_ok: bool = False) -> list[dict[str, Any]]:
    """The runs in a file. It must be of this task; with `missing_ok`, there may be no file yet.

    Args:
        path: the file.
        expected: the facts of the task.
        missing_ok: whether to return no runs if there is no file.
    """
    if missing_ok and not path.exists():
        return []
    where, content = repr(str(path)), _read(path)
    for name, value in expected.items():
        found = content["task"][name]
        schema.require(found == value, f"{name} = {schema.short(value)}", where, remedy=_REMEDY, **{name: found})
    for run in content["runs"]:
        schema.require(len(run["curve"]) == expected["bins"], "one value for each bin", where, remedy=_REMEDY, curve=run["curve"])
    return list(content["runs"])


def write_runs(path: Path, method: str, task: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> None:
    """Write the file, completely or not at all."""
    write_json(path, {"method": method, "task": task, "runs": runs})


def external_cells(paths: Sequence[Path], options: "Control") -> dict[str, dict[str, Arrays]]:
    """By task and method, the arrays of the runs in these files, as many as other methods have."""
    tasks, found = {task.name: task for task in options.chosen_tasks}, dict[str, dict[str, Arrays]]()
    for path in paths:
        content = _read(path)
        name, method = content["task"]["name"], content["method"]
        if name not in tasks:
            raise unknown("chosen task", name[:60], tasks, f"add it to --tasks, or leave out {str(path)!r}")
        task, own = tasks[name], found.setdefault(name, {})
        runs, seeds = read_runs(path, facts(task, options.protocol, options.seed)), options.seeds_of(task)
        require(len(runs) >= seeds, "runs >= seeds", f"finish {str(path)!r}, or use fewer --seeds", runs=len(runs), seeds=seeds)
        taken = method in own or method in methods_of(task, options.protocol)
        if taken or not method.replace("-", "").isalnum():
            rule = "a name of its own, of letters, digits and dashes"
            raise InvalidValueError(f"the method in {str(path)!r} must have {rule}, but got {schema.short(method)}: rename it")
        own[method] = {key: np.array([run[key] for run in runs[:seeds]]) for key in _RUN}
    return found


def external_method(name: str, task: Task) -> Method:
    """A method without members, since they are unknown."""
    return Method(name=name, family=EXTERNAL, recipe=Recipe("", (), {}), selector="", wrappers=task.wrappers)


def _read(path: Path) -> Any:
    content = schema.read_json(read_file(path), repr(str(path)), remedy=_REMEDY)
    schema.check(content, _FILE, repr(str(path)), remedy=_REMEDY)
    return content
