"""The runs on one task, on one scale: 0 is random actions, 1 is the best learner alone."""

import numpy as np

from esbas._internal.columns import Array
from esbas.experiments.control import statistics
from esbas.experiments.control.protocol import Task
from esbas.experiments.control.setup import ALONE, MEAN_Q, VOTE, Method
from esbas.experiments.control.sweep import RANDOM

BEST = "best learner alone"
ANY = "a random learner alone"
LATE = 5  # the threshold is for the last of this many parts of a run
_ENSEMBLES = {VOTE: "vote", MEAN_Q: "mean_q"}


class TaskScores:
    """The runs on one task, with normalized scores.

    Attributes:
        task: the task.
        methods: the methods that were run on it, by name.
        random: the mean return of random actions, which is the score 0.
        learners: the names of the learners of the portfolio that ran alone.
        reference: the method that is the best learner alone.
        level: the return of the reference, which is the score 1.
        final_level: the highest greedy return of a learner alone at the end.
        reached: the return of the reference in the last part of its runs.
    """

    def __init__(
        self,
        task: Task,
        methods: dict[str, Method],
        cells: dict[str, dict[str, Array]],
        chance: str,
    ) -> None:
        self.task = task
        self.methods = methods
        self._cells = cells
        self._chance = chance
        self.random = float(cells[RANDOM]["returns"].mean())
        alone = [name for name, method in methods.items() if method.family == ALONE]
        self.learners = [name.partition(":")[2] for name in alone]
        levels = {name: float(statistics.iqm(self.raw(name))) for name in alone}
        self.reference = max(alone, key=lambda name: levels[name])
        self.level = levels[self.reference]
        self.final_level = max(float(statistics.iqm(self._arrays(name)["final"])) for name in alone)
        curves = self.curves(self.reference)
        late_bins = max(curves.shape[1] // LATE, 1)
        self.reached = float(statistics.iqm(curves[:, -late_bins:].mean(axis=1)))

    @property
    def counts(self) -> bool:
        """Whether the best learner alone passes the threshold and is better than random actions."""
        if self.level <= self.random:
            return False
        return self.task.threshold is None or self.reached >= self.task.threshold

    def _arrays(self, method: str) -> dict[str, Array]:
        original = self.methods[method].copied_from(self.task, self._chance)
        return self._cells[method if original is None else original]

    def has(self, method: str) -> bool:
        """Return whether there are scores of this method.

        Ensembles need learners with values of actions.
        """
        if method in (BEST, ANY):
            return True
        if method not in self.methods:
            return False
        return method not in _ENSEMBLES or _ENSEMBLES[method] in self._arrays(method)

    def curves(self, method: str) -> Array:
        """Return mean returns, (R, bins)."""
        return self._arrays(method)["curve"]

    def raw(self, method: str) -> Array:
        """Return the mean over the bins of each run, (R,)."""
        return np.asarray(self.curves(method).mean(axis=1))

    def scores(self, method: str) -> Array:
        """Return the normalized mean over the bins of each run, (R,)."""
        if method == ANY:
            alone = [self.scores(f"{ALONE}:{name}") for name in self.learners]
            return np.asarray(np.mean(alone, axis=0))
        if method in _ENSEMBLES:  # they are only evaluated at the end
            return np.full(len(self._arrays(method)["final"]), np.nan)
        return self.normalized(self.raw(self.reference if method == BEST else method))

    def normalized(self, returns: Array) -> Array:
        return self._on_scale(returns, self.level)

    def finals(self, method: str) -> Array:
        """Return greedy scores at the end, (R,).

        They are normalized by those of the learner that is best at the end alone.
        """
        if method == ANY:
            alone = [self.finals(f"{ALONE}:{name}") for name in self.learners]
            return np.asarray(np.mean(alone, axis=0))
        name = self.reference if method == BEST else method
        return self.normalized_finals(self._arrays(name)[_ENSEMBLES.get(name, "final")])

    def normalized_finals(self, returns: Array) -> Array:
        return self._on_scale(returns, self.final_level)

    def _on_scale(self, returns: Array, one: float) -> Array:
        """Return scores: 0 for random actions, 1 for the return `one`; NaN if one is not better."""
        width = one - self.random
        if width > 0:
            return (returns - self.random) / width
        return np.full_like(returns, np.nan, dtype=np.float64)

    def shares(self, method: str) -> Array:
        """Return mean shares of control, (K,)."""
        return np.asarray(self._arrays(method)["shares"].mean(axis=0))

    def greedy(self, method: str) -> Array:
        """Return the mean normalized greedy score of each learner, NaN if not evaluated, (K,)."""
        return np.asarray(self.normalized_finals(self._arrays(method)["greedy"]).mean(axis=0))

    def runs(self, method: str) -> bool:
        """Return whether the method has runs of its own."""
        return method in self._cells

    def seconds(self, method: str) -> float:
        """Return the median CPU seconds of a run; NaN without runs.

        The first run of a process, with its imports, does not move the median.
        """
        if not self.runs(method):
            return float("nan")
        return float(np.median(self._cells[method]["cpu"]))

    def steps(self, method: str) -> float:
        return float(self._arrays(method)["steps"].mean())
