"""CORRAL: mirror descent with a log barrier over algorithms that learn."""

import math
from collections.abc import Collection, Sequence
from typing import Any

from esbas.bandits.bandit import DEFAULT_HORIZON, Rng
from esbas.bandits.exp3 import mixed
from esbas.bandits.random_bandit import RandomBandit
from esbas.errors import require


def log_barrier_multiplier(weights: Sequence[float], rates: Sequence[float], losses: Sequence[float]) -> float:
    """The λ between the smallest and the largest loss with Σ 1 / (1 / w_i + η_i (l_i - λ)) = 1.

    One over the sum is concave in λ: Newton's method on it needs a few steps; where one leaves the bracket, bisection goes on.
    """
    low, high = min(losses), max(losses)
    guess = low
    for _ in range(200):
        total, slope = 0.0, 0.0
        for i in range(len(weights)):
            inverse = 1.0 / weights[i] + rates[i] * (losses[i] - guess)
            if inverse <= 0.0:  # beyond the pole: too large
                total = math.inf
                break
            total += 1.0 / inverse
            slope += rates[i] / (inverse * inverse)
        if total > 1.0:
            high = guess
        else:
            low = guess
        newton = guess + total * (1.0 - total) / slope if total < math.inf else high
        following = newton if low < newton < high else (low + high) / 2.0
        if abs(following - guess) <= 1e-15 * max(abs(guess), 1.0):
            break
        guess = following
    return guess


class Corral(RandomBandit):
    """Draw from p = (1 - γ) w + γ / K; the loss l_i = (1 - r) / p_i of the drawn arm moves w: Agarwal et al. (2017).

    1 / w_i grows by η_i (l_i - λ), with λ such that Σ w = 1. An arm whose 1 / p_i exceeds its bound ρ_i gets ρ_i = 2 / p_i and
    learns faster, η_i *= β > 1: so an arm that starts badly and then learns can come back. Weights only compare arms: on resets
    see Exp3.

    Args:
        n_arms: K.
        eta: the first η; by default √(K / T).
        horizon: T; γ = 1 / T and β = exp(1 / ln T).
        rng: of the draws.
    """

    def __init__(self, n_arms: int, *, eta: float | None = None, horizon: int = DEFAULT_HORIZON, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        require(horizon >= 2, "horizon >= 2", horizon=horizon)
        require(eta is None or eta > 0, "eta > 0", eta=eta)
        self.horizon, self._eta = horizon, eta
        self.gamma, self.beta = 1 / horizon, math.exp(1 / math.log(horizon))
        self._weights = [1 / n_arms] * n_arms  # (K,)
        self.rates, self.bounds = [self._first_rate()] * n_arms, [2.0 * n_arms] * n_arms  # (K,) η and ρ

    def _first_rate(self) -> float:
        return math.sqrt(self.n_arms / self.horizon) if self._eta is None else self._eta

    def probabilities(self) -> list[float]:
        """(K,)."""
        return [mixed(self.gamma, self.n_arms, weight) for weight in self._weights]

    def _step(self, arm: int, reward: float, probability: float) -> None:
        losses = [0.0] * self.n_arms
        losses[arm] = (1.0 - reward) / probability
        level = log_barrier_multiplier(self._weights, self.rates, losses)
        columns = zip(self._weights, self.rates, losses, strict=True)
        self._set_weights([1.0 / (1.0 / weight + rate * (loss - level)) for weight, rate, loss in columns])
        for k, chance in enumerate(self.probabilities()):
            if 1.0 / chance > self.bounds[k]:
                self.bounds[k] = 2.0 / chance
                self.rates[k] *= self.beta

    def _set_weights(self, weights: list[float]) -> None:
        total = sum(weights)
        self._weights = [weight / total for weight in weights]

    def _forget(self, keep: Collection[int]) -> None:
        mean = sum(self._weights[k] for k in keep) / len(keep) if keep else 1.0
        for k in set(range(self.n_arms)) - set(keep):
            self._weights[k], self.rates[k], self.bounds[k] = mean, self._first_rate(), 2.0 * self.n_arms
        self._set_weights(self._weights)

    def add_arm(self) -> None:
        """One more arm, with the mean weight."""
        super().add_arm()
        self._set_weights([*self._weights, 1 / (self.n_arms - 1)])
        self.rates.append(self._first_rate())
        self.bounds.append(2.0 * self.n_arms)

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        del self._weights[arm], self.rates[arm], self.bounds[arm]
        self._set_weights(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """The memory, the rounds in flight, weights, rates and bounds."""
        columns = {"weights": self._weights, "rates": self.rates, "bounds": self.bounds}
        return super().state_dict() | {name: list(column) for name, column in columns.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._weights, self.rates, self.bounds = list(state["weights"]), list(state["rates"]), list(state["bounds"])
