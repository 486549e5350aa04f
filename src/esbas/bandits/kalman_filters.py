"""Kalman filters that track the values of arms that learn: the model of `KalmanThompson`.

The value of arm k changes before each round by c + d_k, with a common change c ~ N(0, r q_c) and an
own change d_k ~ N(0, r q_d); a reward is the value of its arm plus N(0, r). Learners learn less and
less, so q = 1 / (1 + f t)² in round t. There is a filter for every combination of three paces f of
the own change and three of the common change. Each is weighted by how well it predicted the rewards
so far. The small functions are the formulas; `esbas.experiments.kernels.kalman` compiles them.
"""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas._internal import schema
from esbas._internal.schema import COUNT, Number
from esbas.errors import require

Floats = NDArray[np.float64]

OWN_PACES = 1 / 2, 1 / 8, 1 / 32
COMMON_PACES = 1 / 8, 1 / 32, 1 / 128
PACES = np.array(list(itertools.product(OWN_PACES, COMMON_PACES))).T  # (2, F): own, common
FILTERS: int = PACES.shape[1]  # F
SMALLEST_NOISE = 1e-12  # the smallest r, in units of the square of the first distance
LARGEST = 1e100  # larger rewards count as this, in units of the first distance
LARGEST_VARIANCE = 1e40  # in units of r; no run reaches it


def drift(pace: Any, t: float) -> Any:
    """Return q, by how much values change before round t, in units of the variance of the noise."""
    return 1.0 / (1.0 + pace * t) ** 2


def retention(t: float) -> float:
    """Return the weight of earlier rounds in round t.

    It is used for the variance of the noise and for the weights of the filters.
    """
    return 1.0 - 1.0 / (10.0 + t / 10.0)


def noise(squares: Any, count: float) -> Any:
    """Return r, the variance of the noise, from squared errors in units of their expectation."""
    return np.maximum(squares / count, SMALLEST_NOISE)


def log_likelihood(error: Any, variance: Any, r: Any, freedom: float) -> Any:
    """Return the logarithm of Student's density, without what is the same for all filters.

    Args:
        error: e² / S.
        variance: S, the expected squared error in units of r.
        r: the variance of the noise.
        freedom: degrees of freedom.
    """
    return -0.5 * np.log(r * variance) - 0.5 * (freedom + 1.0) * np.log1p(error / (freedom * r))


def doubtful(t: int, seen: int) -> bool:
    """Return whether an arm's last reward, in round `seen`, is in the earlier half of t rounds."""
    return t + 1 > 2 * seen


def doubted(variance: Any) -> Any:
    """Return the variance of an arm that has become doubtful: 4 v + 4."""
    return np.minimum(4.0 * variance + 4.0, LARGEST_VARIANCE)


def standardized(reward: float, origin: float, unit: float) -> float:
    """Return the distance of a reward from the first one, in units of the first distance.

    Args:
        reward: the reward.
        origin: the first reward.
        unit: the first distance from it, 0 as long as all rewards are equal.
    """
    if unit > 0.0:
        return min(max((reward - origin) / unit, -LARGEST), LARGEST)
    return 0.0


def first_distance(reward: float, origin: float) -> float:
    """Return the unit that this reward defines; 0 if it is equal to the first one."""
    return min(abs(reward - origin), 1e308)


def factor(covariance: Floats) -> Floats:
    """Return L with L Lᵀ = covariance (Cholesky).

    Where rounding has left less than nothing to an arm, its own part of L is 0.
    """
    size = len(covariance)
    lower = np.zeros((size, size))
    for j in range(size):
        rest = covariance[j, j]
        for m in range(j):
            rest -= lower[j, m] * lower[j, m]
        lower[j, j] = math.sqrt(rest) if rest > 0.0 else 0.0
        for i in range(j + 1, size):
            rest = covariance[i, j]
            for m in range(j):
                rest -= lower[i, m] * lower[j, m]
            lower[i, j] = rest / lower[j, j] if lower[j, j] > 0.0 else 0.0
    return lower


class KalmanFilters:
    """F filters over K arms. Rewards are standardized, and covariances are in units of r.

    Arm k's row of a covariance is p, and S = p_k + 1 is the expected squared error. A reward at
    distance e from the mean of arm k changes the means by p e / S and the covariance by -p pᵀ / S.
    An arm without a reward in the later half of the rounds becomes doubtful: its variance v becomes
    4 v + 4. A new arm has the average mean of the others. Its variance is 4 v + 4 for
    v = 1 + (the variance of their means) / r, so that it is probably tried soon.
    """

    def __init__(self, n_arms: int) -> None:
        self.t = 0  # rewards so far
        self.count = 0.0  # the number of rewards, earlier ones discounted
        self.origin = 0.0  # the first reward
        self.unit = 0.0  # the first distance from it
        # The round of each arm's last reward, or in which it became doubtful.
        self.seen = [0] * n_arms
        self.squares = np.zeros(FILTERS)  # (F,): sums of e² / S, discounted like `count`
        self.log_weights = np.zeros(FILTERS)  # (F,): relative to the first filter
        self._weights: list[float] | None = None  # (F,): computed when they are needed
        self.means = np.zeros((FILTERS, n_arms))  # (F, K)
        # (F, K, K). They are always contiguous, for `variances`.
        self.covariances = np.tile(np.eye(n_arms), (FILTERS, 1, 1))

    @property
    def variances(self) -> Floats:
        """(F, K): the diagonals of the covariances, a view.

        The view is not stored: in a copy of this object, both would be separate.
        """
        return self.covariances.reshape(FILTERS, -1)[:, :: len(self.seen) + 1]

    def observe(self, k: int, reward: float) -> None:
        """Learn from a reward of arm k."""
        if self.t == 0:
            self.origin = reward
        if self.unit == 0.0:
            self.unit = first_distance(reward, self.origin)
        value = standardized(reward, self.origin, self.unit)
        self.t += 1
        t = self.t
        keep = retention(t)
        covariances = self.covariances

        # All values have changed since the last round.
        own, common = drift(PACES, t)  # (F,) each
        covariances += common[:, None, None]
        variances = self.variances
        variances += own[:, None]

        # How well each filter predicted the reward is its likelihood.
        row = covariances[:, k].copy()  # (F, K): p
        variance = row[:, k] + 1.0  # (F,): S
        deviation = np.sqrt(variance)
        error = (value - self.means[:, k]) / deviation
        squared = error * error
        r = noise(self.squares, self.count) if t > 1 else noise(squared, 1.0)
        log_weights = self.log_weights
        log_weights *= keep
        log_weights += log_likelihood(squared, variance, r, max(self.count, 1.0))
        log_weights -= log_weights[0]
        self._weights = None
        self.count = keep * self.count + 1.0
        self.squares *= keep
        self.squares += squared

        # The reward moves the means and reduces the covariances.
        scaled = row / deviation[:, None]  # (F, K)
        self.means += scaled * error[:, None]
        covariances -= scaled[:, :, None] * scaled[:, None, :]
        exact = row / variance[:, None]  # p - p p_k / S without its rounding error
        covariances[:, k] = exact
        covariances[:, :, k] = exact

        self.seen[k] = t
        if doubtful(t, min(self.seen)):
            self._doubt(t)

    def _doubt(self, t: int) -> None:
        for j, seen in enumerate(self.seen):
            if doubtful(t, seen):
                self.variances[:, j] = doubted(self.variances[:, j])
                self.seen[j] = t

    def weights(self) -> list[float]:
        """Return the weights of the filters, (F,): positive, with sum 1."""
        if self._weights is None:
            logs = self.log_weights.tolist()
            largest = max(logs)
            weights = [math.exp(log - largest) for log in logs]
            total = sum(weights)
            self._weights = [weight / total for weight in weights]
        return self._weights

    def average(self) -> Floats:
        """Return the means, averaged over the filters, (K,)."""
        return np.asarray(np.dot(self.weights(), self.means))

    def noises(self) -> Floats:
        """Return r of each filter, (F,); before the first reward, the smallest."""
        return np.asarray(noise(self.squares, max(self.count, 1.0)))

    def draw(self, point: float) -> int:
        """Draw a filter by its weight; `point` is uniform in [0, 1)."""
        weights = self.weights()
        f = 0
        point -= weights[0]
        while point >= 0.0 and f < FILTERS - 1:
            f += 1
            point -= weights[f]
        return f

    def sample(self, f: int, normals: Floats) -> list[float]:
        """Return a sample of the standardized values from filter f, (K,).

        There must have been a reward.

        Args:
            f: the number of the filter.
            normals: standard normal numbers, (K,).
        """
        spread = math.sqrt(noise(self.squares[f], self.count))
        values: list[float] = (self.means[f] + spread * (self.factor(f) @ normals)).tolist()
        return values

    def factor(self, f: int) -> Floats:
        """Return L with L Lᵀ = the covariance of filter f."""
        try:
            return np.linalg.cholesky(self.covariances[f])
        except np.linalg.LinAlgError:  # singular up to rounding
            return factor(self.covariances[f])

    def add_arm(self) -> None:
        n_arms = len(self.seen) + 1
        means = np.zeros((FILTERS, n_arms))
        covariances = np.zeros((FILTERS, n_arms, n_arms))
        means[:, :-1] = self.means
        covariances[:, :-1, :-1] = self.covariances
        self.seen.append(0)
        self.means = means
        self.covariances = covariances
        self.renew([n_arms - 1])

    def remove_arm(self, k: int) -> None:
        """Remove an arm. What is known about the other arms stays as it is."""
        del self.seen[k]
        self.means = np.delete(self.means, k, axis=1)
        rows = np.delete(self.covariances, k, axis=1)
        self.covariances = np.ascontiguousarray(np.delete(rows, k, axis=2))

    def renew(self, arms: list[int]) -> None:
        """Turn these arms into new ones, unrelated to the others. At least one arm stays."""
        known = [k for k in range(len(self.seen)) if k not in arms]
        between = self.means[:, known].var(axis=1) / self.noises()  # (F,)
        between = np.minimum(between, LARGEST_VARIANCE)
        self.means[:, arms] = self.means[:, known].mean(axis=1, keepdims=True)
        self.covariances[:, arms] = 0.0
        self.covariances[:, :, arms] = 0.0
        self.variances[:, arms] = doubted(1.0 + between)[:, None] if self.t else 1.0
        for k in arms:
            self.seen[k] = self.t

    def state_dict(self) -> dict[str, Any]:
        """Return plain data; of the symmetric covariances, the rows up to the diagonal."""
        below = np.tril_indices(len(self.seen))
        return {
            "rounds": self.t,
            "count": self.count,
            "origin": self.origin,
            "unit": self.unit,
            "seen": list(self.seen),
            "squares": self.squares.tolist(),
            "log_weights": self.log_weights.tolist(),
            "means": self.means.tolist(),
            "covariances": [covariance[below].tolist() for covariance in self.covariances],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        A state that does not fit raises an error and changes nothing.
        """
        schema.check(state, STATE, "the filters of a bandit")
        n_arms = len(state["seen"])
        _check_sizes(state, n_arms)
        below = np.tril_indices(n_arms)
        covariances = np.zeros((FILTERS, n_arms, n_arms))
        for covariance, row in zip(covariances, state["covariances"], strict=True):
            covariance[below] = row
            covariance.T[below] = row
        require(
            bool((covariances.diagonal(axis1=1, axis2=2) > 0.0).all()),
            "The variances of a bandit's filters must be positive: go back to an earlier copy.",
        )
        self.t = state["rounds"]
        self.count = state["count"]
        self.origin = state["origin"]
        self.unit = state["unit"]
        self.seen = list(state["seen"])
        self.squares = np.array(state["squares"], np.float64)
        self.log_weights = np.array(state["log_weights"], np.float64)
        self.means = np.array(state["means"], np.float64)
        self.covariances = covariances
        self._weights = None


_ANY_SIZE = Number(min=-1e140, max=1e140)
STATE = {
    "rounds": Number(min=0, max=2**53, whole=True),
    "count": Number(min=0, max=2**53),
    "origin": float,
    "unit": Number(min=0),
    "seen": [COUNT],
    "squares": (Number(min=0, max=1e220),) * FILTERS,
    "log_weights": (_ANY_SIZE,) * FILTERS,
    "means": ([_ANY_SIZE],) * FILTERS,
    "covariances": ([Number(min=-LARGEST_VARIANCE, max=LARGEST_VARIANCE)],) * FILTERS,
}


def _check_sizes(state: dict[str, Any], n_arms: int) -> None:
    pairs = n_arms * (n_arms + 1) // 2
    for means, covariances in zip(state["means"], state["covariances"], strict=True):
        require(
            len(means) == n_arms and len(covariances) == pairs,
            f"A filter of {n_arms} arms must have {n_arms} means and {pairs} covariances, "
            f"but got {len(means)} and {len(covariances)}: go back to an earlier copy.",
        )
