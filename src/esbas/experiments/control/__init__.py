"""Does selection pay? Selectors against single learners and searches, at the same number of steps.

docs/control-method.md describes the protocol, which is in protocol.toml.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from esbas._internal.links import page
from esbas.errors import require, unknown
from esbas.experiments.options import SweepOptions

if TYPE_CHECKING:  # imported by the methods that need them, so that the help is fast
    from esbas.experiments.control.cells import Arrays
    from esbas.experiments.control.protocol import Protocol, Task
    from esbas.experiments.control.setup import Method

_REMEDY = f"install what {page('control-method')} names, or choose other --tasks"


@dataclass(frozen=True, kw_only=True)
class Control(SweepOptions):
    """Compare selectors with chance, single learners, searches, ensembles and tuned learners.

    The whole protocol takes hours and can be stopped and continued at any time. A first look, in
    minutes: --quick. Finished parts are kept if tasks, methods or seeds are added later.
    """

    command: ClassVar[str] = "esbas reproduce control"
    extensible: ClassVar[tuple[str, ...]] = (
        "tasks",
        "methods",
        "runs",
        "ablations",
        "external",
        "about",
    )
    min_runs: ClassVar[int] = 0

    runs: Annotated[int, tyro.conf.arg(aliases=["--seeds"])] = 0
    """Seeds of each method on each task. 0: those of the protocol."""
    quick: bool = False
    """A small part of the protocol: few seeds, tasks and methods, and short budgets."""
    tasks: tuple[str, ...] = ()
    """Tasks by name, or confirmatory, development or ablation for all of a kind. Default:
    confirmatory and development."""
    methods: tuple[str, ...] = ()
    """Methods by name; alone and fixed stand for those of all learners. Chance and all learners
    alone are always included: scores are relative to them. Default: all."""
    ablations: bool = False
    """Also run the ablations."""
    external: tuple[Path, ...] = ()
    """Files with the runs of methods that another program has measured. They are added to tables
    and figures."""
    about: str = ""
    """The selector that verdicts, comparisons and figures are about. Default: the recommended one
    of the protocol."""
    protocol_file: Path | None = None
    """A protocol of your own, in TOML. Default: that of the package."""

    @cached_property
    def protocol(self) -> "Protocol":
        from esbas.experiments.control.protocol import read_protocol

        return read_protocol(self.protocol_file)

    def seeds_of(self, task: "Task") -> int:
        """Return how many seeds each method has on this task."""
        if self.runs:
            return self.runs
        if self.quick:
            return int(self.protocol.quick["seeds"])
        return task.seeds or self.protocol.seeds

    @cached_property
    def chosen_tasks(self) -> "list[Task]":
        """The tasks in the order of the protocol, with shorter budgets in a quick look."""
        from esbas.experiments.control.protocol import KINDS

        protocol = self.protocol
        wanted = self._wanted_tasks()
        for name in wanted:
            if name not in protocol.tasks and name not in KINDS:
                raise unknown("task", name, [*protocol.tasks, *KINDS])
        share = protocol.quick["share_of_steps"] if self.quick else 1
        chosen = []
        for name, task in protocol.tasks.items():
            if name in wanted or task.kind in wanted:
                steps = max(int(share * task.steps), protocol.bins)
                chosen.append(replace(task, steps=steps))
        return chosen

    def _wanted_tasks(self) -> list[str]:
        """Return names and kinds of tasks."""
        from esbas.experiments.control.protocol import ABLATION, CONFIRMATORY, DEVELOPMENT

        if self.tasks:
            wanted = list(self.tasks)
        elif self.quick:
            wanted = list(self.protocol.quick["tasks"])
        else:
            wanted = [CONFIRMATORY, DEVELOPMENT]
        if self.ablations:
            wanted.append(ABLATION)
        return wanted

    def chosen_methods(self, task: "Task") -> "dict[str, Method]":
        """Return the methods of a task by name."""
        from esbas.experiments.control.setup import ALONE, matches, methods_of

        every = methods_of(task, self.protocol)
        wanted = list(self.methods)
        if not wanted and self.quick:
            wanted = list(self.protocol.quick["methods"])
        if not wanted:
            return every
        wanted += [self.protocol.chance, ALONE]  # scores are relative to them
        if self.about:
            wanted.append(self.about)
        return {name: method for name, method in every.items() if matches(name, wanted)}

    @cached_property
    def external_cells(self) -> "dict[str, dict[str, Arrays]]":
        """By task and method, the arrays of the methods that another program has measured."""
        from esbas.experiments.control.external import external_cells

        return external_cells(self.external, self)

    def compared_methods(self, task: "Task") -> "dict[str, Method]":
        """Return the methods of a task, and those that another program has measured on it."""
        from esbas.experiments.control.external import external_method

        methods = self.chosen_methods(task)
        for name in self.external_cells.get(task.name, {}):
            methods[name] = external_method(name, task)
        return methods

    def check(self) -> None:
        from esbas.experiments.control.setup import check_methods, methods_of
        from esbas.specs.options import error_context
        from esbas.training import make_env

        super().check()
        known: dict[str, Method] = {}
        for task in self.chosen_tasks:
            task.portfolio.check()
            known |= methods_of(task, self.protocol)
        check_methods(self.methods, known)
        if self.about and self.about not in self.protocol.selectors:
            raise unknown("selector", self.about, self.protocol.selectors)
        require(len(self.chosen_tasks) > 0, "No task was chosen: name at least one with `--tasks`.")
        _ = self.external_cells  # a file that does not fit raises an error
        # A package that is missing is reported now, not after hours.
        for task in self.chosen_tasks:
            with error_context(f"the task {task.name}", rule="must start", remedy=_REMEDY):
                make_env(task.env, wrappers=task.wrappers).close()

    def settings(self) -> dict[str, object]:
        settings = super().settings()
        for name in ("runs", "quick", "tasks", "methods", "ablations", "about"):
            settings[name] = getattr(self, name) or None
        settings["external"] = [str(path) for path in self.external] or None
        settings["protocol_file"] = None if self.protocol_file is None else str(self.protocol_file)
        return settings

    def run(self) -> None:
        from esbas.experiments.control.analysis import ControlAnalysis
        from esbas.experiments.control.report import publish
        from esbas.experiments.control.sweep import run_sweep

        results = self.open_results()
        own = run_sweep(self, results)
        cells = {task: arrays | self.external_cells.get(task, {}) for task, arrays in own.items()}
        publish(results, ControlAnalysis(self, cells))


EXPERIMENT = Control
