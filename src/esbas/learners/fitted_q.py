"""Fitted Q iteration (Ernst et al., 2005) with any regressor of scikit-learn: a batch learner for discrete actions."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas import schema, seeding
from esbas.columns import Array, frozen
from esbas.errors import DivergenceError, EsbasError, InvalidValueError, require, unknown
from esbas.learners import schedules
from esbas.learners.cursor import DataCursor
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.inputs import Inputs, discrete_actions
from esbas.schema import ArrayOf
from esbas.trajectory import TrajectorySet

try:
    from sklearn.base import clone, is_regressor
    from sklearn.utils import all_estimators
    from threadpoolctl import ThreadpoolController  # scikit-learn depends on it
except ModuleNotFoundError as error:
    problem = "fitted Q iteration with any regressor needs scikit-learn, but it is not installed"
    raise ModuleNotFoundError(f"{problem}: pip install 'esbas[sklearn]'") from error


class FittedQ:
    """Learns from all trajectories at once: one regressor per action, fitted repeatedly to Q = r + γ max_a' Q'.

    An action that has never been taken has the value -∞: it never counts as the best next action, and only exploration takes it.
    The last step of a truncated episode bootstraps from the next observation.

    The regressors are fitted again when the data have grown by the factor `growth` since the last fit, and kept otherwise. Online
    selectors call `learn` before every episode, so the number of fits then grows with the logarithm of the amount of data.
    Regressors run on one thread unless their `n_jobs` says otherwise: more threads slow down runs that share the machine.

    Args:
        name: the name of the learner.
        regressor: an estimator, or the name of its class in scikit-learn, such as "ExtraTreesRegressor".
        observation_space: Box (flattened) or Discrete (one-hot).
        action_space: Discrete.
        options: arguments of the class, if `regressor` is a name.
        gamma: the discount factor.
        iterations: regressions per fit. It stops earlier if the targets no longer change.
        epsilon: the probability of a random action: (first, last, transitions in between) for a linear decay, or one number.
        growth: the factor by which the data grow from one fit to the next, >= 1.
        seed: the seed of regressors that draw random numbers. Actions, and members with different names, get different seeds.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        regressor: Any,
        *,
        observation_space: Any,
        action_space: Any,
        options: Mapping[str, Any] | None = None,
        gamma: float = 0.99,
        iterations: int = 30,
        epsilon: float | Sequence[float] = (1.0, 0.05, 5_000),
        growth: float = 1.1,
        seed: int = 0,
    ) -> None:
        require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
        require(iterations >= 1, "iterations >= 1", iterations=iterations)
        require(growth >= 1, "growth >= 1", growth=growth)
        self.name, self.gamma, self.iterations, self.growth = name, gamma, iterations, growth
        self.observation_space, self.action_space = observation_space, action_space
        self._inputs = Inputs(observation_space, owner=f"learner {name!r}")
        actions = discrete_actions(action_space, owner=f"learner {name!r}")
        self._epsilon = schedules.linear_decay(epsilon)
        model = make_regressor(regressor, options)
        self._unfitted = [_seeded(model, seeding.integer(seed, "fitted q", name, action)) for action in range(actions)]
        self._values = _Values([None] * actions, self._inputs)
        self._cursor = DataCursor()
        self._fitted: dict[str, Array] = {}  # the observations, actions and targets of the last fit

    @property
    def fitted(self) -> int:
        """The number of transitions of the last fit; 0 before the first one."""
        return len(self._fitted.get("targets", ()))

    def policy(self) -> EpsilonGreedy:
        """ε-greedy with respect to the last fit. Before the first fit, all actions have the same value."""
        return self._policy(schedules.value_at(self._epsilon, self._cursor.transitions))

    def greedy_policy(self) -> EpsilonGreedy:
        return self._policy(0.0)

    def _policy(self, epsilon: float) -> EpsilonGreedy:
        return EpsilonGreedy(self._values.at, epsilon, batch_values=self._values.of)

    def values(self, observation: Any) -> Array:
        """The values of all actions, (A,)."""
        return self._values.at(observation)

    def learn(self, data: TrajectorySet) -> None:
        """Fit to all trajectories if there are enough new ones. If a fit fails, nothing changes."""
        progress = self._cursor.up_to(data)
        if progress.transitions > self.fitted and progress.transitions >= self.growth * self.fitted:
            self._fit(data)
        self._cursor = progress

    def _fit(self, data: TrajectorySet) -> None:
        steps = data.transitions()
        inputs, goes_on = self._inputs(steps.observations), ~steps.terminated
        following = self._inputs(steps.next_observations[goes_on])
        targets, values = steps.rewards.copy(), self._values
        for iteration in range(self.iterations):
            if iteration:
                former, targets = targets, steps.rewards.copy()
                with np.errstate(over="ignore", invalid="ignore"):  # checked in the next line
                    targets[goes_on] += self.gamma * values.of_rows(following).max(axis=1)
                self._check(targets)
                if np.array_equal(targets, former):
                    break
            values = self._regress(inputs, steps.actions, targets)
        arrays = {"observations": steps.observations, "actions": steps.actions, "targets": targets}
        self._values, self._fitted = values, {key: frozen(array) for key, array in arrays.items()}

    def _regress(self, inputs: Array, actions: Array, targets: Array) -> "_Values":
        """Fit one regressor for each action that was taken."""
        models: list[Any] = []
        with _THREADS.limit(limits=1):
            for action, unfitted in enumerate(self._unfitted):
                chosen = actions == action
                models.append(clone(unfitted).fit(inputs[chosen], targets[chosen]) if chosen.any() else None)
        return _Values(models, self._inputs)

    def _check(self, targets: Array) -> None:
        if not np.isfinite(targets).all():
            raise DivergenceError(f"the values of learner {self.name!r} must be finite, but diverged: lower gamma, or regularise")

    def state_dict(self) -> dict[str, Any]:
        """The data of the last fit. Loading fits the regressors to them again."""
        return self._cursor.state_dict() | {"fitted": dict(self._fitted)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Fit once more, with the same result."""
        self.load_policy_state({"fitted": state["fitted"]})
        self._cursor = DataCursor.from_state(state)

    def policy_state(self) -> dict[str, Any]:
        """The data of the last fit: regressors of scikit-learn cannot be saved as plain data."""
        return {"fitted": dict(self._fitted)}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Fit to these data, and keep the fit until there are more new data than these."""
        where = f"the saved policy of learner {self.name!r}"
        schema.check(state, {"fitted": {str: np.ndarray}}, where)
        fitted = {key: frozen(array) for key, array in state["fitted"].items()}
        values = _Values([None] * len(self._unfitted), self._inputs)
        if fitted:
            shape = {"observations": np.ndarray, "actions": ArrayOf("iu", (None,)), "targets": ArrayOf("f", (None,))}
            schema.check(state["fitted"], shape, where)
            values = self._regress(self._inputs(fitted["observations"]), fitted["actions"], fitted["targets"])
        self._values, self._fitted = values, fitted

    def metrics(self) -> dict[str, float]:
        """The mean Q is that of the targets of the last fit."""
        found = {"epsilon": schedules.value_at(self._epsilon, self._cursor.transitions)}
        return found | ({"mean Q": float(self._fitted["targets"].mean())} if self._fitted else {})


_THREADS = ThreadpoolController()  # created once: finding the libraries takes longer than a small fit


class _Values:
    """The values of actions by one regressor each, None for actions never taken. It never changes."""

    def __init__(self, models: list[Any], inputs: Inputs) -> None:
        self._models, self._inputs = models, inputs
        self._untrained = all(model is None for model in models)

    def of_rows(self, rows: Array) -> Array:
        """The values, (N, A), for vectors, (N, d)."""
        values = np.full((len(rows), len(self._models)), -np.inf)
        with _THREADS.limit(limits=1):
            for action, model in enumerate(self._models if len(rows) else ()):
                if model is not None:
                    values[:, action] = np.asarray(model.predict(rows)).reshape(len(rows))
        return values

    def of(self, observations: Array) -> Array:
        """The values, (N, A), for observations, (N, ...)."""
        if self._untrained:
            return np.zeros((len(observations), len(self._models)))
        return self.of_rows(self._inputs(observations))

    def at(self, observation: Any) -> Array:
        """The values, (A,), for one observation."""
        values: Array = self.of(np.asarray(observation)[None])[0]
        return values


def make_regressor(given: Any, options: Mapping[str, Any] | None = None) -> Any:
    """The estimator, built from the name of its class and the options if it is a name; its parameters are validated."""
    try:
        regressor = _of_name(given, dict(options or {})) if isinstance(given, str) else given
        if isinstance(regressor, type) or not (hasattr(regressor, "get_params") and is_regressor(regressor)):
            rule, remedy = "a regressor is an estimator of scikit-learn", 'such as ExtraTreesRegressor() or "ExtraTreesRegressor"'
            require(False, rule, remedy, regressor=given)
        require(isinstance(given, str) or options is None, "options are for names", "give them to the regressor", options=options)
        getattr(regressor, "_validate_params", lambda: None)()  # `fit` would do this first
    except EsbasError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"the options of {given} must be valid, but scikit-learn says: {error}") from error
    return regressor


def _of_name(name: str, options: dict[str, Any]) -> Any:
    classes = dict(all_estimators(type_filter="regressor"))
    if name not in classes:
        raise unknown("regressor of scikit-learn", name, classes)
    known = list(inspect.signature(classes[name]).parameters)
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return classes[name](**options)


def _seeded(regressor: Any, seed: int) -> Any:
    """A copy with this seed in all its parts."""
    copied = clone(regressor)
    names = [name for name in copied.get_params() if name.split("__")[-1] == "random_state"]
    return copied.set_params(**dict.fromkeys(names, seed))
