"""Exp3 that restarts: at fixed times (Rexp3), or when the best arm has changed (Exp3.R)."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from esbas._internal.schema import COUNT, AnyOf, Count
from esbas.bandits.bandit import BANDITS, DEFAULT_HORIZON, Rng
from esbas.bandits.exp3 import Exp3, WeightedArm, exp3_gamma
from esbas.bandits.memory_bandit import Round
from esbas.bandits.random_bandit import PROBABILITY
from esbas.errors import require


def rexp3_batch(n_arms: float, horizon: float, variation: float) -> int:
    """Return the length of a batch, ⌈(K ln K)^(1/3) (T / V)^(2/3)⌉; 1 for a single arm."""
    of_arms = math.pow(n_arms * math.log(n_arms), 1.0 / 3.0)
    of_horizon = math.pow(horizon / variation, 2.0 / 3.0)
    return max(math.ceil(of_arms * of_horizon), 1)


@BANDITS.register("rexp3")
class Rexp3(Exp3):
    """Exp3 that restarts every Δ = ⌈(K ln K)^(1/3) (T / V)^(2/3)⌉ rounds.

    γ = √(K ln K / ((e - 1) Δ)). A reward that arrives after its batch of rounds has ended changes
    only `means`. Besbes, Gur & Zeevi (2014).

    Args:
        n_arms: K.
        variation: V, the total change of the arms' expectations within the horizon.
        horizon: T.
        rng: for the draws.
    """

    extra_state: ClassVar = {"played": COUNT}
    note_shape = AnyOf(PROBABILITY, None)
    use = "as Exp3, if the expectations vary by V in total"
    guarantee = "O((K ln K V)^(1/3) T^(2/3))"

    def __init__(
        self,
        n_arms: int,
        *,
        variation: float = 1.0,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        require(variation > 0, f"`variation` must be greater than 0, but got {variation!r}.")
        self.variation = variation
        self.played = 0  # rounds of this batch
        super().__init__(n_arms, horizon=horizon, rng=rng)

    def _tuned(self) -> float:
        self.batch = rexp3_batch(self.n_arms, self.horizon, self.variation)
        return exp3_gamma(self.n_arms, self.batch)

    def probabilities(self) -> list[float]:
        """Return the probabilities, (K,): equal ones in the first round of a batch."""
        if self.played < self.batch:
            return super().probabilities()
        return [1 / self.n_arms] * self.n_arms

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round; start a batch before it if the last one is full."""
        ticket = super().pull(arm, probability=probability)
        if self.played >= self.batch:
            self.played = 0
            self._set_logs([0.0] * self.n_arms)
            for other, each in self.memory.open.items():
                if other != ticket:
                    each.note = None  # its batch has ended
        self.played += 1
        return ticket

    def _learn(self, settled: Round, reward: float) -> None:
        if settled.note is not None:
            super()._learn(settled, reward)

    def withdraw(self, pull: int) -> None:
        opened = self.memory.open.get(pull)
        if opened is not None and opened.note is not None:
            self.played -= 1
        super().withdraw(pull)

    def reset(self, keep: Collection[int] = ()) -> None:
        super().reset(keep)
        self.played = 0


@dataclass(slots=True)
class DriftArm(WeightedArm):
    """Adds the rewards of uniform rounds in this interval."""

    seen: Count = 0
    seen_total: float = 0.0


@BANDITS.register("exp3r")
class Exp3R(Exp3):
    """Exp3 with a drift detector, Exp3.R of Allesiardo & Féraud (2015).

    A share γ of the rounds is drawn uniformly, regardless of the weights. Once each arm has γ H / K
    rewards of such rounds, their means are compared: if another arm beats the one that Exp3 prefers
    by 2 ε, with ε = √(K ln(1 / δ) / (2 γ H)), all weights become equal again. In either case a new
    interval starts. Whether a round was uniform is drawn when it starts, with probability
    (γ / K) / p_k, which is equivalent.

    Args:
        n_arms: K.
        gamma: γ, by default `√(K ln K ln T / T)`, as in their Corollary 1.
        interval: H, by default `10 √(T ln T)`. The article leaves the factor open; with 1 and three
            arms, 2 ε > 1 and the test could never act.
        delta: δ, by default `√(ln T / (K T))`.
        horizon: T.
        rng: for the draws.
    """

    arm_type = DriftArm
    note_shape = (PROBABILITY, bool)
    use = "as Exp3, if changes are clear"
    guarantee = "O(N √(T ln T)) for N changes that its test can detect"

    def __init__(
        self,
        n_arms: int,
        *,
        gamma: float | None = None,
        interval: float | None = None,
        delta: float | None = None,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        require(horizon >= 2, f"`horizon` must be at least 2, but got {horizon!r}.")
        require(
            interval is None or interval > 0,
            f"`interval` must be greater than 0, but got {interval!r}.",
        )
        require(
            delta is None or 0 < delta < 1,
            f"`delta` must lie between 0 and 1, but got {delta!r}.",
        )
        if interval is None:
            interval = 10 * math.sqrt(horizon * math.log(horizon))
        self.interval = interval
        self._delta = delta
        super().__init__(n_arms, gamma=gamma, horizon=horizon, rng=rng)

    def _tuned(self) -> float:
        if self._given_gamma is not None:
            return self._given_gamma
        hardness = self.n_arms * math.log(self.n_arms) * math.log(self.horizon)
        return min(1.0, math.sqrt(hardness / self.horizon))

    @property
    def threshold(self) -> float:
        """2 ε."""
        delta = self._delta
        if delta is None:
            delta = math.sqrt(math.log(self.horizon) / (self.n_arms * self.horizon))
        return 2 * math.sqrt(self.n_arms * math.log(1 / delta) / (2 * self.gamma * self.interval))

    def _start_interval(self) -> None:
        for arm in self.memory.arms:
            arm.seen = 0
            arm.seen_total = 0.0

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round; its note is the probability and whether the round is uniform."""
        ticket = super().pull(arm, probability=probability)
        opened = self.memory.open[ticket]
        probability = opened.note
        uniform = self.rng.random() * probability < self.gamma / self.n_arms
        opened.note = [probability, uniform]
        return ticket

    def _learn(self, settled: Round, reward: float) -> None:
        probability, uniform = settled.note
        self._step(settled.arm, reward, probability)
        if uniform:
            settled.arm.seen += 1
            settled.arm.seen_total += reward
            self._test()

    def _test(self) -> None:
        arms: list[DriftArm] = self.memory.arms
        needed = self.gamma * self.interval / self.n_arms
        if self.n_arms == 1 or min(arm.seen for arm in arms) < needed:
            return
        means = [arm.seen_total / arm.seen for arm in arms]
        preferred = max(range(self.n_arms), key=self._logs().__getitem__)
        if max(means) - means[preferred] >= self.threshold:
            self._set_logs([0.0] * self.n_arms)
        self._start_interval()

    def reset(self, keep: Collection[int] = ()) -> None:
        super().reset(keep)
        self._start_interval()

    def add_arm(self) -> None:
        super().add_arm()
        self._start_interval()
