"""CORRAL: mirror descent with a log barrier over algorithms that learn."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from esbas._internal.schema import Number
from esbas.bandits.bandit import BANDITS, DEFAULT_HORIZON, Rng
from esbas.bandits.exp3 import mixed
from esbas.bandits.memory_bandit import Arm
from esbas.bandits.random_bandit import RandomBandit
from esbas.errors import require


def log_barrier_multiplier(
    weights: Sequence[float], rates: Sequence[float], losses: Sequence[float]
) -> float:
    """Return the λ with Σ 1 / (1 / w_i + η_i (l_i - λ)) = 1.

    It lies between the smallest and the largest loss. One over the sum is concave in λ, so Newton's
    method needs few steps. A step that leaves the bracket is replaced by bisection.

    Args:
        weights: w.
        rates: η.
        losses: l.
    """
    low = min(losses)
    high = max(losses)
    guess = low
    for _ in range(200):
        total = 0.0
        slope = 0.0
        for i in range(len(weights)):
            inverse = 1.0 / weights[i] + rates[i] * (losses[i] - guess)
            if inverse <= 0.0:  # the guess is beyond the pole: too large
                total = math.inf
                break
            total += 1.0 / inverse
            slope += rates[i] / (inverse * inverse)
        if total > 1.0:
            high = guess
        else:
            low = guess
        following = high
        if total < math.inf:
            following = guess + total * (1.0 - total) / slope  # a step of Newton's method
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - guess) <= 1e-15 * max(abs(guess), 1.0):
            break
        guess = following
    return guess


POSITIVE = Number(min=1e-300)


@dataclass(slots=True)
class CorralArm(Arm):
    """Adds what mirror descent keeps of an arm."""

    weight: Annotated[float, POSITIVE] = 0.0
    rate: Annotated[float, POSITIVE] = 0.0  # η
    bound: Annotated[float, POSITIVE] = 0.0  # ρ


@BANDITS.register("corral")
class Corral(RandomBandit):
    """Draw from p = (1 - γ) w + γ / K; the loss l_i = (1 - r) / p_i of the drawn arm moves w.

    1 / w_i grows by η_i (l_i - λ), with λ such that Σ w = 1. If 1 / p_i exceeds its bound ρ_i, then
    ρ_i becomes 2 / p_i and the arm learns faster, η_i *= β > 1: an arm that starts badly and then
    learns can come back. Weights only compare arms: for resets see Exp3. Agarwal et al. (2017).

    Args:
        n_arms: K.
        eta: the first η, by default `√(K / T)`.
        horizon: T; γ = 1 / T and β = exp(1 / ln T).
        rng: for the draws.
    """

    arm_type = CorralArm
    setting = "learning arms"
    use = "algorithms that learn, each with its own guarantee"
    guarantee = "about that of the best algorithm, if they stay stable when they are seldom played"

    def __init__(
        self,
        n_arms: int,
        *,
        eta: float | None = None,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, rng=rng)
        require(horizon >= 2, f"`horizon` must be at least 2, but got {horizon!r}.")
        require(eta is None or eta > 0, f"`eta` must be greater than 0, but got {eta!r}.")
        self.horizon = horizon
        self._eta = eta
        self.gamma = 1 / horizon
        self.beta = math.exp(1 / math.log(horizon))
        for arm in self.memory.arms:
            self._start(arm, 1 / n_arms)

    def _start(self, arm: CorralArm, weight: float) -> None:
        arm.weight = weight
        arm.bound = 2.0 * self.n_arms
        if self._eta is None:
            arm.rate = math.sqrt(self.n_arms / self.horizon)
        else:
            arm.rate = self._eta

    @property
    def rates(self) -> list[float]:
        """(K,): η."""
        return [arm.rate for arm in self.memory.arms]

    @property
    def bounds(self) -> list[float]:
        """(K,): ρ."""
        return [arm.bound for arm in self.memory.arms]

    def _weights(self) -> list[float]:
        return [arm.weight for arm in self.memory.arms]

    def _set_weights(self, weights: list[float]) -> None:
        total = sum(weights)
        for arm, weight in zip(self.memory.arms, weights, strict=True):
            arm.weight = weight / total

    def probabilities(self) -> list[float]:
        return [mixed(self.gamma, self.n_arms, weight) for weight in self._weights()]

    def _step(self, arm: Any, reward: float, probability: float) -> None:
        arm_loss = (1.0 - reward) / probability
        weights = self._weights()
        rates = self.rates
        losses = [arm_loss if each is arm else 0.0 for each in self.memory.arms]
        multiplier = log_barrier_multiplier(weights, rates, losses)
        moved = []
        for weight, rate, loss in zip(weights, rates, losses, strict=True):
            moved.append(1.0 / (1.0 / weight + rate * (loss - multiplier)))
        self._set_weights(moved)
        for each, chance in zip(self.memory.arms, self.probabilities(), strict=True):
            if 1.0 / chance > each.bound:
                each.bound = 2.0 / chance
                each.rate *= self.beta

    def reset(self, keep: Collection[int] = ()) -> None:
        super().reset(keep)
        if keep:
            weights = self._weights()
            mean = sum(weights[k] for k in keep) / len(keep)
        else:
            mean = 1.0
        for k, arm in enumerate(self.memory.arms):
            if k not in keep:
                self._start(arm, mean)
        self._set_weights(self._weights())

    def add_arm(self) -> None:
        """Add an arm, which starts with the mean weight."""
        super().add_arm()
        self._start(self.memory.arms[-1], 1 / (self.n_arms - 1))
        self._set_weights(self._weights())

    def remove_arm(self, arm: int) -> None:
        super().remove_arm(arm)
        self._set_weights(self._weights())
