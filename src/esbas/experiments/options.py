"""What all experiments share: common options, checks, the results folder, and parallel runs."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from esbas.engine import Finished, find_engine, read_resources, run_parts
from esbas.errors import require
from esbas.reporting import Results
from esbas.reporting.files import plain
from esbas.reporting.results import CONFIG, read_config

NOT_DECISIVE = ("jobs", "engine", "resources", "out")
"""Options that do not change the results."""


@dataclass(frozen=True, kw_only=True)
class SweepOptions(ABC):
    """An experiment with many independent runs.

    Subclasses add options as dataclass fields and define `run`.

    >>> from functools import partial
    >>> import numpy as np
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Dice(SweepOptions):
    ...     sides: int = 6
    ...
    ...     def run(self) -> None:
    ...         results = self.open_results()
    ...         part = partial(roll, self.sides, self.runs, self.seed)
    ...         finished = self.run_parts(results, {"rolls": part})
    ...         results.summary({"mean": finished["rolls"]["values"].mean()})

    Class attributes:
        command: the command that runs the experiment. By default `esbas reproduce module:Class`.
        min_runs: the smallest number of runs.
        extensible: options that may change in a results folder: what is there stays valid, and what
            is missing is added.
    """

    command: ClassVar[str]
    min_runs: ClassVar[int] = 1
    extensible: ClassVar[tuple[str, ...]] = ()

    runs: int = 100
    """Independent runs of each method."""
    seed: int = 0
    """The same seed gives the same results."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Blocks of runs that execute at the same time. The results do not depend on it."""
    engine: str | None = None
    """Where the runs execute: threads, processes, ray (also ray:auto or ray://HOST:PORT for a
    running cluster), or module:Class. By default, the one that is faster for the experiment."""
    resources: tuple[str, ...] = ()
    """What --engine ray reserves for each block of runs, such as cpus=2 gpus=0.5 memory=4 (in GB).
    Default: cpus=1."""
    out: Path | None = None
    """Folder for tables, figures, report.html and summary.json. By default ./esbas-NAME, with the
    name of the experiment."""

    def __init_subclass__(cls) -> None:
        if "command" not in cls.__dict__:
            cls.command = f"esbas reproduce {cls.__module__}:{cls.__qualname__}"

    @abstractmethod
    def run(self) -> None:
        """Execute the runs that are not finished yet; write tables, figures and the report."""

    def check(self) -> None:
        """Raise an error if an option is invalid. Subclasses extend it."""
        require(
            self.runs >= self.min_runs,
            f"`runs` must be at least {self.min_runs}, but got {self.runs!r}.",
        )
        require(self.seed >= 0, f"`seed` must be at least 0, but got {self.seed!r}.")
        require(self.jobs >= 1, f"`jobs` must be at least 1, but got {self.jobs!r}.")
        if self.engine is not None or self.resources:
            engine = find_engine(self.engine or "threads")
            read_resources(self.resources, jobs=self.jobs, engine=engine)

    def settings(self) -> dict[str, object]:
        """Return the options that determine the results, as config.json records them.

        None stands for the default.
        """
        names = [each.name for each in fields(self)]
        return {name: getattr(self, name) for name in names if name not in NOT_DECISIVE}

    def open_results(self) -> Results:
        """Check the options, then open the results folder.

        A folder with the results of other settings is refused, unless only `extensible` ones
        differ.
        """
        self.check()
        name = re.split(r"[\s.:]", self.command)[-1].lower()
        folder = Path(f"esbas-{name}") if self.out is None else self.out
        settings = plain(self.settings())
        if not (folder / CONFIG).is_file():
            return Results(folder, command=self.command, config=settings)
        about = read_config(folder)
        before = about["config"]
        earlier = {}
        for name, value in settings.items():
            if before.get(name) != value:
                earlier[name] = before.get(name)
        extends = bool(earlier) and set(earlier) <= set(self.extensible)
        if about["command"] != self.command or not extends:
            # Continues with the same settings, and refuses other ones.
            return Results(folder, command=self.command, config=settings)
        results = Results(folder, command=self.command, config=before)
        results.change(settings, earlier=earlier)
        return results

    def run_parts(
        self,
        results: Results,
        parts: Mapping[str, Callable[[], Mapping[str, Any]]],
        *,
        description: str = "runs",
        processes: bool = False,
        note: Callable[[Finished], str] | None = None,
    ) -> Finished:
        """Run the parts that `results` does not have yet, and store each part when it is finished.

        Args:
            results: the results folder.
            parts: functions that return named arrays, by part name. They must be picklable, since
                any engine may run them.
            description: text of the progress line.
            processes: whether processes suit the parts better than threads (parts in plain Python).
                `engine` has precedence.
            note: text beside the progress, from the parts that are finished so far.

        Returns:
            The arrays of all parts, in the order of `parts`.
        """
        return run_parts(
            parts,
            load=results.part,
            store=results.store_part,
            jobs=self.jobs,
            description=description,
            processes=processes,
            engine=self.engine,
            resources=self.resources,
            note=note,
        )
