"""The values of all arms of an epoch, estimated from the trajectories of all of them: the model of `SharedEvidence`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas import schema
from esbas.bandits.kalman_filters import factor
from esbas.schema import COUNT, AnyOf, Number
from esbas.selectors import evidence_formulas as formulas

Floats = NDArray[np.float64]

LARGEST = 1e100  # larger differences between values count as this: their squares stay finite
NOTHING = 0.0, 0.0, 0.0  # number, mean and squared deviations of no values


class EpochEvidence:
    """The trajectories of an epoch, and what is known from earlier epochs about arms whose policies did not change.

    Attributes:
        arms: (t,): the arm that acted in each trajectory of the epoch.
        values: (t,): their values, as differences to the first value of all.
        log_probs: (t, K): the log-probabilities of their actions under the policies of all arms; -inf where unknown.
        current, older: number, mean and squared deviations of the values of this epoch and of earlier ones. The weight of a value
            is halved in each epoch.
        unchanged: (K,): whether the arm's policy is the one of the previous epoch.
        means, precisions, pulls: (K,): estimates from earlier epochs, valid for arms whose policies did not change since, their
            inverse variances, and the number of the arm's own trajectories in them.
        fitted: the number of trajectories at the last fit.
        estimates: (K,): V. covariance: (K, K): C. effective: (K,): effective sample sizes. All of the last fit.
    """

    def __init__(self, n_arms: int) -> None:
        self.arms: list[int] = []
        self.counts = [0] * n_arms
        self.values: list[float] = []
        self.log_probs: list[list[float]] = []
        self.current = self.older = NOTHING
        self.unchanged = [False] * n_arms
        self.means, self.precisions, self.pulls = [0.0] * n_arms, [0.0] * n_arms, [0] * n_arms
        self.fit()

    @property
    def n_arms(self) -> int:
        return len(self.unchanged)

    @property
    def s2(self) -> float:
        """The variance of all values so far, with weights that are halved in each epoch."""
        return formulas.value_variance(*formulas.merged(*self.older, *self.current))

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
        """Estimate the values from all trajectories so far, and from earlier epochs where policies did not change."""
        self.fitted = len(self.arms)
        self.estimates, self.covariance, self.effective = self._of_this_epoch()
        for k in range(self.n_arms):
            if self.unchanged[k] and self.pulls[k] > 0:
                variance = 1.0 / formulas.limited_precision(self.precisions[k], self.s2, self.pulls[k])
                formulas.condition(self.estimates, self.covariance, k, self.means[k], variance)
        self.factor = factor(self.covariance)

    def _of_this_epoch(self) -> tuple[Floats, Floats, Floats]:
        """V, C and effective sample sizes from the trajectories of this epoch alone."""
        pulls = np.maximum(self.counts, 1.0)
        _, mean, _ = formulas.merged(*self.older, *self.current)
        values = np.array(self.values)  # (t,)
        weights = balance_weights(np.array(self.log_probs).reshape(-1, self.n_arms), pulls)  # (t, K)
        sums = weights.sum(axis=0)
        estimates = np.full(self.n_arms, mean)
        known = sums > 0.0
        estimates[known] = np.einsum("ik,i->k", weights[:, known], values) / sums[known]
        scaled = weights * (values[:, None] - estimates) / np.maximum(sums, 1.0)
        covariance = np.einsum("ik,il->kl", scaled, scaled)  # not a matrix product, whose rounding depends on the threads
        covariance[np.diag_indices(self.n_arms)] += formulas.few_pulls_variance(self.s2, pulls)
        squared = np.einsum("ik,ik->k", weights, weights)
        return estimates, covariance, sums * sums / np.where(known, squared, 1.0)

    def sample(self, normals: Floats) -> Floats:
        """(K,): values drawn from N(V, C), from standard normal numbers, (K,)."""
        return np.asarray(self.estimates + np.einsum("kl,l->k", self.factor, normals))

    def optimistic(self, arm: int, number: int) -> float:
        """U_k before choice `number` + 1."""
        return formulas.optimistic(self.estimates[arm], self.covariance[arm, arm], number)

    def start_epoch(self, unchanged: list[bool]) -> None:
        """Forget the trajectories. What this epoch says about an arm is kept as long as its policy does not change."""
        estimates, covariance, _ = self._of_this_epoch()
        for k in range(self.n_arms):
            if not self.unchanged[k]:
                self.means[k], self.precisions[k], self.pulls[k] = 0.0, 0.0, 0
            if self.counts[k]:
                old = self.means[k], formulas.limited_precision(self.precisions[k], self.s2, self.pulls[k])
                new = float(estimates[k]), 1.0 / float(covariance[k, k])
                self.means[k], self.precisions[k] = formulas.accumulated(*old, *new)
                self.pulls[k] += self.counts[k]
        count, mean, squares = formulas.merged(*self.older, *self.current)
        self.older = count / 2.0, mean, squares / 2.0
        self._forget()
        self.unchanged = unchanged
        self.fit()

    def _forget(self) -> None:
        self.arms, self.values, self.log_probs = [], [], []
        self.counts, self.current = [0] * self.n_arms, NOTHING

    def add_arm(self) -> None:
        """Add an arm about which nothing is known."""
        self.unchanged, self.means, self.precisions = [*self.unchanged, False], [*self.means, 0.0], [*self.precisions, 0.0]
        self.pulls, self.counts = [*self.pulls, 0], [*self.counts, 0]
        self.log_probs = [[*row, -math.inf] for row in self.log_probs]
        self.fit()

    def remove_arm(self, arm: int) -> None:
        """Remove an arm and its trajectories: without its probabilities they are not evidence for others."""
        rows = [*zip(self.arms, self.values, self.log_probs, strict=True)]
        for column in (self.unchanged, self.means, self.precisions, self.pulls):
            del column[arm]
        self._forget()
        for acted, value, log_probs in rows:
            if acted != arm:
                self._append(acted - (acted > arm), value, log_probs[:arm] + log_probs[arm + 1 :])
        self.fit()

    def state_dict(self) -> dict[str, Any]:
        """Plain data. Fits are computed again when it is loaded."""
        return {
            "arms": list(self.arms),
            "values": list(self.values),
            "log_probs": [[None if each == -math.inf else each for each in row] for row in self.log_probs],
            "fitted": self.fitted,
            "older": list(self.older),
            "unchanged": list(self.unchanged),
            "means": list(self.means),
            "precisions": list(self.precisions),
            "pulls": list(self.pulls),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "EpochEvidence":
        """The evidence that `state_dict` describes. A state that does not fit raises an error."""
        where = "the evidence of an epoch"
        schema.check(state, STATE, where)
        n_arms, t = len(state["unchanged"]), len(state["arms"])
        lengths = [len(state[name]) for name in ("means", "precisions", "pulls")] + [len(row) for row in state["log_probs"]]
        schema.require(
            n_arms > 0 and set(lengths) <= {n_arms}, "there is one number per arm", where, arms=n_arms, found=lengths[:8]
        )
        fits = t == len(state["values"]) == len(state["log_probs"]) and state["fitted"] <= t
        schema.require(fits, "there are a value and log-probabilities per trajectory", where, trajectories=t)
        count, mean, squares = map(float, state["older"])
        schema.require(squares <= 1e220 * count, "squares are those of values", where, older=state["older"])
        estimates = zip(state["precisions"], state["pulls"], strict=True)
        fits = all(precision >= 1e-220 if pulls else precision == 0 for precision, pulls in estimates)
        schema.require(fits, "estimates have pulls and a precision", where, pulls=state["pulls"])
        acted = all(k < n_arms and row[k] is not None for k, row in zip(state["arms"], state["log_probs"], strict=True))
        schema.require(acted, "the arm that acted has a log-probability", where, arms=n_arms)
        found = cls(n_arms)
        found.older = count, mean, squares
        found.unchanged, found.means = list(state["unchanged"]), [*map(float, state["means"])]
        found.precisions, found.pulls = [*map(float, state["precisions"])], list(state["pulls"])
        for i, (arm, value) in enumerate(zip(state["arms"], state["values"], strict=True)):
            if i == state["fitted"]:
                found.fit()
            log_probs = [-math.inf if each is None else float(each) for each in state["log_probs"][i]]
            found._append(arm, float(value), log_probs)
        if state["fitted"] == t:
            found.fit()
        return found


def balance_weights(log_probs: Floats, pulls: Floats) -> Floats:
    """w_ik = p_ik / Σ_j (n_j / t) p_ij, (t, K), from log-probabilities, (t, K), and n_j >= 1, (K,). At most t / n_k."""
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
