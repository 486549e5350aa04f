"""The values of all arms of an epoch, estimated from the trajectories of all of them.

This is the model of `SharedEvidence`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas._internal import schema
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.bandits.kalman_filters import factor
from esbas.errors import require
from esbas.selectors import evidence_formulas as formulas

Floats = NDArray[np.float64]

LARGEST = 1e100  # larger differences between values count as this: their squares stay finite
NOTHING = (0.0, 0.0, 0.0)  # number, mean and squared deviations of no values


class EpochEvidence:
    """The trajectories of an epoch, and estimates of earlier epochs for arms that did not change.

    Attributes:
        arms: (t,): the arm that acted in each trajectory of the epoch.
        counts: (K,): the number of trajectories in which each arm acted.
        values: (t,): their values, as differences to the first value of all.
        log_probs: (t, K): the log-probabilities of their actions under the policies of all arms;
            -inf where unknown.
        current: number, mean and squared deviations of the values of this epoch.
        older: the same of earlier epochs. The weight of a value is halved in each epoch.
        unchanged: (K,): whether the arm's policy is the one of the previous epoch.
        means: (K,): estimates from earlier epochs, for arms whose policies did not change since.
        precisions: (K,): their inverse variances.
        pulls: (K,): the number of the arm's own trajectories in them.
        fitted: the number of trajectories at the last fit.
        estimates: (K,): V of the last fit.
        covariance: (K, K): C of the last fit.
        effective: (K,): effective sample sizes of the last fit.
    """

    def __init__(self, n_arms: int) -> None:
        self.arms: list[int] = []
        self.counts = [0] * n_arms
        self.values: list[float] = []
        self.log_probs: list[list[float]] = []
        self.current = NOTHING
        self.older = NOTHING
        self.unchanged = [False] * n_arms
        self.means = [0.0] * n_arms
        self.precisions = [0.0] * n_arms
        self.pulls = [0] * n_arms
        self.fit()

    @property
    def n_arms(self) -> int:
        return len(self.unchanged)

    @property
    def s2(self) -> float:
        """The variance of all values so far, with weights that are halved in each epoch."""
        return formulas.value_variance(*self._all_values())

    def _all_values(self) -> tuple[float, float, float]:
        """Return number, mean and squared deviations of all values so far."""
        return formulas.merged(*self.older, *self.current)

    def add(self, arm: int, value: float, log_probs: list[float]) -> None:
        """Add a trajectory. `log_probs[arm]` is finite."""
        self._append(arm, min(max(value, -LARGEST), LARGEST), log_probs)
        if len(self.arms) >= formulas.following_fit(self.fitted) or self.counts[arm] == 1:
            self.fit()

    def _append(self, arm: int, value: float, log_probs: list[float]) -> None:
        self.arms.append(arm)
        self.counts[arm] += 1
        self.values.append(value)
        self.log_probs.append(log_probs)
        self.current = formulas.merged(*self.current, 1.0, value, 0.0)

    def fit(self) -> None:
        """Estimate the values from all trajectories so far.

        Where policies did not change, estimates of earlier epochs count, too.
        """
        self.fitted = len(self.arms)
        self.estimates, self.covariance, self.effective = self._of_this_epoch()
        for k in range(self.n_arms):
            if self.unchanged[k] and self.pulls[k] > 0:
                variance = 1.0 / self._limited_precision(k)
                formulas.condition(self.estimates, self.covariance, k, self.means[k], variance)
        self.factor = factor(self.covariance)

    def _limited_precision(self, k: int) -> float:
        return formulas.limited_precision(self.precisions[k], self.s2, self.pulls[k])

    def _of_this_epoch(self) -> tuple[Floats, Floats, Floats]:
        """Return V, C and effective sample sizes from the trajectories of this epoch alone."""
        _, mean, _ = self._all_values()
        pulls = np.maximum(self.counts, 1.0)  # (K,)
        values = np.array(self.values)  # (t,)
        log_probs = np.array(self.log_probs).reshape(-1, self.n_arms)  # (t, K)
        weights = balance_weights(log_probs, pulls)  # (t, K)
        sums = weights.sum(axis=0)  # (K,)
        known = sums > 0.0
        estimates = np.full(self.n_arms, mean)
        estimates[known] = np.einsum("ik,i->k", weights[:, known], values) / sums[known]
        scaled = weights * (values[:, None] - estimates) / np.maximum(sums, 1.0)  # (t, K)
        # `einsum` instead of a matrix product, whose rounding depends on the number of threads.
        covariance = np.einsum("ik,il->kl", scaled, scaled)
        covariance[np.diag_indices(self.n_arms)] += formulas.few_pulls_variance(self.s2, pulls)
        squared = np.einsum("ik,ik->k", weights, weights)
        effective = sums * sums / np.where(known, squared, 1.0)
        return estimates, covariance, effective

    def sample(self, normals: Floats) -> Floats:
        """Return values drawn from N(V, C), (K,), from standard normal numbers, (K,)."""
        return np.asarray(self.estimates + np.einsum("kl,l->k", self.factor, normals))

    def optimistic(self, arm: int, number: int) -> float:
        """Return U_k before choice `number` + 1."""
        return formulas.optimistic(self.estimates[arm], self.covariance[arm, arm], number)

    def start_epoch(self, unchanged: list[bool]) -> None:
        """Forget the trajectories.

        The estimate of an arm in this epoch is kept as long as its policy does not change.

        Args:
            unchanged: (K,): whether the arm's policy is the one of this epoch.
        """
        estimates, covariance, _ = self._of_this_epoch()
        for k in range(self.n_arms):
            if not self.unchanged[k]:
                self.means[k] = 0.0
                self.precisions[k] = 0.0
                self.pulls[k] = 0
            if self.counts[k]:
                estimate = float(estimates[k])
                precision = 1.0 / float(covariance[k, k])
                self.means[k], self.precisions[k] = formulas.accumulated(
                    self.means[k], self._limited_precision(k), estimate, precision
                )
                self.pulls[k] += self.counts[k]
        count, mean, squares = self._all_values()
        self.older = (count / 2.0, mean, squares / 2.0)
        self._forget()
        self.unchanged = unchanged
        self.fit()

    def _forget(self) -> None:
        self.arms = []
        self.values = []
        self.log_probs = []
        self.counts = [0] * self.n_arms
        self.current = NOTHING

    def add_arm(self) -> None:
        """Add an arm about which nothing is known."""
        self.unchanged.append(False)
        self.means.append(0.0)
        self.precisions.append(0.0)
        self.pulls.append(0)
        self.counts.append(0)
        for row in self.log_probs:
            row.append(-math.inf)
        self.fit()

    def remove_arm(self, arm: int) -> None:
        """Remove an arm and its trajectories.

        Without the probabilities of the arm, they are not evidence for others.
        """
        trajectories = list(zip(self.arms, self.values, self.log_probs, strict=True))
        del self.unchanged[arm]
        del self.means[arm]
        del self.precisions[arm]
        del self.pulls[arm]
        self._forget()
        for acted, value, log_probs in trajectories:
            if acted != arm:
                others = log_probs[:arm] + log_probs[arm + 1 :]
                self._append(acted - 1 if acted > arm else acted, value, others)
        self.fit()

    def state_dict(self) -> dict[str, Any]:
        """Return plain data. Fits are computed again when it is loaded."""
        return {
            "arms": list(self.arms),
            "values": list(self.values),
            "log_probs": [_plain(row) for row in self.log_probs],
            "fitted": self.fitted,
            "older": list(self.older),
            "unchanged": list(self.unchanged),
            "means": list(self.means),
            "precisions": list(self.precisions),
            "pulls": list(self.pulls),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "EpochEvidence":
        """Return the evidence that `state_dict` describes.

        A state that does not fit raises an error.
        """
        schema.check(state, STATE, "the evidence of an epoch")
        _check_sizes(state)
        found = cls(len(state["unchanged"]))
        count, mean, squares = state["older"]
        found.older = (float(count), float(mean), float(squares))
        found.unchanged = list(state["unchanged"])
        found.means = [float(each) for each in state["means"]]
        found.precisions = [float(each) for each in state["precisions"]]
        found.pulls = list(state["pulls"])
        trajectories = zip(state["arms"], state["values"], state["log_probs"], strict=True)
        for arm, value, row in trajectories:
            if len(found.arms) == state["fitted"]:
                found.fit()
            found._append(arm, float(value), _from_plain(row))
        if len(found.arms) == state["fitted"]:
            found.fit()
        return found


def balance_weights(log_probs: Floats, pulls: Floats) -> Floats:
    """Return w_ik = p_ik / Σ_j (n_j / t) p_ij, (t, K). They are at most t / n_k.

    Args:
        log_probs: ln p_ik, (t, K).
        pulls: n_j >= 1, (K,).
    """
    ratios = np.exp(log_probs - log_probs.max(axis=1, keepdims=True, initial=-math.inf))
    mixture = np.einsum("ik,k->i", ratios, pulls)
    return np.asarray(ratios * (len(ratios) / mixture)[:, None])


_LARGE = Number(min=-1e110, max=1e110)
STATE = {
    "arms": [COUNT],
    "values": [Number(min=-LARGEST, max=LARGEST)],
    "log_probs": [[AnyOf(Number(min=-1e300, max=1e300), None)]],
    "fitted": COUNT,
    "older": (Number(min=0, max=2**53), _LARGE, Number(min=0, max=1e210)),
    "unchanged": [bool],
    "means": [_LARGE],
    "precisions": [Number(min=0, max=1e250)],
    "pulls": [Number(min=0, max=2**53, whole=True)],
}


def _check_sizes(state: dict[str, Any]) -> None:
    n_arms = len(state["unchanged"])
    per_arm = [state["means"], state["precisions"], state["pulls"], *state["log_probs"]]
    require(
        n_arms > 0 and all(len(each) == n_arms for each in per_arm),
        "The evidence of an epoch must have one number per arm, but its lists have different "
        "lengths: go back to an earlier copy.",
    )
    trajectories = len(state["arms"])
    values = len(state["values"])
    rows = len(state["log_probs"])
    require(
        trajectories == values == rows,
        "The evidence of an epoch must have a value and log-probabilities per trajectory, but got "
        f"{values} and {rows} for {trajectories} trajectories: go back to an earlier copy.",
    )
    largest = max(state["arms"], default=0)
    require(
        largest < n_arms,
        "The evidence of an epoch must have the arm of every trajectory, but has "
        f"{n_arms} arms and a trajectory of arm {largest}: go back to an earlier copy.",
    )
    for precision, pulls in zip(state["precisions"], state["pulls"], strict=True):
        require(
            precision > 0 or pulls == 0,  # `fit` divides by the precision
            "The evidence of an epoch must have a precision where there were pulls, but one is 0: "
            "go back to an earlier copy.",
        )


def _plain(log_probs: list[float]) -> list[float | None]:
    """Return log-probabilities with None instead of -inf, which JSON does not have."""
    return [None if each == -math.inf else each for each in log_probs]


def _from_plain(log_probs: list[float | None]) -> list[float]:
    return [-math.inf if each is None else float(each) for each in log_probs]
