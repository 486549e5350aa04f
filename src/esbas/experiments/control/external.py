"""Methods that another program has measured, for tables and figures beside those of the protocol.

A file holds the runs of one method on one task, as JSON: `method`, its name; `task`, the `facts` of
the task; and `runs`, where run number i has the seed `sweep.seed_of(seed, task, i)`. `curve`,
`final`, `steps`, `episodes` and `cpu` of a run are those of `cells.run_cell`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from esbas._internal import schema
from esbas._internal.files import read_file
from esbas._internal.schema import COUNT, Number
from esbas.errors import require, unknown
from esbas.experiments.control.cells import Arrays
from esbas.experiments.control.protocol import Protocol, Task
from esbas.experiments.control.setup import EXTERNAL, Method, methods_of
from esbas.reporting.files import write_json
from esbas.specs.portfolios.recipe import Recipe

if TYPE_CHECKING:
    from esbas.experiments.control import Control

_RETURN = Number(min=-1e100, max=1e100)  # sums of returns are finite
_POSITIVE = Number(min=1, whole=True)
_RUN = {
    "curve": [_RETURN],
    "final": _RETURN,
    "steps": _POSITIVE,
    "episodes": _POSITIVE,
    "cpu": Number(min=0),
}
_FACTS = {
    "name": str,
    "env": str,
    "wrappers": [str],
    "steps": COUNT,
    "final_episodes": COUNT,
    "bins": COUNT,
    "seed": COUNT,
}
_FILE = {"method": str, "task": _FACTS, "runs": [_RUN]}
_REMEDY = "measure it again"


def facts(task: Task, protocol: Protocol, seed: int) -> dict[str, Any]:
    """Return what must be equal for results to be comparable.

    Args:
        task: the task.
        protocol: the protocol of the benchmark.
        seed: that of the whole benchmark.
    """
    return {
        "name": task.name,
        "env": task.env,
        "steps": task.steps,
        "final_episodes": task.final_episodes,
        "wrappers": list(task.wrappers),
        "bins": protocol.bins,
        "seed": seed,
    }


def read_runs(
    path: Path, expected: Mapping[str, Any], *, missing_ok: bool = False
) -> list[dict[str, Any]]:
    """Read the runs in a file, which must be of this task.

    Args:
        path: the file.
        expected: the facts of the task.
        missing_ok: whether to return no runs if there is no file.
    """
    if missing_ok and not path.exists():
        return []
    content = _read(path)
    for name, value in expected.items():
        found = content["task"][name]
        require(
            found == value,
            f"`{name}` in {str(path)!r} must be {schema.short(value)}, as in the task of the"
            f" protocol, but got {schema.short(found)}: measure it again.",
        )
    for run in content["runs"]:
        require(
            len(run["curve"]) == expected["bins"],
            f"Each `curve` in {str(path)!r} must have {expected['bins']} values, one for each bin,"
            f" but got {len(run['curve'])}: measure it again.",
        )
    return list(content["runs"])


def write_runs(
    path: Path, method: str, task: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> None:
    """Write the file, completely or not at all."""
    write_json(path, {"method": method, "task": task, "runs": runs})


def external_cells(paths: Sequence[Path], options: "Control") -> dict[str, dict[str, Arrays]]:
    """Return the arrays of the runs in these files by task and method.

    They have as many runs as other methods.
    """
    tasks = {task.name: task for task in options.chosen_tasks}
    found: dict[str, dict[str, Arrays]] = {}
    for path in paths:
        content = _read(path)
        name = content["task"]["name"]
        method = content["method"]
        if name not in tasks:
            remedy = f"add it to --tasks, or leave out {str(path)!r}"
            raise unknown("chosen task", name[:60], tasks, remedy)
        task = tasks[name]
        runs = read_runs(path, facts(task, options.protocol, options.seed))
        seeds = options.seeds_of(task)
        require(
            len(runs) >= seeds,
            f"{str(path)!r} must have at least {seeds} runs, but got {len(runs)}:"
            " finish it, or use fewer `--seeds`.",
        )
        own = found.setdefault(name, {})
        taken = method in own or method in methods_of(task, options.protocol)
        require(
            not taken and method.replace("-", "").isalnum(),
            f"The method in {str(path)!r} must have a name that no other method has, of letters,"
            f" digits and dashes, but got {schema.short(method)}: rename it.",
        )
        own[method] = {key: np.array([run[key] for run in runs[:seeds]]) for key in _RUN}
    return found


def external_method(name: str, task: Task) -> Method:
    """Return a method without learners, since they are unknown."""
    unknown_learners = Recipe("", (), {})
    return Method(
        name=name, family=EXTERNAL, recipe=unknown_learners, selector="", wrappers=task.wrappers
    )


def _read(path: Path) -> Any:
    where = repr(str(path))
    content = schema.read_json(read_file(path), where, remedy=_REMEDY)
    schema.check(content, _FILE, where, remedy=_REMEDY)
    return content
