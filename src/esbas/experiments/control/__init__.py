"""Does selection pay? Selectors, single members and what people use instead, at the same number of environment steps.

docs/control-method.md describes the protocol, which is in protocol.toml.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from esbas.errors import require, unknown
from esbas.experiments.options import SweepOptions

if TYPE_CHECKING:  # imported by `run`, so that the help is fast
    from esbas.experiments.control.cells import Arrays
    from esbas.experiments.control.protocol import Protocol, Task
    from esbas.experiments.control.setup import Method

_REMEDY = "install what docs/control-method.md names, or choose other --tasks"


@dataclass(frozen=True, kw_only=True)
class Control(SweepOptions):
    """Compare selectors on many tasks: with chance, with each member alone, with searches, ensembles and tuned learners.

    The whole protocol takes hours and can be stopped and continued at any time. A first look, in minutes: --quick. Finished parts
    are kept if tasks, methods or seeds are added later.
    """

    command: ClassVar[str] = "esbas reproduce control"
    extensible: ClassVar[tuple[str, ...]] = ("tasks", "methods", "runs", "ablations", "external", "about")
    min_runs: ClassVar[int] = 0

    runs: Annotated[int, tyro.conf.arg(aliases=["--seeds"])] = 0
    """Seeds of each method on each task. 0: those of the protocol."""
    quick: bool = False
    """A small part of the protocol: few seeds, tasks and methods, and short budgets."""
    tasks: tuple[str, ...] = ()
    """Tasks by name, or confirmatory, development or ablation for all of a kind. Default: confirmatory and development."""
    methods: tuple[str, ...] = ()
    """Methods by name; alone and fixed stand for those of all members. Chance and all members alone are always included: scores
    are relative to them. Default: all."""
    ablations: bool = False
    """Also run the ablations."""
    external: tuple[Path, ...] = ()
    """Files with the runs of methods that another program has measured. They are added to tables and figures."""
    about: str = ""
    """The selector that verdicts, comparisons and figures are about. Default: the recommended one of the protocol."""
    protocol_file: Path | None = None
    """A protocol of your own, in TOML. Default: that of the package."""

    @cached_property
    def protocol(self) -> "Protocol":
        from esbas.experiments.control.protocol import read_protocol

        return read_protocol(self.protocol_file)

    def seeds_of(self, task: "Task") -> int:
        """How many seeds each method has on this task."""
        return self.runs or (int(self.protocol.quick["seeds"]) if self.quick else task.seeds or self.protocol.seeds)

    @cached_property
    def chosen_tasks(self) -> "list[Task]":
        """The tasks in the order of the protocol, with shorter budgets in a quick look."""
        from esbas.experiments.control.protocol import ABLATION, CONFIRMATORY, DEVELOPMENT, KINDS

        protocol, known = self.protocol, self.protocol.tasks
        wanted = self.tasks or tuple(protocol.quick["tasks"] if self.quick else (CONFIRMATORY, DEVELOPMENT))
        wanted += (ABLATION,) if self.ablations else ()
        for name in wanted:
            if name not in known and name not in KINDS:
                raise unknown("task", name, [*known, *KINDS])
        chosen = [task for name, task in known.items() if name in wanted or task.kind in wanted]
        share = protocol.quick["share_of_steps"] if self.quick else 1
        return [replace(task, steps=max(int(share * task.steps), protocol.bins)) for task in chosen]

    def chosen_methods(self, task: "Task") -> "dict[str, Method]":
        """The methods of a task."""
        from esbas.experiments.control.setup import ALONE, matches, methods_of

        every = methods_of(task, self.protocol)
        wanted = self.methods or (tuple(self.protocol.quick["methods"]) if self.quick else ())
        if not wanted:
            return every
        needed = (*wanted, self.protocol.chance, ALONE, *([self.about] if self.about else []))
        return {name: method for name, method in every.items() if matches(name, needed)}

    @cached_property
    def external_cells(self) -> "dict[str, dict[str, Arrays]]":
        """By task and method, the arrays of the methods that another program has measured."""
        from esbas.experiments.control.external import external_cells

        return external_cells(self.external, self)

    def compared_methods(self, task: "Task") -> "dict[str, Method]":
        """The methods of a task, and those that another program has measured on it."""
        from esbas.experiments.control.external import external_method

        outside = {name: external_method(name, task) for name in self.external_cells.get(task.name, {})}
        return self.chosen_methods(task) | outside

    def check(self) -> None:
        from esbas.experiments.control.setup import check_methods, methods_of
        from esbas.training import make_task
        from esbas.training.options import error_context

        super().check()
        for task in self.chosen_tasks:
            task.portfolio.check()
        known = {name: method for task in self.chosen_tasks for name, method in methods_of(task, self.protocol).items()}
        check_methods(self.methods, known)
        if self.about and self.about not in self.protocol.selectors:
            raise unknown("selector", self.about, self.protocol.selectors)
        require(len(self.chosen_tasks) > 0, "there is a task", "name one", tasks=self.tasks)
        _ = self.external_cells  # a file that does not fit raises an error
        for task in self.chosen_tasks:  # a package that is missing is reported now, not after hours
            with error_context(f"the task {task.name}", rule="must start", remedy=_REMEDY):
                make_task(task.env, wrappers=task.wrappers).close()

    def settings(self) -> dict[str, object]:
        given = {name: getattr(self, name) or None for name in ("runs", "quick", "tasks", "methods", "ablations", "about")}
        given |= {"external": [str(path) for path in self.external] or None}
        return super().settings() | given | {"protocol_file": None if self.protocol_file is None else str(self.protocol_file)}

    def run(self) -> None:
        from esbas.experiments.control.analysis import ControlAnalysis
        from esbas.experiments.control.report import publish
        from esbas.experiments.control.sweep import run_sweep

        results = self.open_results()
        own = run_sweep(self, results)
        cells = {task: arrays | self.external_cells.get(task, {}) for task, arrays in own.items()}
        publish(results, ControlAnalysis(self, cells))


EXPERIMENT = Control
