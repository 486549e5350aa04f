"""Linear Thompson sampling: the best arm may depend on what is known about the episode before it starts."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas import schema
from esbas.errors import InvalidValueError, require
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.selector import SELECTORS, Selector

Floats = NDArray[np.float64]
Features = Callable[[tuple[float, ...]], Sequence[float]]


def with_constant(context: tuple[float, ...]) -> Sequence[float]:
    """The features (1, context)."""
    return 1.0, *context


@SELECTORS.register("linear-thompson")
class LinearThompson(Selector):
    """The value of arm k is θ_k · φ(context) plus noise: draw each θ_k from its posterior and take the best arm.

    Bayesian linear regression per arm, with prior N(0, 1 / λ) on each coefficient: A_k = λ I + Σ φ φᵀ, b_k = Σ φ y,
    θ_k ~ N(A_k⁻¹ b_k, s² A_k⁻¹) (Lattimore & Szepesvári, Bandit Algorithms, 2020, Chapter 36). Values y are standardised with the
    mean and the standard deviation of all values so far, and s² is estimated from the residuals of all arms, so the choices do
    not depend on the size and the sign of the values.

    The context is the first observation in `esbas.run`, and what you pass to `ask(context=...)` in a loop of your own.

    Args:
        arms: the names of the learners.
        features: φ, from the context to numbers; by default the context and a constant.
        ridge: λ.
        epochs, stationary: see `Selector`. With epochs, arms that are not stationary are forgotten when an epoch starts.
        seed: seed of the posterior samples.
    """

    wants = frozenset({"context"})
    note_shape = schema.COUNT  # the epoch

    def __init__(
        self,
        arms: Iterable[str],
        *,
        features: Features = with_constant,
        ridge: float = 1.0,
        epochs: Sequence[int] | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        super().__init__(arms, epochs=epochs, stationary=stationary, seed=seed)
        require(ridge > 0, "ridge > 0", ridge=ridge)
        self._features, self._ridge = features, ridge
        self._data: dict[str, dict[str, Any]] = {arm: _nothing() for arm in self._arms}
        self._origin: float | None = None  # the first value; the sums are of differences to it, so that little cancels

    @np.errstate(over="ignore", invalid="ignore")  # values beyond 1e154 have infinite squares
    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        if context is None:
            raise InvalidValueError("LinearThompson chooses by context, but got none: pass ask(context=...)")
        phi = self._phi(context)
        mean, deviation = self._standard()
        noise = self._noise(mean, deviation)
        samples = {}
        for arm in sorted(among, key=self._arms.index):
            precision, moment = self._posterior(arm, len(phi), mean, deviation)
            factor = np.linalg.cholesky(precision)  # A = L Lᵀ, so L⁻ᵀ z ~ N(0, A⁻¹)
            draw = self.rng.standard_normal(len(phi))
            theta = np.linalg.solve(precision, moment) + noise * np.linalg.solve(factor.T, draw)
            samples[arm] = float(theta @ phi)
        return Pick(max(samples, key=samples.__getitem__), propensity=None, note=self.epoch)

    def observe(self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None) -> None:
        del evidence
        if note != self.epoch:
            return  # the value of an earlier policy
        assert choice.context is not None
        phi, data = self._phi(choice.context), self._data[choice.arm]
        self._origin = value if self._origin is None else self._origin
        value -= self._origin
        if not data["n"]:
            data |= {"xx": np.zeros((len(phi), len(phi))), "xy": np.zeros(len(phi)), "x": np.zeros(len(phi))}
        data["n"] += 1
        data["y"] += value
        data["yy"] += value * value
        data["xx"] = data["xx"] + np.outer(phi, phi)
        data["xy"] = data["xy"] + value * phi
        data["x"] = data["x"] + phi

    def start_epoch(self) -> None:
        for arm in self._arms:
            if arm not in self._stationary:
                self._data[arm] = _nothing()

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        with self._lock:
            super().add_arm(name, stationary=stationary)
            self._data[name] = _nothing()

    def remove_arm(self, name: str) -> None:
        with self._lock:
            super().remove_arm(name)
            del self._data[name]

    def explain(self) -> dict[str, dict[str, float]]:
        """Adds the number of values and their mean."""
        with self._lock:
            report = super().explain()
            for arm, row in report.items():
                n = self._data[arm]["n"]
                row |= {"pulls": n, "mean": (self._origin or 0.0) + self._data[arm]["y"] / n if n else math.nan}
            return report

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            saved = [{key: np.asarray(item).tolist() for key, item in self._data[arm].items()} for arm in self._arms]
            return super().state_dict() | {"regressions": saved, "origin": self._origin}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with self._lock:
            super().load_state_dict(state)
            self._data = dict(zip(self._arms, map(_from_plain, state["regressions"]), strict=True))
            self._origin = state["origin"]

    def check_state(self, state: Any) -> None:
        super().check_state(state)
        where, numbers = "the state of a LinearThompson", {"n": schema.COUNT, "y": float, "yy": schema.Number(min=0)}
        saved = numbers | {"xx": [[float]], "xy": [float], "x": [float]}
        schema.check(state, {"regressions": [saved], "origin": schema.AnyOf(float, None), str: object}, where)
        arms, each = len(state["arms"]), state["regressions"]
        schema.require(len(each) == arms, "there is one regression per arm", where, arms=arms, regressions=len(each))
        played = [regression for regression in each if regression["n"]]
        size = len(played[0]["x"]) if played else 0
        for regression in each:
            d = size if regression["n"] else 0
            lengths = [len(regression[key]) for key in ("xx", "xy", "x")] + [len(row) for row in regression["xx"]]
            schema.require(set(lengths) <= {d}, "all regressions have as many features", where, features=d, found=lengths)
            schema.require(self._solvable(regression["xx"], d), "the products of features are a covariance", where, features=d)
        started = state["origin"] is not None or not played
        schema.require(started, "the origin is the first value", where, origin=state["origin"])

    def _solvable(self, products: list[list[float]], size: int) -> bool:
        """Whether the sums of φ φᵀ are symmetric, and positive definite with the prior."""
        matrix = np.array(products, np.float64).reshape(size, size)
        try:
            np.linalg.cholesky(self._ridge * np.eye(size) + matrix)
        except np.linalg.LinAlgError:
            return False
        return bool((matrix == matrix.T).all())

    def _phi(self, context: tuple[float, ...]) -> Floats:
        phi = np.asarray(self._features(context), np.float64)
        known = next((len(data["x"]) for data in self._data.values() if data["n"]), len(phi))
        fits = phi.ndim == 1 and len(phi) == known and bool(np.isfinite(phi).all())
        require(fits, f"features are {known} finite numbers", context=context, features=phi.tolist())
        return phi

    def _standard(self) -> tuple[float, float]:
        """Mean and standard deviation of all values; 1 while they are equal."""
        n, total, squares = (sum(data[key] for data in self._data.values()) for key in ("n", "y", "yy"))
        if not n:
            return 0.0, 1.0
        mean = total / n
        variance = squares / n - mean * mean
        return mean, math.sqrt(variance) if variance > 1e-12 * (1e-300 + squares / n) else 1.0

    def _posterior(self, arm: str, size: int, mean: float, deviation: float) -> tuple[Floats, Floats]:
        """A and b, for standardised values."""
        data = self._data[arm]
        if not data["n"]:
            return self._ridge * np.eye(size), np.zeros(size)
        return self._ridge * np.eye(size) + data["xx"], (data["xy"] - mean * data["x"]) / deviation

    def _noise(self, mean: float, deviation: float) -> float:
        """The standard deviation of standardised values around the regressions, with one value at distance 1 as a prior."""
        squares, n = 1.0, 1
        for arm, data in self._data.items():
            if data["n"]:
                precision, moment = self._posterior(arm, len(data["x"]), mean, deviation)
                total = (data["yy"] - 2 * mean * data["y"] + data["n"] * mean * mean) / deviation**2
                squares += max(total - float(moment @ np.linalg.solve(precision, moment)), 0.0)
                n += data["n"]
        return math.sqrt(squares / n)


def _from_plain(saved: dict[str, Any]) -> dict[str, Any]:
    numbers = {key: saved[key] for key in ("n", "y", "yy")}
    return numbers | {key: np.array(saved[key], np.float64) for key in ("xx", "xy", "x")}


def _nothing() -> dict[str, Any]:
    """The sufficient statistics of an arm without values."""
    return {"n": 0, "y": 0.0, "yy": 0.0, "xx": np.zeros((0, 0)), "xy": np.zeros(0), "x": np.zeros(0)}
