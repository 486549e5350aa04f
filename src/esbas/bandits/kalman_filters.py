"""Values of arms that learn, tracked by Kalman filters that forget at different speeds: the model of `KalmanThompson`.

The value of arm k changes before each round by c + d_k, with a common change c ~ N(0, r q_c) and an own change d_k ~ N(0, r q_d);
a reward is the value of its arm plus N(0, r). Learners learn less and less, so q = 1 / (1 + f t)² in round t. There is a
filter for every combination of three paces f of the own change and three of the common change, and each is weighted by how
well it predicted the rewards so far. The small functions are the formulas; `esbas.kernels.kalman` compiles them.
"""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas import schema
from esbas.schema import COUNT, Number

Floats = NDArray[np.float64]

PACES = np.array(list(itertools.product((1 / 2, 1 / 8, 1 / 32), (1 / 8, 1 / 32, 1 / 128)))).T  # (2, F): own, common
FILTERS: int = PACES.shape[1]
SMALLEST_NOISE = 1e-12  # of r, in units of the square of the first difference between rewards
LARGEST = 1e100  # of a reward, in the same unit: larger ones count as this
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1e-30, 1e40  # in units of r; no run reaches them


def drift(pace: Any, t: float) -> Any:
    """q: how much values change before round t, in units of the variance of the noise."""
    return 1.0 / (1.0 + pace * t) ** 2


def retention(t: float) -> float:
    """The weight of earlier rounds in round t, for the variance of the noise and for the weights of the filters."""
    return 1.0 - 1.0 / (10.0 + t / 10.0)


def noise(squares: Any, count: float) -> Any:
    """r, the variance of the noise, from squared errors in units of their expectation."""
    return np.maximum(squares / count, SMALLEST_NOISE)


def log_likelihood(error: Any, variance: Any, r: Any, freedom: float) -> Any:
    """The logarithm of Student's density, without what is the same for all filters.

    Args:
        error: e² / S.
        variance: S, the expected squared error in units of r.
        r: the variance of the noise.
        freedom: degrees of freedom.
    """
    return -0.5 * np.log(r * variance) - 0.5 * (freedom + 1.0) * np.log1p(error / (freedom * r))


def doubtful(t: int, seen: int) -> bool:
    """Whether an arm's last reward, in round `seen`, is not among the later half of t rounds."""
    return t + 1 > 2 * seen


def doubted(variance: Any) -> Any:
    """The variance of an arm that has become doubtful."""
    return np.minimum(4.0 * variance + 4.0, LARGEST_VARIANCE)


def standardised(reward: float, origin: float, unit: float) -> float:
    """The distance from the first reward in units of the first distance, which is 0 as long as all rewards are equal."""
    return min(max((reward - origin) / unit, -LARGEST), LARGEST) if unit > 0.0 else 0.0


def first_distance(reward: float, origin: float) -> float:
    """The unit that this reward defines; 0 if it is equal to the first one."""
    return min(abs(reward - origin), 1e308)


def factor(covariance: Floats) -> Floats:
    """L with L Lᵀ = covariance (Cholesky). Where rounding has left less than nothing to an arm, its own part of L is 0."""
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
    """The filters, F of them, over K arms. Rewards are standardised, covariances are in units of r.

    Arm k's row of a covariance is p, S = p_k + 1 is the expected squared error, and a reward at distance e from the mean of arm k
    changes the means by p e / S and the covariance by -p pᵀ / S. An arm without a reward in the later half of the rounds becomes
    doubtful: its variance v becomes 4 v + 4. A new arm has the average mean of the others. Its variance is 4 v + 4 for
    v = 1 + (the variance of their means) / r, so that it is probably tried soon.
    """

    def __init__(self, n_arms: int) -> None:
        self.t = 0  # rewards so far
        self.count = 0.0  # of the rewards, earlier ones discounted
        self.origin = self.unit = 0.0  # the first reward, and the first distance from it
        self.seen = [0] * n_arms  # the round of each arm's last reward, or in which it became doubtful
        self.squares = np.zeros(FILTERS)  # sums of e² / S, discounted like `count`
        self.log_weights = np.zeros(FILTERS)  # relative to the first filter
        self._weights: list[float] | None = None  # computed from these when they are needed
        self.means = np.zeros((FILTERS, n_arms))
        self.covariances = np.tile(np.eye(n_arms), (FILTERS, 1, 1))  # always contiguous, for `variances`

    @property
    def variances(self) -> Floats:
        """(F, K): the diagonals of the covariances, a view. It is not stored: a copy of this object would separate them."""
        return self.covariances.reshape(FILTERS, -1)[:, :: len(self.seen) + 1]

    def observe(self, k: int, reward: float) -> None:
        """Learn from a reward of arm k."""
        if self.t == 0:
            self.origin = reward
        if self.unit == 0.0:
            self.unit = first_distance(reward, self.origin)
        value = standardised(reward, self.origin, self.unit)
        self.t = t = self.t + 1
        keep, covariances, log_weights = retention(t), self.covariances, self.log_weights
        own, common = drift(PACES, t)
        covariances += common[:, None, None]
        variances = self.variances
        variances += own[:, None]
        row = covariances[:, k].copy()  # (F, K)
        variance = row[:, k] + 1.0
        deviation = np.sqrt(variance)
        error = (value - self.means[:, k]) / deviation
        squared = error * error
        r = noise(self.squares, self.count) if t > 1 else noise(squared, 1.0)
        log_weights *= keep
        log_weights += log_likelihood(squared, variance, r, max(self.count, 1.0))
        log_weights -= log_weights[0]
        self._weights = None
        self.count = keep * self.count + 1.0
        self.squares *= keep
        self.squares += squared
        scaled = row / deviation[:, None]
        self.means += scaled * error[:, None]
        covariances -= scaled[:, :, None] * scaled[:, None, :]
        covariances[:, k] = covariances[:, :, k] = row / variance[:, None]  # p - p p_k / S without its rounding error
        self.seen[k] = t
        if doubtful(t, min(self.seen)):
            self._doubt(t)

    def _doubt(self, t: int) -> None:
        for j, seen in enumerate(self.seen):
            if doubtful(t, seen):
                self.variances[:, j] = doubted(self.variances[:, j])
                self.seen[j] = t

    def weights(self) -> list[float]:
        """(F,): positive, with sum 1."""
        if self._weights is None:
            logs = self.log_weights.tolist()
            largest = max(logs)
            weights = [math.exp(log - largest) for log in logs]
            total = sum(weights)
            self._weights = [weight / total for weight in weights]
        return self._weights

    def average(self) -> Floats:
        """(K,): the means, averaged over the filters."""
        return np.asarray(np.dot(self.weights(), self.means))

    def noises(self) -> Floats:
        """(F,): r of each filter; before the first reward, the smallest."""
        return np.asarray(noise(self.squares, max(self.count, 1.0)))

    def draw(self, point: float) -> int:
        """A filter, drawn by its weight; `point` is uniform in [0, 1)."""
        weights, f = self.weights(), 0
        point -= weights[0]
        while point >= 0.0 and f < FILTERS - 1:
            f += 1
            point -= weights[f]
        return f

    def sample(self, f: int, normals: Floats) -> list[float]:
        """(K,): a sample of the standardised values from filter f, after at least one reward; `normals` are (K,)."""
        spread = math.sqrt(noise(self.squares[f], self.count))
        values: list[float] = (self.means[f] + spread * (self.factor(f) @ normals)).tolist()
        return values

    def factor(self, f: int) -> Floats:
        """L with L Lᵀ = the covariance of filter f."""
        try:
            return np.linalg.cholesky(self.covariances[f])
        except np.linalg.LinAlgError:  # singular up to rounding
            return factor(self.covariances[f])

    def add_arm(self) -> None:
        n_arms = len(self.seen) + 1
        means, covariances = np.zeros((FILTERS, n_arms)), np.zeros((FILTERS, n_arms, n_arms))
        means[:, :-1], covariances[:, :-1, :-1] = self.means, self.covariances
        self.seen.append(0)
        self.means, self.covariances = means, covariances
        self.renew([n_arms - 1])

    def remove_arm(self, k: int) -> None:
        """What is known about the other arms stays as it is."""
        del self.seen[k]
        self.means = np.delete(self.means, k, axis=1)
        self.covariances = np.ascontiguousarray(np.delete(np.delete(self.covariances, k, axis=1), k, axis=2))

    def renew(self, arms: list[int]) -> None:
        """These arms, but not all, become new ones, unrelated to the others."""
        known = [k for k in range(len(self.seen)) if k not in arms]
        between = np.minimum(self.means[:, known].var(axis=1) / self.noises(), LARGEST_VARIANCE)  # (F,)
        self.means[:, arms] = self.means[:, known].mean(axis=1, keepdims=True)
        self.covariances[:, arms] = 0.0
        self.covariances[:, :, arms] = 0.0
        self.variances[:, arms] = doubted(1.0 + between)[:, None] if self.t else 1.0
        for k in arms:
            self.seen[k] = self.t

    def state_dict(self) -> dict[str, Any]:
        """Plain data; of the symmetric covariances, the rows up to the diagonal."""
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
        """Restore what `state_dict` returned. A state that does not fit raises an error and changes nothing."""
        where = "the filters of a bandit"
        schema.check(state, STATE, where)
        covariances = _checked(state, where)
        self.t, self.count, self.origin, self.unit = (state[name] for name in ("rounds", "count", "origin", "unit"))
        self.seen = list(state["seen"])
        self.squares, self.log_weights = np.array(state["squares"], np.float64), np.array(state["log_weights"], np.float64)
        self.means, self.covariances = np.array(state["means"], np.float64), covariances
        self._weights = None


_EACH = (Number(min=-1e140, max=1e140),) * FILTERS
STATE = {
    "rounds": Number(min=0, max=2**53, whole=True),
    "count": Number(min=0, max=2**53),
    "origin": float,
    "unit": Number(min=0),
    "seen": [COUNT],
    "squares": (Number(min=0, max=1e220),) * FILTERS,
    "log_weights": _EACH,
    "means": ([_EACH[0]],) * FILTERS,
    "covariances": ([Number(min=-LARGEST_VARIANCE, max=LARGEST_VARIANCE)],) * FILTERS,
}


def _checked(state: dict[str, Any], where: str) -> Floats:
    """Raise an error unless the parts of a state agree; returns its covariances, (F, K, K)."""
    n_arms, t, count = len(state["seen"]), state["rounds"], state["count"]
    schema.require(n_arms > 0 and max(state["seen"]) <= t, "arms were seen in rounds so far", where, seen=state["seen"], rounds=t)
    fits = 1 <= count <= t if t else count == 0
    schema.require(fits, "the discounted count is at least 1 and at most `rounds`", where, count=count, rounds=t)
    sizes = {len(row) for row in state["means"]} | {math.isqrt(2 * len(row)) for row in state["covariances"]}
    whole = all(len(row) == n_arms * (n_arms + 1) // 2 for row in state["covariances"])
    schema.require(whole and sizes == {n_arms}, "every filter has all arms", where, arms=n_arms, sizes=sorted(sizes))
    covariances, below = np.zeros((FILTERS, n_arms, n_arms)), np.tril_indices(n_arms)
    for covariance, row in zip(covariances, state["covariances"], strict=True):
        covariance[below] = row
        covariance.T[below] = row
    variances = covariances.diagonal(axis1=1, axis2=2)  # (F, K)
    fits = bool((variances >= SMALLEST_VARIANCE).all())
    if fits:
        deviations = np.sqrt(variances)
        correlations = covariances / deviations[:, :, None] / deviations[:, None, :]
        fits = bool(np.linalg.eigvalsh(correlations).min() > -1e-6)
    schema.require(fits, "covariances are positive definite", where, arms=n_arms)
    return covariances
