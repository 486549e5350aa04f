"""Exp3 with restarts: at set times (Rexp3), or when it seems wrong about the best arm (Exp3.R)."""

import math
from collections.abc import Collection
from typing import Any

from esbas.bandits.bandit import DEFAULT_HORIZON, Rng
from esbas.bandits.exp3 import Exp3, exp3_gamma
from esbas.errors import require


def rexp3_batch(n_arms: float, horizon: float, variation: float) -> int:
    """⌈(K ln K)^(1/3) (T / V)^(2/3)⌉; 1 for a single arm."""
    return max(math.ceil(math.pow(n_arms * math.log(n_arms), 1.0 / 3.0) * math.pow(horizon / variation, 2.0 / 3.0)), 1)


class Rexp3(Exp3):
    """Exp3 that starts anew every Δ = ⌈(K ln K)^(1/3) (T / V)^(2/3)⌉ rounds: Besbes, Gur & Zeevi (2014).

    γ = √(K ln K / ((e - 1) Δ)). A reward that arrives when its batch of rounds is over counts for `means` alone.

    Args:
        n_arms: K.
        variation: V, by how much the arms' expectations change in all within the horizon.
        horizon: T.
        rng: of the draws.
    """

    def __init__(self, n_arms: int, *, variation: float = 1.0, horizon: int = DEFAULT_HORIZON, rng: Rng = None) -> None:
        require(variation > 0, "variation > 0", variation=variation)
        self.variation, self._played = variation, 0
        super().__init__(n_arms, horizon=horizon, rng=rng)

    def _tuned(self) -> float:
        self.batch = rexp3_batch(self.n_arms, self.horizon, self.variation)
        return exp3_gamma(self.n_arms, self.batch)

    def probabilities(self) -> list[float]:
        """(K,): uniform in the first round of a batch."""
        return super().probabilities() if self._played < self.batch else [1 / self.n_arms] * self.n_arms

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round, and before it a batch if the last one is full."""
        ticket = super().pull(arm, probability=probability)
        if self._played >= self.batch:
            self._played, self._logs = 0, [0.0] * self.n_arms
            self._open = {ticket: self._open[ticket]}
        self._played += 1
        return ticket

    def withdraw(self, pull: int) -> None:
        """Undo a pull."""
        self._played -= pull in self._open
        super().withdraw(pull)

    def _forget(self, keep: Collection[int]) -> None:
        super()._forget(keep)
        self._played = 0

    def state_dict(self) -> dict[str, Any]:
        """That of Exp3, and the rounds of the batch so far."""
        return super().state_dict() | {"played": self._played}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._played = state["played"]


class Exp3R(Exp3):
    """Exp3 with a drift detector, Exp3.R of Allesiardo & Féraud (2015).

    A share γ of the rounds is drawn uniformly, whatever the weights. Once each arm has γ H / K rewards of such rounds, their
    means are compared: if another arm beats the one that Exp3 prefers by 2 ε, with ε = √(K ln(1 / δ) / (2 γ H)), all weights
    become equal again. In any case the rewards are then counted anew. Whether a round was uniform is drawn when it starts, with
    probability (γ / K) / p_k, which comes to the same.

    Args:
        n_arms: K.
        gamma: γ; by default √(K ln K ln T / T), as in their Corollary 1.
        interval: H; by default 10 √(T ln T). They leave the factor open; with 1 and three arms, 2 ε > 1: the test is idle.
        delta: δ; by default √(ln T / (K T)).
        horizon: T.
        rng: of the draws.
    """

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
        require(horizon >= 2, "horizon >= 2", horizon=horizon)
        require(interval is None or interval > 0, "interval > 0", interval=interval)
        require(delta is None or 0 < delta < 1, "0 < delta < 1", delta=delta)
        self.interval = 10 * math.sqrt(horizon * math.log(horizon)) if interval is None else interval
        self._delta = delta
        super().__init__(n_arms, gamma=gamma, horizon=horizon, rng=rng)
        self._uniform: set[int] = set()  # tickets of rounds that were drawn uniformly
        self._clear()

    def _tuned(self) -> float:
        gamma = math.sqrt(self.n_arms * math.log(self.n_arms) * math.log(self.horizon) / self.horizon)
        return min(1.0, gamma) if self._given is None else self._given

    @property
    def threshold(self) -> float:
        """2 ε."""
        delta = math.sqrt(math.log(self.horizon) / (self.n_arms * self.horizon)) if self._delta is None else self._delta
        return 2 * math.sqrt(self.n_arms * math.log(1 / delta) / (2 * self.gamma * self.interval))

    def _clear(self) -> None:
        self._seen, self._sums = [0] * self.n_arms, [0.0] * self.n_arms  # (K,) uniform rewards of this interval

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round."""
        ticket = super().pull(arm, probability=probability)
        if self.rng.random() * self.probability(ticket) < self.gamma / self.n_arms:
            self._uniform.add(ticket)
        return ticket

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        super()._learn(arm, reward, ticket)
        if ticket in self._uniform:
            self._uniform.remove(ticket)
            self._seen[arm] += 1
            self._sums[arm] += reward
            self._test()

    def _test(self) -> None:
        if self.n_arms == 1 or min(self._seen) < self.gamma * self.interval / self.n_arms:
            return
        means = [total / seen for total, seen in zip(self._sums, self._seen, strict=True)]
        presumed = max(range(self.n_arms), key=self._logs.__getitem__)
        if max(means) - means[presumed] >= self.threshold:
            self._logs = [0.0] * self.n_arms
        self._clear()

    def withdraw(self, pull: int) -> None:
        """Undo a pull."""
        super().withdraw(pull)
        self._uniform.discard(pull)

    def _forget(self, keep: Collection[int]) -> None:
        super()._forget(keep)
        self._uniform.clear()
        self._clear()

    def add_arm(self) -> None:
        """One more arm; the interval starts anew."""
        super().add_arm()
        self._clear()

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        del self._seen[arm], self._sums[arm]
        self._uniform &= self._open.keys()

    def state_dict(self) -> dict[str, Any]:
        """That of Exp3, and the uniform rewards of the interval."""
        detector = {"seen": list(self._seen), "sums": list(self._sums), "uniform": sorted(self._uniform)}
        return super().state_dict() | detector

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._seen, self._sums, self._uniform = list(state["seen"]), list(state["sums"]), set(state["uniform"])
