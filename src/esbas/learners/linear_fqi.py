"""Fitted Q iteration (Ernst et al., 2005) with one linear function per action.

A batch learner for discrete actions. The formulas are plain functions. The learner calls them
directly; compiled experiments are tested against them.
"""

from collections.abc import Callable
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from esbas._internal import schema
from esbas._internal.columns import GrowingColumns
from esbas._internal.schema import AnyOf, ArrayOf
from esbas._internal.spaces import Discrete
from esbas.errors import InvalidValueError, require
from esbas.learners.constant import Constant
from esbas.learners.cursor import DataCursor
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.from_env import check_options, name_for, number_of_actions, spaces_of
from esbas.learners.naming import Named
from esbas.trajectory import TrajectorySet

Floats = NDArray[np.floating]  # float64 throughout
FeatureMap = Callable[[Any], Floats]


def best_values(weights: Floats, following: Floats) -> Floats:
    """Return max_a' w_a' · φ' for every row φ' of `following`, (N,)."""
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
    starts: NDArray[np.int64],  # (A + 1,): steps with action a are starts[a] .. starts[a + 1] - 1
    gamma: float,
    tolerance: float,
    max_iterations: int,
) -> Floats:
    """Iterate w_a = argmin Σ (w·φ - r - γ max_a' w_a'·φ')² + ridge |w|² for all actions.

    It starts with w = 0 and ends when |Δw| <= tolerance, for all actions together.
    """
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
    """Return the paper's exploration, 0.6^β in epoch β. So epoch 0 is random."""
    return float(0.6**epoch)


class LinearFQIOptions(TypedDict, total=False):
    """The options of `LinearFQI`."""

    gamma: float
    ridge: float
    tolerance: float
    max_iterations: int
    epsilon: Callable[[int], float]


class LinearFQI(Named):
    """Learns from all trajectories at once.

    Its policy is ε-greedy and does not change until the next `learn`.

    The normal matrices Σ φ φᵀ are updated by each call of `learn` and inverted once per call,
    not once per iteration. An action that always ends the episode needs no special treatment: its
    targets are its rewards, so one iteration finds its weights.

    Args:
        name: the name of the learner.
        features: a function from an observation to its features, (d,). If it has a method `batch`
            from (N, ...) to (N, d), that method is used for many observations. The same observation
            must always have the same features.
        actions: the number of actions.
        gamma: the discount factor.
        ridge: the weight of |w|² in each regression, > 0.
        tolerance: iterations stop when the weights of all actions together change by at most this
            much.
        max_iterations: the maximum number of iterations.
        epsilon: the probability of a random action, as a function of the `epoch`, which goes by the
            amount of data.
    """

    title = "linear FQI"
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
        require(actions >= 1, f"`actions` must be at least 1, but got {actions!r}.")
        require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")
        require(ridge > 0, f"`ridge` must be greater than 0, but got {ridge!r}.")
        require(tolerance >= 0, f"`tolerance` must be at least 0, but got {tolerance!r}.")
        require(
            max_iterations >= 1, f"`max_iterations` must be at least 1, but got {max_iterations!r}."
        )
        self.name = name
        self.features = features
        self.action_space = Discrete(actions)
        self.gamma = gamma
        self.ridge = ridge
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self._epsilon = epsilon
        self._first = 0  # the number of trajectories at the first `learn`
        self._cursor = DataCursor()  # the trajectories that the sums contain
        # "normals" (A, d, d) and "moments" (A, d); empty before the first `learn`.
        self._sums: dict[str, Floats] = {}
        self.weights: Floats | None = None  # (A, d); None before the first `learn`
        self._mean_q: float | None = None
        self._rows = GrowingColumns()  # the steps that do not terminate
        self._stored = 0  # the number of trajectories in `_rows`

    @property
    def epoch(self) -> int:
        """The number of the epoch: 0 before the first `learn`, 1 after it.

        It grows by one whenever the number of trajectories has doubled since then. If a selector's
        epochs have the lengths 1, 2, 4, ... (ESBAS) or n, n, 2n, 4n, ... (the dialogue), this is
        its epoch. Online selectors call `learn` before every episode; the epoch then grows with the
        logarithm of the number of episodes.
        """
        if not self._first:
            return 0
        return (self._cursor.trajectories // self._first).bit_length()

    @classmethod
    def for_env(
        cls,
        env: Any,
        features: FeatureMap,
        *,
        name: str | None = None,
        **options: Unpack[LinearFQIOptions],
    ) -> Self:
        """Build the learner for an environment with discrete actions.

        Args:
            env: the environment, from which the number of actions is read.
            features: a function from an observation to its features.
            name: the name of the learner. Default: "linear FQI", the name of the function, and the
                given options.
            **options: the other arguments of the class.
        """
        _, action_space = spaces_of(env)
        actions = number_of_actions(action_space, cls.__name__)
        check_options(cls, options)
        return cls(
            name_for(cls, name, {"features": features, **options}),
            features,
            actions=actions,
            **options,
        )

    def policy(self) -> EpsilonGreedy:
        """Return the current policy. Before the first `learn`, all actions have the same value."""
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
            self._stored = len(data)
            self._cursor = progress
        rows = self._rows
        order = np.argsort(rows["actions"], kind="stable")
        starts = np.searchsorted(rows["actions"][order], np.arange(self.action_space.n + 1))
        normals = self._sums["normals"]
        features = rows["features"][order]
        weights = fitted_q(
            np.linalg.inv(normals + self.ridge * np.eye(normals.shape[1])),
            self._sums["moments"],
            features,
            rows["following"][order],
            starts,
            self.gamma,
            self.tolerance,
            self.max_iterations,
        )
        require(
            bool(np.isfinite(weights).all()),
            f"The weights of learner {self.name!r} became infinite or NaN: "
            "lower `gamma`, or raise `ridge`.",
        )
        self.weights = weights
        self._mean_q = float(best_values(weights, features).mean()) if len(features) else None
        if not self._first:
            self._first = len(data)

    def _add(self, data: TrajectorySet) -> None:
        """Store the steps that do not terminate, and add those to the sums that they lack."""
        steps = data.transitions(self._stored)
        features = self._features_of(steps.observations)  # (N, d)
        goes_on = ~steps.terminated
        following = np.zeros_like(features)
        if goes_on.any():
            following[goes_on] = self._features_of(steps.next_observations[goes_on])
        count = self.action_space.n
        size = features.shape[1]
        normals = np.zeros((count, size, size))
        moments = np.zeros((count, size))
        new = steps.trajectory >= self._cursor.trajectories
        for action in range(count):
            chosen = new & (steps.actions == action)
            normals[action] = features[chosen].T @ features[chosen]
            moments[action] = features[chosen].T @ steps.rewards[chosen]
        if self._sums:
            normals = normals + self._sums["normals"]
            moments = moments + self._sums["moments"]
        rows = {"actions": steps.actions, "features": features, "following": following}
        self._rows.extend({name: column[goes_on] for name, column in rows.items()})
        self._sums = {"normals": normals, "moments": moments}

    def _features_of(self, observations: NDArray[Any]) -> Floats:
        features = _feature_rows(self.features, observations)
        require(
            features.ndim == 2,
            "`features` must return a vector for each observation, "
            f"but returned an array of shape {features.shape[1:]}.",
        )
        finite = np.isfinite(features).all(axis=1)
        if not finite.all():
            first = features[~finite][0]
            raise InvalidValueError(f"`features` must return finite numbers, but returned {first}.")
        return features

    def state_dict(self) -> dict[str, Any]:
        """Return the weights and the sums. Features of steps are computed again if needed."""
        own = {"first": self._first, "weights": self.weights, "sums": dict(self._sums)}
        return own | self._cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._first = state["first"]
        self._cursor = DataCursor.from_state(state)
        self.weights = state["weights"]
        self._sums = dict(state["sums"])
        self._rows = GrowingColumns()
        self._stored = 0

    def policy_state(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Act with these weights until the next `learn`, which iterates from zero on all data."""
        shape = {"weights": AnyOf(None, ArrayOf("f", (self.action_space.n, None)))}
        schema.check(state, shape, f"the saved policy of learner {self.name!r}")
        self.weights = state["weights"]

    def metrics(self) -> dict[str, float]:
        """Return epsilon and the mean Q.

        The mean Q is that of the best actions at the steps of the last `learn` that do not
        terminate.
        """
        found = {"epsilon": self._epsilon(self.epoch)}
        if self._mean_q is not None:
            found["mean Q"] = self._mean_q
        return found


def linear_constant(name: str, features: FeatureMap, weights: Floats) -> Constant:
    """Return a learner that never learns and is greedy with respect to given weights, (A, d)."""
    return Constant(name, _linear_policy(np.array(weights, np.float64), features, 0.0))


def _linear_policy(weights: Floats, features: FeatureMap, epsilon: float) -> EpsilonGreedy:
    def values(observation: Any) -> Floats:
        return weights @ features(observation)

    def batch_values(observations: NDArray[Any]) -> Floats:
        # Row by row: one matrix product would round differently from `act`, and ties would go to
        # another action.
        return np.array([weights @ row for row in _feature_rows(features, observations)])

    return EpsilonGreedy(values, epsilon, batch_values=batch_values)


def _feature_rows(features: FeatureMap, observations: NDArray[Any]) -> Floats:
    """Return the features of many observations, (N, d)."""
    batch = getattr(features, "batch", None)
    if batch is not None:
        return np.asarray(batch(observations), np.float64)
    rows = [features(observation) for observation in observations]
    return np.asarray(rows, np.float64)
