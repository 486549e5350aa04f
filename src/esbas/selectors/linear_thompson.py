"""Linear Thompson sampling: the best arm may depend on the context of an episode."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas._internal import schema
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.errors import InvalidValueError, require
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.selector import SELECTORS, Selector

Floats = NDArray[np.float64]
Features = Callable[[tuple[float, ...]], Sequence[float]]


def with_constant(context: tuple[float, ...]) -> Sequence[float]:
    """Return the features (1, context)."""
    return (1.0, *context)


@dataclass(slots=True)
class _Regression:
    """Sums over the values y of an arm and their features φ, without values at first."""

    n: int = 0  # the number of values
    y: float = 0.0  # Σ y
    yy: float = 0.0  # Σ y²
    xx: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (d, d): Σ φ φᵀ
    xy: Floats = field(default_factory=lambda: np.zeros(0))  # (d,): Σ φ y
    x: Floats = field(default_factory=lambda: np.zeros(0))  # (d,): Σ φ

    def add(self, phi: Floats, value: float) -> None:
        if not self.n:
            self.xx = np.zeros((len(phi), len(phi)))
            self.xy = np.zeros(len(phi))
            self.x = np.zeros(len(phi))
        self.n += 1
        self.y += value
        self.yy += value * value
        self.xx = self.xx + np.outer(phi, phi)
        self.xy = self.xy + value * phi
        self.x = self.x + phi

    def state_dict(self) -> dict[str, Any]:
        state = {}
        for each in fields(self):
            state[each.name] = np.asarray(getattr(self, each.name)).tolist()
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "_Regression":
        return cls(
            n=state["n"],
            y=state["y"],
            yy=state["yy"],
            xx=np.array(state["xx"], np.float64),
            xy=np.array(state["xy"], np.float64),
            x=np.array(state["x"], np.float64),
        )


@SELECTORS.register("linear-thompson")
class LinearThompson(Selector):
    """The value of arm k is θ_k · φ(context) plus noise: draw each θ_k and take the best arm.

    θ_k is drawn from the posterior of a Bayesian linear regression per arm, with the prior
    N(0, 1 / λ) on each coefficient: A_k = λ I + Σ φ φᵀ, b_k = Σ φ y, θ_k ~ N(A_k⁻¹ b_k, s² A_k⁻¹)
    (Lattimore & Szepesvári, Bandit Algorithms, 2020, Chapter 36). Values y are standardized with
    the mean and the standard deviation of all values so far, and s² is estimated from the residuals
    of all arms, so the choices do not depend on the size and the sign of the values.

    The context is the first observation in `esbas.run`, and what you pass to `ask(context=...)` in
    a loop of your own.

    Args:
        arms: the names of the learners.
        features: φ, from the context to numbers; by default the context and a constant.
        ridge: λ.
        epochs: see `Selector`. With epochs, arms that are not stationary are forgotten when an
            epoch starts.
        stationary: see `Selector`.
        seed: seed of the posterior samples.
    """

    wants = frozenset({"context"})
    note_shape = COUNT  # the epoch

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
        require(ridge > 0, f"`ridge` must be greater than 0, but got {ridge!r}.")
        self._features = features
        self._ridge = ridge
        self._regressions = {arm: _Regression() for arm in self._arms}
        # The first value. The sums are of differences to it, so that little cancels.
        self._origin: float | None = None

    @np.errstate(over="ignore", invalid="ignore")  # values beyond 1e154 have infinite squares
    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        if context is None:
            raise InvalidValueError(
                "LinearThompson chooses by context, but got none: pass ask(context=...)."
            )
        phi = self._phi(context)
        mean, deviation = self._standard()
        noise = self._noise(mean, deviation)
        samples = {}
        for arm in sorted(among, key=self._arms.index):
            precision, moment = self._posterior(arm, len(phi), mean, deviation)
            factor = np.linalg.cholesky(precision)  # A = L Lᵀ, so L⁻ᵀ z ~ N(0, A⁻¹)
            normals = self.rng.standard_normal(len(phi))
            error = np.linalg.solve(factor.T, normals)
            theta = np.linalg.solve(precision, moment) + noise * error
            samples[arm] = float(theta @ phi)
        best = max(samples, key=samples.__getitem__)
        return Pick(best, propensity=None, note=self.epoch)

    def observe(
        self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None
    ) -> None:
        del evidence
        if note != self.epoch:
            return  # the value of an earlier policy
        assert choice.context is not None
        phi = self._phi(choice.context)
        if self._origin is None:
            self._origin = value
        self._regressions[choice.arm].add(phi, value - self._origin)

    def start_epoch(self) -> None:
        for arm in self._arms:
            if arm not in self._stationary:
                self._regressions[arm] = _Regression()

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        with self._lock:
            super().add_arm(name, stationary=stationary)
            self._regressions[name] = _Regression()

    def remove_arm(self, name: str) -> None:
        with self._lock:
            super().remove_arm(name)
            del self._regressions[name]

    def explain(self) -> dict[str, dict[str, float]]:
        """Return the number of values and their mean, too."""
        with self._lock:
            report = super().explain()
            for arm, row in report.items():
                regression = self._regressions[arm]
                row["pulls"] = regression.n
                row["mean"] = math.nan
                if regression.n and self._origin is not None:
                    row["mean"] = self._origin + regression.y / regression.n
            return report

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            saved = [self._regressions[arm].state_dict() for arm in self._arms]
            return super().state_dict() | {"regressions": saved, "origin": self._origin}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with self._lock:
            super().load_state_dict(state)
            self._regressions = {}
            for arm, saved in zip(self._arms, state["regressions"], strict=True):
                self._regressions[arm] = _Regression.from_state(saved)
            self._origin = state["origin"]

    def check_state(self, state: Any) -> None:
        super().check_state(state)
        schema.check(state, _STATE, "the state of a LinearThompson")
        _check_sizes(state)

    def _phi(self, context: tuple[float, ...]) -> Floats:
        """Return the features of the context, (d,)."""
        phi = np.asarray(self._features(context), np.float64)
        size = self._size()
        if size is None:
            size = len(phi)
        if phi.shape != (size,) or not np.isfinite(phi).all():
            raise InvalidValueError(
                f"Features must be {size} finite numbers, but got {schema.short(phi.tolist())} for "
                f"the context {schema.short(context)}."
            )
        return phi

    def _size(self) -> int | None:
        """Return the number of features, None without values."""
        for regression in self._regressions.values():
            if regression.n:
                return len(regression.x)
        return None

    def _standard(self) -> tuple[float, float]:
        """Return mean and standard deviation of all values; 1 while they are equal."""
        regressions = self._regressions.values()
        n = sum(each.n for each in regressions)
        if not n:
            return 0.0, 1.0
        mean = sum(each.y for each in regressions) / n
        mean_square = sum(each.yy for each in regressions) / n
        variance = mean_square - mean * mean
        if variance > 1e-12 * (1e-300 + mean_square):
            return mean, math.sqrt(variance)
        return mean, 1.0

    def _posterior(
        self, arm: str, size: int, mean: float, deviation: float
    ) -> tuple[Floats, Floats]:
        """Return A and b, for standardized values."""
        prior = self._ridge * np.eye(size)
        regression = self._regressions[arm]
        if not regression.n:
            return prior, np.zeros(size)
        return prior + regression.xx, (regression.xy - mean * regression.x) / deviation

    def _noise(self, mean: float, deviation: float) -> float:
        """Return s, the standard deviation of standardized values around the regressions.

        One value at distance 1 is the prior.
        """
        squares = 1.0
        n = 1
        for arm, each in self._regressions.items():
            if each.n:
                precision, moment = self._posterior(arm, len(each.x), mean, deviation)
                total = (each.yy - 2 * mean * each.y + each.n * mean * mean) / deviation**2
                explained = float(moment @ np.linalg.solve(precision, moment))
                squares += max(total - explained, 0.0)
                n += each.n
        return math.sqrt(squares / n)


_STATE = {
    "regressions": [
        {
            "n": COUNT,
            "y": float,
            "yy": Number(min=0),
            "xx": [[float]],
            "xy": [float],
            "x": [float],
        }
    ],
    "origin": AnyOf(float, None),
    str: object,
}


def _check_sizes(state: dict[str, Any]) -> None:
    regressions = state["regressions"]
    arms = len(state["arms"])
    require(
        len(regressions) == arms,
        f"The state of a LinearThompson must have one regression for each of its {arms} arms, "
        f"but has {len(regressions)}: go back to an earlier copy.",
    )
    played = [each for each in regressions if each["n"]]
    size = len(played[0]["x"]) if played else 0
    for each in regressions:
        expected = size if each["n"] else 0
        lengths = {len(each["xx"]), len(each["xy"]), len(each["x"])}
        lengths |= {len(row) for row in each["xx"]}
        require(
            lengths == {expected},
            f"The regressions of a LinearThompson must have {expected} features, "
            f"but one has {sorted(lengths)}: go back to an earlier copy.",
        )
