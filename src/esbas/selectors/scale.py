"""How values of any size and sign become what bandits expect: causally, from what has been seen so far."""

import math
from typing import Any, Literal

from esbas.errors import require

ScaleSpec = Literal["auto"] | tuple[float, float] | None


class Scale:
    """The range of the values: seen so far ("auto"), told ((low, high)), or not used (None: bandits see raw values)."""

    def __init__(self, spec: ScaleSpec) -> None:
        self._auto, self._raw = spec == "auto", spec is None
        self._low, self._high = math.inf, -math.inf
        if not self._auto and spec is not None:
            pair = isinstance(spec, tuple | list) and len(spec) == 2 and -math.inf < spec[0] < spec[1] < math.inf
            require(pair, 'scale is "auto", None or (low, high) with low < high', scale=spec)
            self._low, self._high = float(spec[0]), float(spec[1])

    def see(self, value: float) -> None:
        """Take note of a value."""
        if self._auto:
            self._low, self._high = min(self._low, value), max(self._high, value)

    @property
    def spread(self) -> float:
        """The width of the range; 1 while all values are equal, so that a bonus still tells arms apart."""
        width = self._high - self._low
        return width if not self._raw and 0 < width < math.inf else 1.0

    def unit(self, value: float) -> float:
        """The value mapped to [0, 1]; outside a told range, the nearest end; 1/2 while all values are equal."""
        if self._raw:
            return value
        width = self._high - self._low
        return min(max((value - self._low) / width, 0.0), 1.0) if 0 < width < math.inf else 0.5

    def state_dict(self) -> dict[str, Any]:
        """The range seen, None before the first value."""
        seen = self._low <= self._high
        return {"low": self._low if seen else None, "high": self._high if seen else None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        seen = state["low"] is not None
        self._low, self._high = (state["low"], state["high"]) if seen else (math.inf, -math.inf)
