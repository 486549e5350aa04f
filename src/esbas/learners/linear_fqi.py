"""Fitted Q iteration (Ernst et al., 2005) with one linear function per action: a batch learner for any discrete actions.

The formulas are plain functions. The learner calls them directly; compiled experiments are tested against them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas import schema
from esbas.columns import Columns
from esbas.errors import require
from esbas.learners.constant import Constant
from esbas.learners.cursor import DataCursor
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.schema import AnyOf, ArrayOf
from esbas.spaces import Discrete
from esbas.trajectory import TrajectorySet

Floats = NDArray[np.floating]  # float64 throughout
FeatureMap = Callable[[Any], Floats]


def best_values(weights: Floats, following: Floats) -> Floats:
    """max_a' w_a' · φ' for every row φ' of `following`, (N,)."""
    values = following @ weights.T  # (N, A)
    best = values[:, 0].copy()
    for action in range(1, weights.shape[0]):
        best = np.maximum(best, values[:, action])
    return best


def fitted_q(
    inverses: Floats,  # (A, d, d): of Σ φ φᵀ + ridge, over the steps with each action
    moments: Floats,  # (A, d): Σ φ r
    features: Floats,  # (N, d): of the steps that do not terminate, ordered by action
    following: Floats,  # (N, d): of the next observations
    starts: NDArray[np.int64],  # (A + 1,): the steps with action a are starts[a] .. starts[a + 1] - 1
    gamma: float,
    tolerance: float,
    max_iterations: int,
) -> Floats:
    """Iterate w_a = argmin Σ (w·φ - r - γ max_a' w_a'·φ')² + ridge |w|², all actions at once, from 0 until |Δw| <= tolerance."""
    weights = np.zeros_like(moments)  # (A, d)
    for _ in range(max_iterations):
        best = best_values(weights, following)  # (N,)
        change = 0.0
        updated = np.empty_like(weights)
        for a in range(len(moments)):
            rows = slice(starts[a], starts[a + 1])
            updated[a] = inverses[a] @ (moments[a] + gamma * (features[rows].T @ best[rows]))
            change += np.sum((updated[a] - weights[a]) ** 2)
        weights = updated
        if change <= tolerance * tolerance:
            break
    return weights


def paper_exploration(epoch: int) -> float:
    """The paper's exploration: 0.6^β in epoch β, so that epoch 0 is random."""
    return float(0.6**epoch)


class LinearFQI:
    """Learns from all trajectories at once. Its policy is ε-greedy and does not change until the next `learn`.

    The normal matrices Σ φ φᵀ are updated by each call of `learn` and inverted once per call, not once per iteration. An action
    that always ends the episode needs no special treatment: its targets are its rewards, so one iteration finds its weights.

    Args:
        name: the name of the learner.
        features: a function from an observation to its features, (d,). If it has a method `batch` from (N, ...) to (N, d), that
            method is used for many observations. The same observation must always have the same features.
        actions: the number of actions.
        gamma: the discount factor.
        ridge: the weight of |w|² in each regression, > 0.
        tolerance: iterations stop when the weights of all actions together change by at most this much.
        max_iterations: the maximum number of iterations.
        epsilon: the probability of a random action, as a function of the `epoch`, which goes by the amount of data.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        features: FeatureMap,
        *,
        actions: int,
        gamma: float = 0.99,
        ridge: float = 0.05,
        tolerance: float = 1e-3,
        max_iterations: int = 200,
        epsilon: Callable[[int], float] = paper_exploration,
    ) -> None:
        require(actions >= 1, "actions >= 1", actions=actions)
        require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
        require(ridge > 0, "ridge > 0", ridge=ridge)
        require(tolerance >= 0, "tolerance >= 0", tolerance=tolerance)
        require(max_iterations >= 1, "max_iterations >= 1", max_iterations=max_iterations)
        self.name, self.features, self.action_space = name, features, Discrete(actions)
        self.gamma, self.ridge, self.tolerance, self.max_iterations = gamma, ridge, tolerance, max_iterations
        self._epsilon = epsilon
        self._first = 0  # the number of trajectories at the first `learn`
        self._cursor = DataCursor()  # the trajectories that the sums contain
        self._sums: dict[str, Floats] = {}  # "normals" (A, d, d) and "moments" (A, d); empty before the first `learn`
        self.weights: Floats | None = None  # (A, d); None before the first `learn`
        self._mean_q: float | None = None
        self._rows, self._stored = Columns(), 0  # steps that do not terminate, and the number of trajectories they come from

    @property
    def epoch(self) -> int:
        """0 before the first `learn`, 1 after it, and one more whenever the number of trajectories has doubled since then.

        If a selector's epochs have the lengths 1, 2, 4, ... (ESBAS) or n, n, 2n, 4n, ... (the dialogue), this is its epoch.
        Online selectors call `learn` before every episode; the epoch then grows with the logarithm of the number of episodes.
        """
        return (self._cursor.trajectories // self._first).bit_length() if self._first else 0

    def policy(self) -> EpsilonGreedy:
        """Before the first `learn`, all actions have the same value."""
        return self._policy(self._epsilon(self.epoch))

    def greedy_policy(self) -> EpsilonGreedy:
        return self._policy(0.0)

    def _policy(self, epsilon: float) -> EpsilonGreedy:
        if self.weights is None:
            equal = np.zeros(self.action_space.n)
            return EpsilonGreedy(lambda _: equal, epsilon)
        return _linear_policy(self.weights, self.features, epsilon)

    def learn(self, data: TrajectorySet) -> None:
        """Add the new trajectories to the sums, then iterate from zero on all data."""
        progress = self._cursor.up_to(data)
        if self._stored < len(data):
            self._add(data)
            self._stored, self._cursor = len(data), progress
        rows = self._rows
        order = np.argsort(rows["actions"], kind="stable")
        starts = np.searchsorted(rows["actions"][order], np.arange(self.action_space.n + 1))
        inverses = np.linalg.inv(self._sums["normals"] + self.ridge * np.eye(self._sums["normals"].shape[1]))
        features, following = rows["features"][order], rows["following"][order]
        limits = self.gamma, self.tolerance, self.max_iterations
        weights = fitted_q(inverses, self._sums["moments"], features, following, starts, *limits)
        require(bool(np.isfinite(weights).all()), "the weights are finite", "lower gamma or raise the ridge", weights=weights)
        self.weights = weights
        self._mean_q = float(best_values(weights, features).mean()) if len(features) else None
        self._first = self._first or len(data)

    def _add(self, data: TrajectorySet) -> None:
        """Store the steps that do not terminate, and add those to the sums that are not in them yet."""
        steps = data.transitions(self._stored)
        features = self._features_of(steps.observations)  # (N, d)
        goes_on = ~steps.terminated
        following = np.zeros_like(features)
        if goes_on.any():
            following[goes_on] = self._features_of(steps.next_observations[goes_on])
        count, size = self.action_space.n, features.shape[1]
        normals, moments = np.zeros((count, size, size)), np.zeros((count, size))
        new = steps.trajectory >= self._cursor.trajectories
        for action in range(count):
            chosen = new & (steps.actions == action)
            normals[action] = features[chosen].T @ features[chosen]
            moments[action] = features[chosen].T @ steps.rewards[chosen]
        if self._sums:
            normals, moments = normals + self._sums["normals"], moments + self._sums["moments"]
        rows = {"actions": steps.actions, "features": features, "following": following}
        self._rows.extend({name: column[goes_on] for name, column in rows.items()})
        self._sums = {"normals": normals, "moments": moments}

    def _features_of(self, observations: NDArray[Any]) -> Floats:
        features = _feature_rows(self.features, observations)
        require(features.ndim == 2, "the features of an observation are a vector", shape=features.shape[1:])
        finite = np.isfinite(features).all(axis=1)
        require(bool(finite.all()), "features are finite", "fix the feature map", features=features[~finite][:1])
        return features

    def state_dict(self) -> dict[str, Any]:
        """The weights and the sums. The features of single steps are computed again from the data when they are needed."""
        return {"first": self._first, "weights": self.weights, "sums": dict(self._sums)} | self._cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._first, self._cursor, self.weights = state["first"], DataCursor.from_state(state), state["weights"]
        self._sums = dict(state["sums"])
        self._rows, self._stored = Columns(), 0

    def policy_state(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Act with these weights until the next `learn`, which iterates from zero on all data."""
        shape = {"weights": AnyOf(None, ArrayOf("f", (self.action_space.n, None)))}
        schema.check(state, shape, f"the saved policy of learner {self.name!r}")
        self.weights = state["weights"]

    def metrics(self) -> dict[str, float]:
        """The mean Q is that of the best actions at the steps of the last `learn` that do not terminate."""
        return {"epsilon": self._epsilon(self.epoch)} | ({} if self._mean_q is None else {"mean Q": self._mean_q})


def linear_constant(name: str, features: FeatureMap, weights: Floats) -> Constant:
    """A learner that never learns: greedy with respect to given weights, (A, d)."""
    return Constant(name, _linear_policy(np.array(weights, np.float64), features, 0.0))


def _linear_policy(weights: Floats, features: FeatureMap, epsilon: float) -> EpsilonGreedy:
    def batch_values(observations: NDArray[Any]) -> Floats:
        # Row by row: one matrix product would round differently from `act`, and ties would go to another action.
        return np.array([weights @ row for row in _feature_rows(features, observations)])

    return EpsilonGreedy(lambda observation: weights @ features(observation), epsilon, batch_values=batch_values)


def _feature_rows(features: FeatureMap, observations: NDArray[Any]) -> Floats:
    """The features of many observations, (N, d)."""
    batch = getattr(features, "batch", None)
    rows = batch(observations) if batch else [features(observation) for observation in observations]
    return np.asarray(rows, np.float64)
