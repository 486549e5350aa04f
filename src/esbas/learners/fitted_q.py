"""Fitted Q iteration (Ernst et al., 2005) with any regressor of scikit-learn.

A batch learner for discrete actions.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas import seeding
from esbas._internal import schema
from esbas._internal.columns import Array, frozen
from esbas._internal.schema import ArrayOf
from esbas.errors import DivergenceError, EsbasError, InvalidValueError, require, unknown
from esbas.learners import schedules
from esbas.learners.cursor import DataCursor
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.from_env import (
    check_options,
    name_for,
    number_of_actions,
    require_arrays,
    spaces_of,
)
from esbas.learners.inputs import Inputs, discrete_actions
from esbas.learners.naming import Named
from esbas.trajectory import TrajectorySet

try:
    from sklearn.base import clone, is_regressor
    from sklearn.utils import all_estimators
    from threadpoolctl import ThreadpoolController  # scikit-learn depends on it
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Fitted Q iteration with any regressor needs scikit-learn, but it is not installed: "
        "pip install 'esbas[sklearn]'."
    ) from error


class FittedQOptions(TypedDict, total=False):
    """The options of `FittedQ` besides those of its regressor."""

    gamma: float
    iterations: int
    epsilon: float | Sequence[float]
    growth: float
    seed: int


class FittedQ(Named):
    """Learns from all trajectories at once.

    One regressor per action is fitted repeatedly to Q = r + γ max_a' Q'. An action that has never
    been taken has the value -∞: it never counts as the best next action, and only exploration
    takes it. The last step of a truncated episode bootstraps from the next observation.

    The regressors are fitted again when the data have grown by the factor `growth` since the last
    fit, and kept otherwise. Online selectors call `learn` before every episode, so the number of
    fits then grows with the logarithm of the amount of data. Regressors run on one thread unless
    their `n_jobs` is set: more threads slow down runs that share the machine.

    Args:
        name: the name of the learner.
        regressor: an estimator, or the name of its class in scikit-learn, such as
            "ExtraTreesRegressor".
        observation_space: Box (flattened) or Discrete (one-hot).
        action_space: Discrete.
        options: arguments of the class, if `regressor` is a name.
        gamma: the discount factor.
        iterations: regressions per fit. It stops earlier if the targets no longer change.
        epsilon: the probability of a random action: (first, last, transitions in between) for a
            linear decay, or one number.
        growth: the factor by which the data grow from one fit to the next, >= 1.
        seed: the seed of regressors that draw random numbers. Actions, and learners with different
            names, get different seeds.
    """

    title = "FQI"
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
        require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")
        require(iterations >= 1, f"`iterations` must be at least 1, but got {iterations!r}.")
        require(growth >= 1, f"`growth` must be at least 1, but got {growth!r}.")
        self.name = name
        self.gamma = gamma
        self.iterations = iterations
        self.growth = growth
        self.observation_space = observation_space
        self.action_space = action_space
        self._inputs = Inputs(observation_space, owner=f"learner {name!r}")
        actions = discrete_actions(action_space, owner=f"learner {name!r}")
        self._epsilon = schedules.linear_decay(epsilon)
        model = make_regressor(regressor, options)
        self._unfitted = []  # by action
        for action in range(actions):
            self._unfitted.append(_seeded(model, seeding.integer(seed, "fitted q", name, action)))
        self._values = _Values([None] * actions, self._inputs)
        self._cursor = DataCursor()
        self._fitted: dict[str, Array] = {}  # the observations, actions and targets of the last fit

    @classmethod
    def for_env(
        cls,
        env: Any,
        regressor: Any,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[FittedQOptions],
    ) -> Self:
        """Build the learner for an environment with discrete actions.

        Args:
            env: the environment, from which the spaces are read.
            regressor: an estimator, or the name of its class in scikit-learn.
            name: the name of the learner. Default: "FQI", the regressor, and the given options
                except `seed`, such as "FQI regressor ExtraTreesRegressor, n_estimators 50".
            options: the arguments of the regressor's class, if `regressor` is a name.
            **settings: the other arguments of the class.
        """
        observation_space, action_space = spaces_of(env)
        require_arrays(observation_space, cls.__name__)
        number_of_actions(action_space, cls.__name__)
        check_options(cls, settings)
        given = {"regressor": regressor, **(options or {}), **settings}
        return cls(
            name_for(cls, name, given),
            regressor,
            observation_space=observation_space,
            action_space=action_space,
            options=options,
            **settings,
        )

    @property
    def fitted(self) -> int:
        """The number of transitions of the last fit; 0 before the first one."""
        return len(self._fitted.get("targets", ()))

    def policy(self) -> EpsilonGreedy:
        """Return an ε-greedy policy for the last fit. Before a fit, all values are equal."""
        return self._policy(schedules.value_at(self._epsilon, self._cursor.transitions))

    def greedy_policy(self) -> EpsilonGreedy:
        return self._policy(0.0)

    def _policy(self, epsilon: float) -> EpsilonGreedy:
        return EpsilonGreedy(self._values.at, epsilon, batch_values=self._values.of)

    def values(self, observation: Any) -> Array:
        """Return the values of all actions, (A,)."""
        return self._values.at(observation)

    def learn(self, data: TrajectorySet) -> None:
        """Fit to all trajectories if there are enough new ones. If a fit fails, nothing changes."""
        progress = self._cursor.up_to(data)
        count = progress.transitions
        if count > self.fitted and count >= self.growth * self.fitted:
            self._fit(data)
        self._cursor = progress

    def _fit(self, data: TrajectorySet) -> None:
        steps = data.transitions()
        inputs = self._inputs(steps.observations)
        goes_on = ~steps.terminated
        following = self._inputs(steps.next_observations[goes_on])
        targets = steps.rewards.copy()
        values = self._regress(inputs, steps.actions, targets)  # the first iteration: Q' = 0
        for _ in range(self.iterations - 1):
            former = targets
            targets = steps.rewards.copy()
            with np.errstate(over="ignore", invalid="ignore"):  # checked in the next line
                targets[goes_on] += self.gamma * values.of_rows(following).max(axis=1)
            self._check(targets)
            if np.array_equal(targets, former):
                break
            values = self._regress(inputs, steps.actions, targets)
        self._values = values
        self._fitted = {
            "observations": frozen(steps.observations),
            "actions": frozen(steps.actions),
            "targets": frozen(targets),
        }

    def _regress(self, inputs: Array, actions: Array, targets: Array) -> "_Values":
        """Fit one regressor for each action that was taken."""
        models: list[Any] = []
        with _THREADS.limit(limits=1):
            for action, unfitted in enumerate(self._unfitted):
                chosen = actions == action
                model = None
                if chosen.any():
                    model = clone(unfitted).fit(inputs[chosen], targets[chosen])
                models.append(model)
        return _Values(models, self._inputs)

    def _check(self, targets: Array) -> None:
        if not np.isfinite(targets).all():
            raise DivergenceError(
                f"The values of learner {self.name!r} became infinite or NaN: "
                "lower `gamma`, or regularize the regressor."
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the data of the last fit. Loading fits the regressors to them again."""
        return self._cursor.state_dict() | {"fitted": dict(self._fitted)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Fit once more, with the same result."""
        self.load_policy_state({"fitted": state["fitted"]})
        self._cursor = DataCursor.from_state(state)

    def policy_state(self) -> dict[str, Any]:
        """Return the data of the last fit: regressors cannot be saved as plain data."""
        return {"fitted": dict(self._fitted)}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Fit to these data, and keep the fit until there are more new data than these."""
        where = f"the saved policy of learner {self.name!r}"
        schema.check(state, {"fitted": {str: np.ndarray}}, where)
        fitted = {key: frozen(array) for key, array in state["fitted"].items()}
        values = _Values([None] * len(self._unfitted), self._inputs)
        if fitted:
            shape = {
                "observations": np.ndarray,
                "actions": ArrayOf("iu", (None,)),
                "targets": ArrayOf("f", (None,)),
            }
            schema.check(state["fitted"], shape, where)
            inputs = self._inputs(fitted["observations"])
            values = self._regress(inputs, fitted["actions"], fitted["targets"])
        self._values = values
        self._fitted = fitted

    def metrics(self) -> dict[str, float]:
        """Return epsilon, and the mean of the targets of the last fit as the mean Q."""
        found = {"epsilon": schedules.value_at(self._epsilon, self._cursor.transitions)}
        if self._fitted:
            found["mean Q"] = float(self._fitted["targets"].mean())
        return found


# Created once: finding the libraries takes longer than a small fit.
_THREADS = ThreadpoolController()


class _Values:
    """The values of actions by one regressor each, None for actions never taken. Immutable."""

    def __init__(self, models: list[Any], inputs: Inputs) -> None:
        self._models = models
        self._inputs = inputs
        self._untrained = all(model is None for model in models)

    def of_rows(self, rows: Array) -> Array:
        """Return the values, (N, A), for vectors, (N, d)."""
        values = np.full((len(rows), len(self._models)), -np.inf)
        if not len(rows):  # regressors refuse to predict nothing
            return values
        with _THREADS.limit(limits=1):
            for action, model in enumerate(self._models):
                if model is not None:
                    values[:, action] = np.asarray(model.predict(rows)).reshape(len(rows))
        return values

    def of(self, observations: Array) -> Array:
        """Return the values, (N, A), for observations, (N, ...)."""
        if self._untrained:
            return np.zeros((len(observations), len(self._models)))
        return self.of_rows(self._inputs(observations))

    def at(self, observation: Any) -> Array:
        """Return the values, (A,), for one observation."""
        values: Array = self.of(np.asarray(observation)[None])[0]
        return values


def make_regressor(given: Any, options: Mapping[str, Any] | None = None) -> Any:
    """Return an estimator: the given one, or one of the class with this name.

    Its parameters are validated.
    """
    try:
        if isinstance(given, str):
            regressor = _of_name(given, options or {})
        else:
            regressor = given
            require(
                options is None,
                "`options` are for regressors that are given by name, "
                f"but got {options!r}: pass them to the regressor itself.",
            )
        require(
            not isinstance(regressor, type)
            and hasattr(regressor, "get_params")
            and is_regressor(regressor),
            f"`regressor` must be a regressor of scikit-learn, but got {given!r}: "
            'pass for example ExtraTreesRegressor() or "ExtraTreesRegressor".',
        )
        if hasattr(regressor, "_validate_params"):
            regressor._validate_params()  # `fit` would do this first
    except EsbasError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"The options of {given} must be valid, but scikit-learn reports: {error}"
        ) from error
    return regressor


def _of_name(name: str, options: Mapping[str, Any]) -> Any:
    classes = dict(all_estimators(type_filter="regressor"))
    if name not in classes:
        raise unknown("regressor of scikit-learn", name, classes)
    known = list(inspect.signature(classes[name]).parameters)
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return classes[name](**options)


def _seeded(regressor: Any, seed: int) -> Any:
    """Return a copy with this seed in all its parts."""
    copied = clone(regressor)
    names = [name for name in copied.get_params() if name.split("__")[-1] == "random_state"]
    return copied.set_params(**dict.fromkeys(names, seed))
