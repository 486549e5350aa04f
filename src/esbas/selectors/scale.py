"""Makes values of any size and sign comparable."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from esbas._internal import schema
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.errors import InvalidValueError

ScaleSpec = Literal["auto"] | tuple[float, float] | None
HUGE = 1e295  # larger differences of values count as this: sums of many stay finite


@dataclass(slots=True)
class _Block:
    """Sums over some of the values, as differences to the first value of all."""

    count: int = 0
    total: float = 0.0
    deviations: float = 0.0  # absolute, from the mean of the recent values before them
    low: float = math.inf
    high: float = -math.inf


class Scale:
    """Makes values of any size and sign comparable, using only what has been seen so far.

    With "auto", `spread` is twice the mean absolute deviation of recent values from their mean: 1
    for fair coin flips of 0 and 1. `unit` maps the range of recent values, cut off at four
    deviations from their mean, to [0, 1]. Values are summed up in two blocks. After 4, 8, 16, ...
    values a new block starts and the older one is dropped, so that about the last half to three
    quarters of all values count: an outlier has little weight, and is forgotten.

    With (low, high) the range is given; with None bandits see raw values.
    """

    def __init__(self, spec: ScaleSpec) -> None:
        self._auto = spec == "auto"
        self._raw = spec is None
        self._low = 0.0
        self._high = 0.0
        self.spread = 1.0
        self._seen = 0
        self._origin = 0.0  # the first value: small differences to it keep their digits
        self._mean = 0.0  # of the recent values before the last one, as a difference to the first
        self._older = _Block()
        self._current = _Block()
        if spec is not None and not self._auto:
            if not _is_range(spec):
                raise InvalidValueError(
                    '`scale` must be "auto", None or (low, high) with low < high, '
                    f"but got {schema.short(spec)}."
                )
            self._low = float(spec[0])
            self._high = float(spec[1])
            self.spread = self._high - self._low

    def see(self, value: float) -> None:
        """Take a value into account."""
        if not self._auto:
            return
        self._seen += 1
        if self._seen == 1:
            self._origin = value
        elif self._seen >= 4 and self._seen & (self._seen - 1) == 0:  # a power of two
            self._older = self._current
            self._current = _Block()
        older = self._older
        current = self._current
        difference = value - self._origin
        if not -HUGE < difference < HUGE:
            difference = math.copysign(HUGE, difference)
        count = older.count + current.count
        total = older.total + current.total
        distance = difference - total / count if count else 0.0
        current.count += 1
        current.total += difference
        current.deviations += distance if distance >= 0 else -distance
        if difference < current.low:
            current.low = difference
        if difference > current.high:
            current.high = difference
        self._mean = difference - distance
        self.spread = _positive(2 * (older.deviations + current.deviations) / (count + 1))

    def range(self) -> tuple[float, float]:
        """Return what is mapped to 0 and 1.

        It is the given range, or that of recent values, cut off at four deviations from their mean.
        """
        if not self._auto or not self._seen:
            return self._low, self._high
        reach = 4 * self._deviation()
        low = max(min(self._older.low, self._current.low), self._mean - reach)
        high = min(max(self._older.high, self._current.high), self._mean + reach)
        return self._origin + low, self._origin + high

    def _deviation(self) -> float:
        """Return the mean absolute deviation of recent values, 0 without values."""
        count = self._older.count + self._current.count
        deviations = self._older.deviations + self._current.deviations
        return deviations / count if count else 0.0

    def unit(self, value: float) -> float:
        """Return the value mapped to [0, 1], clipped to the range; 1/2 while all are equal."""
        if self._raw:
            return value
        low, high = self.range()
        width = high - low
        if not 0 < width < math.inf:
            return 0.5
        return min(max((value - low) / width, 0.0), 1.0)

    def state_dict(self) -> dict[str, Any]:
        blocks = []
        ranges = []
        for block in (self._older, self._current):
            blocks.append([block.count, block.total, block.deviations])
            ranges.append([block.low, block.high] if block.count else None)
        return {
            "seen": self._seen,
            "origin": self._origin,
            "mean": self._mean,
            "blocks": blocks,
            "ranges": ranges,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        schema.check(state, _STATE, "the state of a scale")
        self._seen = state["seen"]
        self._origin = state["origin"]
        self._mean = state["mean"]
        self._older = _loaded(state["blocks"][0], state["ranges"][0])
        self._current = _loaded(state["blocks"][1], state["ranges"][1])
        if self._auto:
            self.spread = _positive(2 * self._deviation())


_SUMS = (COUNT, float, Number(min=0))
_LIMITS = AnyOf((float, float), None)
_STATE = {
    "seen": COUNT,
    "origin": float,
    "mean": float,
    "blocks": (_SUMS, _SUMS),
    "ranges": (_LIMITS, _LIMITS),
}


def _positive(spread: float) -> float:
    """Return the spread; 1 while all values are equal."""
    return spread if 0 < spread < math.inf else 1.0


def _loaded(sums: list[float], limits: list[float] | None) -> _Block:
    count, total, deviations = sums
    block = _Block(int(count), total, deviations)
    if limits is not None:
        block.low, block.high = limits
    return block


def _is_range(spec: Any) -> bool:
    if not isinstance(spec, tuple | list) or len(spec) != 2:
        return False
    low, high = spec
    return bool(-math.inf < low < high < math.inf)
