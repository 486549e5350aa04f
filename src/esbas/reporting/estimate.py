"""Means over independent runs with 95 % Student-t intervals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from esbas.errors import require

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean over runs; `mean ± ci95` is its 95 % confidence interval. With a single run, `ci95` is NaN (unknown)."""

    mean: float
    ci95: float
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; an unknown interval is None."""
        return {"mean": self.mean, "ci95": self.ci95 if math.isfinite(self.ci95) else None, "runs": self.runs}

    @property
    def decimals(self) -> int | None:
        """Decimals that show one digit of the interval, or two if they are below 3.55. None if it is unknown or 0."""
        if not math.isfinite(self.ci95) or self.ci95 <= 1e-12 * abs(self.mean):  # 0 up to rounding
            return None
        mantissa, exponent = f"{self.ci95:.2e}".split("e")
        return max(0, (float(mantissa) < 3.55) - int(exponent))

    def __str__(self) -> str:
        """Rounded according to the interval: `21.01 ± 0.05`, `2.0 ± 2.5`."""
        return self.text(".4g" if self.decimals is None else f".{self.decimals}f")

    def text(self, style: str) -> str:
        """Mean and interval in a format of Python, such as `.2f`."""
        if not math.isfinite(self.ci95):
            return format(self.mean, style)
        return f"{self.mean:{style}} ± {0 if self.decimals is None else format(self.ci95, style)}"


def estimate(samples: ArrayLike) -> Estimate:
    """Estimate a mean from one number per run, (R,)."""
    values = np.asarray(samples, np.float64)
    require(values.ndim == 1, "samples are one number per run", shape=values.shape)
    require(bool(np.isfinite(values).all()), "samples are finite", samples=samples)
    mean, ci95 = estimates(values)
    return Estimate(float(mean), float(ci95), len(values))


def estimates(samples: ArrayLike) -> tuple[Floats, Floats]:
    """Means over runs, the first axis, and half widths of their intervals: (R, ...) -> (...), (...)."""
    values = np.asarray(samples, np.float64)
    require(values.ndim >= 1 and len(values) >= 1, "there is at least one run", shape=values.shape)
    runs, mean = len(values), values.mean(axis=0)
    if runs == 1:
        return mean, np.full_like(mean, np.nan)
    return mean, stdtrit(runs - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(runs)
