"""The runs on one task, on one scale: 0 is a player with random actions, 1 is the best member alone."""

import numpy as np

from esbas.columns import Array
from esbas.experiments.control import statistics
from esbas.experiments.control.protocol import Task
from esbas.experiments.control.setup import ALONE, MEAN_Q, VOTE, Method
from esbas.experiments.control.sweep import RANDOM

BEST, ANY = "best member alone", "a random member alone"
LATE = 5  # the threshold is for the last of this many parts of a run
_ENSEMBLES = {VOTE: "vote", MEAN_Q: "mean_q"}


class TaskScores:
    """The runs on one task. Scores are normalised: 0 is a player with random actions, 1 is the best member alone."""

    def __init__(self, task: Task, methods: dict[str, Method], cells: dict[str, dict[str, Array]], chance: str) -> None:
        self.task, self.methods = task, methods
        self._cells, self._chance = cells, chance
        self.random = float(cells[RANDOM]["returns"].mean())
        alone = [name for name, method in methods.items() if method.family == ALONE]
        self.members = [name.partition(":")[2] for name in alone]
        levels = {name: float(statistics.iqm(self.raw(name))) for name in alone}
        self.reference = max(alone, key=lambda name: levels[name])  # the best member alone
        self.level = levels[self.reference]
        self.final_level = max(float(statistics.iqm(self._arrays(name)["final"])) for name in alone)
        late = self.curves(self.reference)
        self.reached = float(statistics.iqm(late[:, -max(late.shape[1] // LATE, 1) :].mean(axis=1)))

    @property
    def counts(self) -> bool:
        """Whether the best member alone passes the threshold, and is better than random actions."""
        return self.level > self.random and (self.task.threshold is None or self.reached >= self.task.threshold)

    def _arrays(self, method: str) -> dict[str, Array]:
        return self._cells[self.methods[method].copied_from(self.task, self._chance) or method]

    def has(self, method: str) -> bool:
        """Whether there are scores of this method; ensembles need members with values of actions."""
        if method in (BEST, ANY):
            return True
        if method not in self.methods:
            return False
        ensemble = _ENSEMBLES.get(method)
        return ensemble is None or ensemble in self._arrays(method)

    def curves(self, method: str) -> Array:
        """(R, bins): mean returns."""
        return self._arrays(method)["curve"]

    def raw(self, method: str) -> Array:
        """(R,): the mean over the bins of each run."""
        return np.asarray(self.curves(method).mean(axis=1))

    def scores(self, method: str) -> Array:
        """(R,): normalised."""
        if method == ANY:
            return np.asarray(np.mean([self.scores(f"{ALONE}:{name}") for name in self.members], axis=0))
        if method in _ENSEMBLES:
            return np.full(len(self._arrays(method)["final"]), np.nan)  # they are only evaluated at the end
        return self.normalised(self.raw(self.reference if method == BEST else method))

    def normalised(self, returns: Array) -> Array:
        width = self.level - self.random
        return (returns - self.random) / width if width > 0 else np.full_like(returns, np.nan, dtype=np.float64)

    def finals(self, method: str) -> Array:
        """(R,): greedy scores at the end, normalised by those of the member that is best at the end alone."""
        if method == ANY:
            return np.asarray(np.mean([self.finals(f"{ALONE}:{name}") for name in self.members], axis=0))
        name = self.reference if method == BEST else method
        return self.normalised_finals(self._arrays(name)[_ENSEMBLES.get(name, "final")])

    def normalised_finals(self, returns: Array) -> Array:
        width = self.final_level - self.random
        return (returns - self.random) / width if width > 0 else np.full_like(returns, np.nan, dtype=np.float64)

    def shares(self, method: str) -> Array:
        """(K,): mean shares of control."""
        return np.asarray(self._arrays(method)["shares"].mean(axis=0))

    def greedy(self, method: str) -> Array:
        """(K,): the mean normalised greedy score of each member, NaN if not evaluated."""
        return np.asarray(self.normalised_finals(self._arrays(method)["greedy"]).mean(axis=0))

    def runs(self, method: str) -> bool:
        """Whether the method has runs of its own."""
        return method in self._cells

    def seconds(self, method: str) -> float:
        """The median CPU seconds of a run; the first one of a process, with its imports, does not move it. NaN without runs."""
        return float(np.median(self._cells[method]["cpu"])) if self.runs(method) else float("nan")

    def steps(self, method: str) -> float:
        return float(self._arrays(method)["steps"].mean())
