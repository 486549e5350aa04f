"""Means over independent runs or episodes with 95 % Student-t intervals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from esbas.errors import InvalidValueError, require

Floats = NDArray[np.float64]

FEWEST = 3
"""Numbers without which an interval is not shown."""
MANY = 10
"""Numbers from which on an interval is shown even if it is wider than the mean is large."""


@dataclass(frozen=True, repr=False)
class Estimate:
    """A mean; `mean ± ci95` is its 95 % confidence interval.

    >>> estimate([18, 20, 22])
    Estimate(20 ± 5, 3 runs)

    An interval that would say nothing is not shown, but the object has it.

    >>> str(estimate([150, 514], over="episodes"))
    '332 over 2 episodes'

    Attributes:
        mean: of one number per run, or per episode.
        ci95: half of the width of the interval. NaN (unknown) if there is only one number.
        runs: how many numbers there are.
        over: what they are numbers of. "runs": the interval covers what other runs would give.
            "episodes": all of them are from one run, so it covers other episodes of that run only.
    """

    mean: float
    ci95: float
    runs: int
    over: str = "runs"

    @property
    def low(self) -> float:
        """The lower end of the interval; NaN if it is unknown."""
        return self.mean - self.ci95

    @property
    def high(self) -> float:
        """The upper end of the interval; NaN if it is unknown."""
        return self.mean + self.ci95

    def __float__(self) -> float:
        return self.mean

    @property
    def count(self) -> str:
        """How many numbers there are, in words: "2 episodes"."""
        unit = self.over if self.runs != 1 else self.over.removesuffix("s")
        return f"{self.runs} {unit}"

    @property
    def shows_interval(self) -> bool:
        """Whether the interval helps a reader: not if it is of very few numbers, or very wide."""
        if not math.isfinite(self.ci95) or self.runs < FEWEST:
            return False
        return self.runs >= MANY or self.ci95 <= abs(self.mean)

    def __repr__(self) -> str:
        return f"Estimate({self.short_text}, {self.count})"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; an unknown interval is None."""
        return {
            "mean": self.mean,
            "ci95": self.ci95 if math.isfinite(self.ci95) else None,
            "runs": self.runs,
        }

    @property
    def decimals(self) -> int | None:
        """Decimals that show one digit of the interval, or two if they are below 3.55.

        None if the interval is unknown or 0.
        """
        if not math.isfinite(self.ci95) or self._is_exact:
            return None
        mantissa, exponent = f"{self.ci95:.2e}".split("e")
        return max(0, (float(mantissa) < 3.55) - int(exponent))

    @property
    def _is_exact(self) -> bool:
        """Whether the interval is 0, up to rounding."""
        return self.ci95 <= 1e-12 * abs(self.mean)

    def __str__(self) -> str:
        """Return the text for people, rounded according to the interval: `21.01 ± 0.05`."""
        if self.shows_interval:
            return self.interval_text()
        return self.text(".4g")

    @property
    def short_text(self) -> str:
        """The same for a sentence that already says how many numbers there are."""
        return str(self) if self.shows_interval else f"{self.mean:.4g}"

    def text(self, style: str) -> str:
        """Return the text for people, with numbers in a format of Python, such as `.2f`.

        Instead of an interval that is not shown, it says how many numbers there are. A single run
        needs no such remark.
        """
        if self.shows_interval:
            return self.interval_text(style)
        mean = format(self.mean, style)
        is_single_run = self.runs == 1 and self.over == "runs"
        return mean if is_single_run else f"{mean} over {self.count}"

    def interval_text(self, style: str | None = None) -> str:
        """Return mean and interval, also where people would not be shown the interval.

        Args:
            style: a format of Python. Default: as many decimals as the interval needs.
        """
        if style is None:
            style = ".4g" if self.decimals is None else f".{self.decimals}f"
        mean = format(self.mean, style)
        if not math.isfinite(self.ci95):
            return mean
        interval = "0" if self._is_exact else format(self.ci95, style)
        return f"{mean} ± {interval}"


def estimate(samples: ArrayLike, *, over: str = "runs") -> Estimate:
    """Estimate a mean from one number per run, or per episode of one run, (R,).

    Args:
        samples: the numbers, which must be independent of each other.
        over: what they are numbers of: "runs" or "episodes".
    """
    values = np.asarray(samples, np.float64)
    rule = "`samples` must have one number per run"
    require(values.ndim == 1, f"{rule}, but got the shape {values.shape}.")
    if not np.isfinite(values).all():
        raise InvalidValueError(f"`samples` must be finite, but got {samples!r}.")
    mean, ci95 = estimates(values)
    return Estimate(float(mean), float(ci95), len(values), over)


def estimates(samples: ArrayLike) -> tuple[Floats, Floats]:
    """Return means over runs, and half the widths of their intervals: (R, ...) -> (...), (...).

    Runs are the first axis.
    """
    values = np.asarray(samples, np.float64)
    has_runs = values.ndim >= 1 and len(values) >= 1
    require(has_runs, f"`samples` must have at least one run, but got the shape {values.shape}.")
    runs = len(values)
    mean = values.mean(axis=0)
    if runs == 1:
        return mean, np.full_like(mean, np.nan)
    return mean, stdtrit(runs - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(runs)
