"""Fitted Q iteration (Ernst et al., 2005) with any regressor of scikit-learn: a batch learner for discrete actions."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas import seeding
from esbas.columns import Array, frozen
from esbas.errors import DivergenceError, EsbasError, InvalidValueError, require, unknown
from esbas.learners import schedules
from esbas.learners._inputs import Inputs, discrete_actions
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.trajectory import TrajectorySet

try:
    from sklearn.base import clone, is_regressor
    from sklearn.utils import all_estimators
    from threadpoolctl import ThreadpoolController  # scikit-learn depends on it
except ModuleNotFoundError as error:
    told = "fitted Q iteration with any regressor needs scikit-learn, but it is not installed"
    raise ModuleNotFoundError(f"{told}: pip install 'esbas[sklearn]'") from error


class FittedQ:
    """Learns from all trajectories at once: one regressor per action, fitted again and again to Q = r + γ max_a' Q'.

    An action that nobody has tried yet has no value: it is -∞, so that it never counts as the best one of what follows and is
    tried by exploration alone. Behind the last step of an episode that was cut off, the next value counts.

    It fits when the data have grown by the factor `growth` since it did last, and keeps its regressors otherwise. So online
    selectors, with which it is asked to learn before every episode, cost it a number of fits that grows with the logarithm of
    the data. Regressors run on one thread, unless told otherwise by their `n_jobs`: more only get in each other's way.

    Args:
        name: of the learner.
        regressor: an estimator, or the name of its class in scikit-learn, such as "ExtraTreesRegressor".
        observation_space: Box (flattened) or Discrete (one-hot).
        action_space: Discrete.
        options: for the class.
        gamma: discount.
        iterations: regressions per fit, fewer if the targets no longer change.
        epsilon: the probability of a random action, (first, last, transitions in between), falling linearly; or one number.
        growth: of the data from one fit to the next, >= 1.
        seed: of the regressors that draw; those of different actions and of members with different names differ.
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
        self._epsilon = schedules.falling(epsilon)
        model = make_regressor(regressor, options)
        self._unfitted = [_seeded(model, seeding.integer(seed, "fitted q", name, action)) for action in range(actions)]
        self._values = _Values([None] * actions, self._inputs)
        self._learnt, self._seen = 0, 0  # trajectories, transitions
        self._fitted: dict[str, Array] = {}  # what the regressors were fitted to: observations, actions, targets

    @property
    def fitted(self) -> int:
        """To how many transitions the regressors were fitted; 0 before the first fit."""
        return len(self._fitted.get("targets", ()))

    def policy(self) -> EpsilonGreedy:
        """ε-greedy on what the last fit found; before the first, all actions are worth the same."""
        epsilon = schedules.between(self._epsilon, self._seen)
        return EpsilonGreedy(self._values.at, lambda: epsilon)

    def greedy_policy(self) -> EpsilonGreedy:
        """The policy without exploration."""
        return EpsilonGreedy(self._values.at, lambda: 0.0)

    def values(self, observation: Any) -> Array:
        """The values of all actions, (A,)."""
        return self._values.at(observation)

    def learn(self, data: TrajectorySet) -> None:
        """Fit to all trajectories if there are enough new ones. What fails leaves no trace."""
        require(self._learnt <= len(data), "the data only grow", learnt=self._learnt, trajectories=len(data))
        seen = self._seen + sum(map(len, data.since(self._learnt)))
        if seen > self.fitted and seen >= self.growth * self.fitted:
            self._fit(data)
        self._learnt, self._seen = len(data), seen

    def _fit(self, data: TrajectorySet) -> None:
        steps = data.transitions()
        inputs, goes_on = self._inputs(steps.observations), ~steps.terminated
        following = self._inputs(steps.next_observations[goes_on])
        targets, values = steps.rewards.copy(), self._values
        for iteration in range(self.iterations):
            if iteration:
                former, targets = targets, steps.rewards.copy()
                with np.errstate(over="ignore", invalid="ignore"):  # told by the next line
                    targets[goes_on] += self.gamma * values.of(following).max(axis=1)
                self._check(targets)
                if np.array_equal(targets, former):
                    break
            values = self._regress(inputs, steps.actions, targets)
        arrays = {"observations": steps.observations, "actions": steps.actions, "targets": targets}
        self._values, self._fitted = values, {key: frozen(array) for key, array in arrays.items()}

    def _regress(self, inputs: Array, actions: Array, targets: Array) -> "_Values":
        """One regression per action that was tried."""
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
        """What the regressors were last fitted to, from which they are found again."""
        return {"learnt": self._learnt, "seen": self._seen, "fitted": dict(self._fitted)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From what `state_dict` told: fit once more, with the same result."""
        fitted = {key: frozen(array) for key, array in state["fitted"].items()}
        values = _Values([None] * len(self._unfitted), self._inputs)
        if fitted:
            values = self._regress(self._inputs(fitted["observations"]), fitted["actions"], fitted["targets"])
        self._learnt, self._seen, self._values, self._fitted = state["learnt"], state["seen"], values, fitted


_THREADS = ThreadpoolController()  # made once: to find the libraries takes longer than a small fit


class _Values:
    """The values of actions by one regressor each, None for those never tried. It never changes."""

    def __init__(self, models: list[Any], inputs: Inputs) -> None:
        self._models, self._inputs = models, inputs
        self._none = np.zeros(len(models)) if not any(models) else None
        self._last: tuple[bytes, Array] | None = None

    def of(self, rows: Array) -> Array:
        """For all vectors (N, d), (N, A)."""
        values = np.full((len(rows), len(self._models)), -np.inf)
        with _THREADS.limit(limits=1):
            for action, model in enumerate(self._models if len(rows) else ()):
                if model is not None:
                    values[:, action] = np.asarray(model.predict(rows)).reshape(len(rows))
        return values

    def at(self, observation: Any) -> Array:
        """For one observation, (A,)."""
        if self._none is not None:
            return self._none
        row = self._inputs(np.asarray(observation)[None])
        key = row.tobytes()
        if self._last is None or key != self._last[0]:  # asked once to act, once for the probability
            self._last = key, self.of(row)[0]
        return self._last[1]


def make_regressor(given: Any, options: Mapping[str, Any] | None = None) -> Any:
    """The estimator itself, or one of the class of scikit-learn with this name; with options that are possible."""
    try:
        regressor = _of_name(given, dict(options or {})) if isinstance(given, str) else given
        if isinstance(regressor, type) or not (hasattr(regressor, "get_params") and is_regressor(regressor)):
            rule, remedy = "a regressor is an estimator of scikit-learn", 'such as ExtraTreesRegressor() or "ExtraTreesRegressor"'
            require(False, rule, remedy, regressor=given)
        require(isinstance(given, str) or options is None, "options are for names", "give them to the regressor", options=options)
        getattr(regressor, "_validate_params", lambda: None)()  # what `fit` would do first
    except EsbasError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"the options of {given} must be possible, but it says: {error}") from error
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
    """A copy that draws from this seed, in all its parts."""
    copied = clone(regressor)
    names = [name for name in copied.get_params() if name.split("__")[-1] == "random_state"]
    return copied.set_params(**dict.fromkeys(names, seed))
