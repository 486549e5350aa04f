"""Exp3 and Exp3.S: exponential weights, for rewards that an adversary may have set."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

from esbas._internal.schema import Number
from esbas.bandits.bandit import BANDITS, DEFAULT_HORIZON, Rng
from esbas.bandits.memory_bandit import Arm
from esbas.bandits.random_bandit import RandomBandit
from esbas.errors import require


def exp3_gamma(n_arms: float, horizon: float) -> float:
    """Return γ = min(1, √(K ln K / ((e - 1) T))): Corollary 3.2 of Auer et al. (2002b)."""
    return min(1.0, math.sqrt(n_arms * math.log(n_arms) / ((math.e - 1.0) * horizon)))


def exp3s_gamma(n_arms: float, horizon: float, switches: float) -> float:
    """Return γ = min(1, √(K (S ln(K T) + e) / ((e - 1) T))).

    Corollary 8.2 of Auer et al. (2002b).
    """
    hardness = switches * math.log(n_arms * horizon) + math.e
    return min(1.0, math.sqrt(n_arms * hardness / ((math.e - 1.0) * horizon)))


def exp3_gain(gamma: float, n_arms: float, reward: float, probability: float) -> float:
    """Return the increase of the logarithm of the drawn arm's weight: γ r / (K p)."""
    return gamma * reward / (n_arms * probability)


def mixed(gamma: float, n_arms: float, share: float) -> float:
    """Return (1 - γ) w_k / Σ w + γ / K, for an arm with this share of the weights."""
    return (1.0 - gamma) * share + gamma / n_arms


def shares(logs: list[float]) -> list[float]:
    """Return the weights with these logarithms divided by their sum, (K,); nothing overflows."""
    largest = max(logs)
    weights = [math.exp(log - largest) for log in logs]
    total = sum(weights)
    return [weight / total for weight in weights]


def log_mean(logs: list[float]) -> float:
    """Return the logarithm of the mean weight; 0 without weights."""
    if not logs:
        return 0.0
    largest = max(logs)
    weights = [math.exp(log - largest) for log in logs]
    return largest + math.log(sum(weights) / len(weights))


def log_sum(one: float, other: float) -> float:
    """Return ln(exp(one) + exp(other)); nothing overflows."""
    return max(one, other) + math.log1p(math.exp(-abs(one - other)))


@dataclass(slots=True)
class WeightedArm(Arm):
    """Adds the logarithm of the arm's weight; the largest of all arms is 0."""

    log_weight: Annotated[float, Number(max=0)] = 0.0


@BANDITS.register("exp3")
class Exp3(RandomBandit):
    """Draw from p_k = (1 - γ) w_k / Σ w + γ / K; a reward r multiplies w_k by exp(γ r / (K p_k)).

    Auer et al. (2002b). Weights only compare arms. So a new arm starts with the mean weight; after
    a reset, the kept arms keep their weights relative to each other, and the other arms start with
    the mean weight of the kept ones.

    Args:
        n_arms: K.
        gamma: γ, by default `√(K ln K / ((e - 1) T))`.
        horizon: T, used only if `gamma` is not given.
        rng: for the draws.
    """

    arm_type = WeightedArm
    setting = "adversarial rewards"
    use = "nothing is known about the arms; rewards may even be hostile"
    guarantee = "2.63 √(K T ln K) against the best single arm"

    def __init__(
        self,
        n_arms: int,
        *,
        gamma: float | None = None,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, rng=rng)
        require(
            gamma is None or 0 < gamma <= 1,
            f"`gamma` must be greater than 0 and at most 1, but got {gamma!r}.",
        )
        require(horizon >= 1, f"`horizon` must be at least 1, but got {horizon!r}.")
        self._given_gamma = gamma
        self.horizon = horizon
        self.gamma = self._tuned()

    def _tuned(self) -> float:
        """Return γ for the present number of arms."""
        if self._given_gamma is not None:
            return self._given_gamma
        return exp3_gamma(self.n_arms, self.horizon)

    def _logs(self) -> list[float]:
        return [arm.log_weight for arm in self.memory.arms]

    def _set_logs(self, logs: list[float]) -> None:
        largest = max(logs)
        for arm, log in zip(self.memory.arms, logs, strict=True):
            arm.log_weight = log - largest

    def probabilities(self) -> list[float]:
        return [mixed(self.gamma, self.n_arms, share) for share in shares(self._logs())]

    def _step(self, arm: Any, reward: float, probability: float) -> None:
        arm.log_weight += exp3_gain(self.gamma, self.n_arms, reward, probability)
        if arm.log_weight > 0.0:  # otherwise, the largest logarithm is still 0
            self._set_logs(self._logs())

    def reset(self, keep: Collection[int] = ()) -> None:
        super().reset(keep)
        logs = self._logs()
        mean = log_mean([logs[k] for k in keep])
        self._set_logs([log if k in keep else mean for k, log in enumerate(logs)])

    def add_arm(self) -> None:
        mean = log_mean(self._logs())
        super().add_arm()
        self.memory.arms[-1].log_weight = mean
        self.gamma = self._tuned()

    def remove_arm(self, arm: int) -> None:
        super().remove_arm(arm)
        self._set_logs(self._logs())
        self.gamma = self._tuned()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.gamma = self._tuned()


@BANDITS.register("exp3s")
class Exp3S(Exp3):
    """Exp3.S: the weights become w_k exp(γ r / (K p_k)) + (e α / K) Σ w, with the sum before.

    No weight ever becomes negligible, so the best arm may change. Auer et al. (2002b).

    Args:
        n_arms: K.
        gamma: γ, by default `√(K (S ln(K T) + e) / ((e - 1) T))`.
        alpha: α, by default `1 / T`.
        switches: S, the number of stretches of rounds in which the best arm stays the same.
        horizon: T.
        rng: for the draws.
    """

    use = "as Exp3, if the best arm changes"
    guarantee = "O(√(S K T ln(K T))) against any sequence of S stretches"

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
        require(alpha is None or alpha > 0, f"`alpha` must be greater than 0, but got {alpha!r}.")
        require(switches >= 1, f"`switches` must be at least 1, but got {switches!r}.")
        self.alpha = 1 / horizon if alpha is None else alpha
        self.switches = switches
        super().__init__(n_arms, gamma=gamma, horizon=horizon, rng=rng)

    def _tuned(self) -> float:
        if self._given_gamma is not None:
            return self._given_gamma
        return exp3s_gamma(self.n_arms, self.horizon, self.switches)

    def _step(self, arm: Any, reward: float, probability: float) -> None:
        # The logarithm of e α / K · Σ w.
        shared = log_mean(self._logs()) + 1 + math.log(self.alpha)
        arm.log_weight += exp3_gain(self.gamma, self.n_arms, reward, probability)
        self._set_logs([log_sum(log, shared) for log in self._logs()])
