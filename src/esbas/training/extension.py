"""The options of a training that becomes longer. Reading them loads nothing that takes seconds."""

from dataclasses import dataclass

from esbas.training.config import Numbers, RunOptions


@dataclass(frozen=True, kw_only=True)
class Extension(RunOptions):
    """What is added to a training, and how its runs are executed from now on."""

    steps: int | None = None
    """A new budget in environment steps, such as 200000 or 200k, for all runs."""
    episodes: int | None = None
    """A new budget in episodes, instead of steps."""
    minutes: float | None = None
    """A new limit of the minutes of training, for all runs."""
    until: float | None = None
    """A new mean value of recent episodes at which a run stops."""
    seeds: Numbers = ()
    """Seeds of runs that are added, such as 5 6 7 or 5-7."""
