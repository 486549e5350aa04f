"""Objectives (the paper's μ): what a trajectory is worth to the selector."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from esbas.errors import require
from esbas.trajectory import Trajectory


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A number per trajectory, to be made large (or small, with `maximize=False`)."""

    name: str
    function: Callable[[Trajectory], float]
    maximize: bool = True

    def __call__(self, trajectory: Trajectory) -> float:
        """The trajectory's value, in its own units."""
        value = float(self.function(trajectory))
        if not math.isfinite(value):
            require(False, f"objective {self.name!r} is finite", "fix the function", value=value)
        return value

    def score(self, value: float) -> float:
        """The value as selectors see it: larger is better."""
        return value if self.maximize else -value


def discounted_return(gamma: float = 0.99) -> Objective:
    """Σ γ^t r(t+1): the return of the paper's Section 2.1."""
    require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)

    def function(trajectory: Trajectory) -> float:
        return float(trajectory.rewards @ gamma ** np.arange(len(trajectory)))

    return Objective(name=f"discounted return, gamma={gamma:g}", function=function)


def total_return() -> Objective:
    """Σ r(t), without discount."""
    return Objective(name="return", function=lambda trajectory: float(trajectory.rewards.sum()))


def episode_length(*, maximize: bool = False) -> Objective:
    """The number of steps."""
    return Objective(name="episode length", function=len, maximize=maximize)


def success_time(*, failure: float) -> Objective:
    """The number of steps until the goal; `failure` if the episode was cut off before (Section 5.1 has 200)."""

    def function(trajectory: Trajectory) -> float:
        return len(trajectory) if trajectory.terminated else failure

    return Objective(name=f"time to success, {failure:g} if none", function=function, maximize=False)


def as_objective(given: Objective | Callable[[Trajectory], float] | None) -> Objective:
    """An objective as it is; any function of a trajectory as one to be made large; by default the discounted return."""
    if given is None:
        return discounted_return()
    return given if isinstance(given, Objective) else Objective(name=getattr(given, "__name__", "custom"), function=given)
