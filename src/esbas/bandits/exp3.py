"""Exp3 and Exp3.S: exponential weights, for rewards that an adversary may have set."""

import math
from collections.abc import Collection
from typing import Any

from esbas.bandits.bandit import DEFAULT_HORIZON, Rng
from esbas.bandits.random_bandit import RandomBandit
from esbas.errors import require


def exp3_gamma(n_arms: float, horizon: float) -> float:
    """Min(1, √(K ln K / ((e - 1) T))): Corollary 3.2 of Auer et al. (2002)."""
    return min(1.0, math.sqrt(n_arms * math.log(n_arms) / ((math.e - 1.0) * horizon)))


def exp3s_gamma(n_arms: float, horizon: float, switches: float) -> float:
    """Min(1, √(K (S ln(K T) + e) / ((e - 1) T))): Corollary 8.2 of Auer et al. (2002)."""
    hardness = switches * math.log(n_arms * horizon) + math.e
    return min(1.0, math.sqrt(n_arms * hardness / ((math.e - 1.0) * horizon)))


def exp3_gain(gamma: float, n_arms: float, reward: float, probability: float) -> float:
    """By how much the logarithm of the drawn arm's weight grows: γ r / (K p)."""
    return gamma * reward / (n_arms * probability)


def mixed(gamma: float, n_arms: float, share: float) -> float:
    """(1 - γ) w_k / Σ w + γ / K for an arm with this share of the weights."""
    return (1.0 - gamma) * share + gamma / n_arms


def shares(logs: list[float]) -> list[float]:
    """(K,): weights given by their logarithms, over their sum; nothing overflows."""
    largest = max(logs)
    weights = [math.exp(log - largest) for log in logs]
    total = sum(weights)
    return [weight / total for weight in weights]


class Exp3(RandomBandit):
    """Draw from p_k = (1 - γ) w_k / Σ w + γ / K; a reward r multiplies w_k by exp(γ r / (K p_k)): Auer et al. (2002b).

    Weights only compare arms. So a new arm starts with the mean weight, and after a reset the arms kept keep their weights
    relative to each other while the others start with the mean weight of those.

    Args:
        n_arms: K.
        gamma: γ; by default √(K ln K / ((e - 1) T)).
        horizon: T, of use without `gamma` alone.
        rng: of the draws.
    """

    def __init__(self, n_arms: int, *, gamma: float | None = None, horizon: int = DEFAULT_HORIZON, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        require(gamma is None or 0 < gamma <= 1, "0 < gamma <= 1", gamma=gamma)
        require(horizon >= 1, "horizon >= 1", horizon=horizon)
        self._given, self.horizon = gamma, horizon
        self._logs = [0.0] * n_arms  # (K,) logarithms of the weights, the largest of them 0
        self.gamma = self._tuned()

    def _tuned(self) -> float:
        """γ for the present number of arms."""
        return exp3_gamma(self.n_arms, self.horizon) if self._given is None else self._given

    def probabilities(self) -> list[float]:
        """(K,)."""
        return [mixed(self.gamma, self.n_arms, share) for share in shares(self._logs)]

    def _step(self, arm: int, reward: float, probability: float) -> None:
        self._logs[arm] += exp3_gain(self.gamma, self.n_arms, reward, probability)
        self._normalise()

    def _normalise(self) -> None:
        largest = max(self._logs)
        self._logs = [log - largest for log in self._logs]

    def _forget(self, keep: Collection[int]) -> None:
        mean = log_mean([self._logs[arm] for arm in keep])
        self._logs = [log if arm in keep else mean for arm, log in enumerate(self._logs)]
        self._normalise()

    def add_arm(self) -> None:
        """One more arm, with the mean weight."""
        super().add_arm()
        self._logs.append(log_mean(self._logs))
        self.gamma = self._tuned()

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        del self._logs[arm]
        self._normalise()
        self.gamma = self._tuned()

    def state_dict(self) -> dict[str, Any]:
        """The memory, the rounds in flight and the weights."""
        return super().state_dict() | {"log_weights": list(self._logs)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._logs = list(state["log_weights"])
        self.gamma = self._tuned()


def log_mean(logs: list[float]) -> float:
    """The logarithm of the mean weight; 0 without weights."""
    if not logs:
        return 0.0
    largest = max(logs)
    return largest + math.log(sum(math.exp(log - largest) for log in logs) / len(logs))


class Exp3S(Exp3):
    """Exp3.S: the weights become w_k exp(γ r / (K p_k)) + (e α / K) Σ w, with the sum before the step: Auer et al. (2002b).

    No weight ever falls far behind, so that the best arm may change.

    Args:
        n_arms: K.
        gamma: γ; by default √(K (S ln(K T) + e) / ((e - 1) T)).
        alpha: α; by default 1 / T.
        switches: S, in how many stretches of rounds the best arm stays the same.
        horizon: T.
        rng: of the draws.
    """

    def __init__(
        self,
        n_arms: int,
        *,
        gamma: float | None = None,
        alpha: float | None = None,
        switches: int = 1,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        require(alpha is None or alpha > 0, "alpha > 0", alpha=alpha)
        require(switches >= 1, "switches >= 1", switches=switches)
        self.alpha, self.switches = 1 / horizon if alpha is None else alpha, switches
        super().__init__(n_arms, gamma=gamma, horizon=horizon, rng=rng)

    def _tuned(self) -> float:
        return exp3s_gamma(self.n_arms, self.horizon, self.switches) if self._given is None else self._given

    def _step(self, arm: int, reward: float, probability: float) -> None:
        shared = log_mean(self._logs) + 1 + math.log(self.alpha)  # of e α / K · Σ w
        self._logs[arm] += exp3_gain(self.gamma, self.n_arms, reward, probability)
        self._logs = [max(log, shared) + math.log1p(math.exp(-abs(log - shared))) for log in self._logs]
        self._normalise()
