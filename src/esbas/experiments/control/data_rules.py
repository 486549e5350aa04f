"""Rules that should see the value of data: a member that earns little may visit what all members have to learn about.

They were tried beside the recommended selector, which looks at returns alone; docs/control.md has the results.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from esbas.bandits import KalmanThompson
from esbas.bandits.bandit import Rng
from esbas.bandits.memory_bandit import Round
from esbas.evidence import Evidence
from esbas.selectors import BanditSelector, Choice
from esbas.selectors.choice import Pick


class FallingShare(KalmanThompson):
    """A falling share of uniform choices, √(`share` K / t)."""

    def __init__(self, n_arms: int, *, share: float = 0.3, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self._share = share

    def choose(self, among: Collection[int] | None = None) -> int:
        arms, t = self._arms(among), self._filters.t
        if t and self.rng.random() < math.sqrt(self._share * len(arms) / t):
            return arms[int(self.rng.integers(len(arms)))]
        return super().choose(among)


class Upside(KalmanThompson):
    """Noise on all values, `noise` times the largest distance of a reward from the best mean, which is forgotten as 1 / t.

    Where rewards far above all means have been seen, differences between low means should not matter.
    """

    def __init__(self, n_arms: int, *, noise: float = 0.03, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self._noise, self._upside = noise, 0.0

    def _learn(self, settled: Round, reward: float) -> None:
        super()._learn(settled, reward)
        self._upside = max(self._upside * (1 - 1 / (10 + self._filters.t)), reward - self.indices().max())

    def choose(self, among: Collection[int] | None = None) -> int:
        filters, arms = self._filters, self._arms(among)
        if not filters.t or not filters.unit:
            return super().choose(among)
        samples = np.array(filters.sample(filters.draw(self.rng.random()), self.rng.standard_normal(self.n_arms)))
        samples += self._noise * self._upside / filters.unit * self.rng.standard_normal(self.n_arms)
        return max(arms, key=lambda k: samples[k])


class Improvement(KalmanThompson):
    """A bonus for arms after whose episodes rewards are higher than expected.

    The surprise of a round is credited to the arm of the round before. The bonus is the lower end of a 95 % interval of the mean
    credit, if it is positive, times the rounds that an improvement may last, 10 + t / 10.
    """

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self._before: int | None = None
        self._credits = np.zeros((3, n_arms))  # how many, their sum, and the sum of their squares

    def _learn(self, settled: Round, reward: float) -> None:
        k = self._arm_of(settled)
        surprise = reward - self.indices()[k]
        if self._before is not None:
            self._credits[:, self._before] += 1, surprise, surprise * surprise
        self._before = k
        super()._learn(settled, reward)

    def choose(self, among: Collection[int] | None = None) -> int:
        filters, arms = self._filters, self._arms(among)
        if not filters.t or not filters.unit:
            return super().choose(among)
        count, total, squares = self._credits
        means = total / np.maximum(count, 1)
        errors = np.sqrt(np.maximum(squares / np.maximum(count, 1) - means**2, 0) / np.maximum(count - 1, 1))
        bonus = np.where(count > 1, np.maximum(means - 1.96 * errors, 0), 0) * (10 + filters.t / 10) / filters.unit
        samples = bonus + filters.sample(filters.draw(self.rng.random()), self.rng.standard_normal(self.n_arms))
        return max(arms, key=lambda k: samples[k])


class Coverage(BanditSelector):
    """A share of the choices goes to arms whose episodes visit little-known states, as long as there are such visits.

    A state is little known in its first `known` visits, as in R-max (Brafman & Tennenholtz, 2002). The share is the largest mean
    number of such visits in an episode of an arm, at most `most`; within it, arms are drawn in proportion to theirs. It is for
    observations that repeat.
    """

    wants = frozenset({"trajectory"})

    def __init__(
        self, arms: Iterable[str], *, known: int = 100, most: float = 0.5, per_step: bool = False, seed: int = 0, **options: Any
    ) -> None:
        super().__init__(arms, bandit=KalmanThompson, seed=seed, **options)
        self._known, self._most, self._per_step = known, most, per_step
        self._visits: Counter[bytes] = Counter()
        self._pulls, self._new = np.zeros(len(self._arms)), np.ones(len(self._arms))

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        allowed = [self._arms.index(name) for name in among]
        new = self._new[allowed]
        if self.rng.random() >= min(self._most, new.max()):
            return super().pick(among, context)
        k = allowed[int(self.rng.choice(len(new), p=new / new.sum()))]
        return Pick(self._arms[k], None, self.bandit.pull(k))

    def observe(self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None) -> None:
        super().observe(choice, value, note=note, evidence=evidence)
        assert evidence is not None  # the loop gives what `wants` names
        k, observations, new = self._arms.index(choice.arm), np.asarray(evidence.trajectory.observations), 0.0
        for observation in observations[1:]:
            state = observation.tobytes()
            self._visits[state] += 1
            new += self._visits[state] <= self._known
        self._pulls[k] += 1
        new /= len(observations) - 1 if self._per_step else 1
        self._new[k] += (new - self._new[k]) * max(1 / self._pulls[k], 0.05)
