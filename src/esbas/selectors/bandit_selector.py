"""A bandit as a selector: directly on learning arms, or restarted in each epoch. The base of ESBAS and SSBAS."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from esbas import schema
from esbas.bandits.bandit import BanditFactory
from esbas.errors import require
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.selector import Selector

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

    With "auto", `spread` is twice the mean absolute deviation of recent values from their mean: 1 for fair coin flips of 0 and 1.
    `unit` maps the range of recent values, cut off at four deviations from their mean, to [0, 1]. Values are summed up in two
    blocks. After 4, 8, 16, ... values a new block starts and the older one is dropped, so that about the last half to three
    quarters of all values count: an outlier has little weight, and is forgotten.

    With (low, high) the range is given; with None bandits see raw values.
    """

    def __init__(self, spec: ScaleSpec) -> None:
        self._auto, self._raw = spec == "auto", spec is None
        self._low, self._high, self.spread = 0.0, 0.0, 1.0
        self._seen, self._origin = 0, 0.0  # the first value: small differences to it keep their digits
        self._mean = 0.0  # of the recent values before the last one, as a difference to the first
        self._older, self._current = _Block(), _Block()
        if not self._auto and spec is not None:
            pair = isinstance(spec, tuple | list) and len(spec) == 2 and -math.inf < spec[0] < spec[1] < math.inf
            require(pair, 'scale is "auto", None or (low, high) with low < high', scale=spec)
            self._low, self._high = float(spec[0]), float(spec[1])
            self.spread = self._high - self._low

    def see(self, value: float) -> None:
        """Take a value into account."""
        if not self._auto:
            return
        self._seen += 1
        if self._seen == 1:
            self._origin = value
        elif self._seen & (self._seen - 1) == 0 and self._seen >= 4:  # a power of two
            self._older, self._current = self._current, _Block()
        older, current, difference = self._older, self._current, value - self._origin
        if not -HUGE < difference < HUGE:
            difference = math.copysign(HUGE, difference)
        count, total = older.count + current.count, older.total + current.total
        distance = difference - total / count if count else 0.0
        current.count += 1
        current.total += difference
        current.deviations += distance if distance >= 0 else -distance
        if difference < current.low:
            current.low = difference
        if difference > current.high:
            current.high = difference
        spread = 2 * (older.deviations + current.deviations) / (count + 1)
        self.spread = spread if 0 < spread < math.inf else 1.0
        self._mean = difference - distance

    def range(self) -> tuple[float, float]:
        """What is mapped to 0 and 1: the given range, or that of recent values, cut off at four deviations from their mean."""
        if self._auto and self._seen:
            older, current, reach = self._older, self._current, 4 * self._deviation()
            low = max(min(older.low, current.low), self._mean - reach)
            return self._origin + low, self._origin + min(max(older.high, current.high), self._mean + reach)
        return self._low, self._high

    def _deviation(self) -> float:
        older, current = self._older, self._current
        return (older.deviations + current.deviations) / (older.count + current.count)

    def unit(self, value: float) -> float:
        """The value mapped to [0, 1], clipped to the range; 1/2 while all values are equal."""
        if self._raw:
            return value
        low, high = self.range()
        width = high - low
        return min(max((value - low) / width, 0.0), 1.0) if 0 < width < math.inf else 0.5

    def state_dict(self) -> dict[str, Any]:
        blocks = [[each.count, each.total, each.deviations] for each in (self._older, self._current)]
        ranges = [[each.low, each.high] if each.count else None for each in (self._older, self._current)]
        return {"seen": self._seen, "origin": self._origin, "mean": self._mean, "blocks": blocks, "ranges": ranges}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where, count = "the state of a scale", schema.COUNT
        block, limits = (count, float, schema.Number(min=0)), schema.AnyOf((float, float), None)
        shape = {"seen": count, "origin": float, "mean": float, "blocks": (block, block), "ranges": (limits, limits)}
        schema.check(state, shape, where)
        fits = [(sums[0] == 0) == (pair is None) for sums, pair in zip(state["blocks"], state["ranges"], strict=True)]
        schema.require(all(fits), "a block has a range if it has values", where, blocks=state["blocks"], ranges=state["ranges"])
        counted, seen = sum(sums[0] for sums in state["blocks"]), state["seen"]
        recent = counted <= seen and (counted > 0) == (seen > 0)
        schema.require(recent, "the blocks contain recent values", where, values=counted, seen=seen)
        self._seen, self._origin, self._mean = state["seen"], state["origin"], state["mean"]
        pairs = zip(state["blocks"], state["ranges"], strict=True)
        self._older, self._current = (_Block(*sums, *(limits or ())) for sums, limits in pairs)
        if self._auto:
            spread = 2 * self._deviation() if self._seen else 0.0
            self.spread = spread if 0 < spread < math.inf else 1.0


class BanditSelector(Selector):
    """Any bandit, never reset, on arms that learn. Subclasses may reset it in each epoch.

    Args:
        arms: the names of the learners.
        bandit: called as `bandit(n_arms, rng=generator)`, such as `esbas.UCB1` or `functools.partial(esbas.UCB1, xi=2)`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw values, as in the paper).
        epochs: see `Selector`.
        stationary: see `Selector`.
        seed: seed of the selector's and its bandit's random stream.
    """

    resets: ClassVar[bool] = False
    """Whether the bandit is reset when an epoch starts, except for stationary arms."""
    note_shape = schema.COUNT  # the bandit's ticket

    def __init__(
        self,
        arms: Iterable[str],
        *,
        bandit: BanditFactory,
        scale: ScaleSpec = "auto",
        epochs: Sequence[int] | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        super().__init__(arms, epochs=epochs, stationary=stationary, seed=seed)
        self.bandit = bandit(len(self._arms), rng=self.rng)
        if self.bandit.uses_costs:
            self.wants = frozenset({"length"})
        self._scale = Scale(scale)
        self._scaled = scale is not None
        self._set_spread()

    def _set_spread(self) -> None:
        if self._scaled and self.bandit.any_scale:  # where values are raw, the bandit's own spread is used
            self.bandit.spread = self._scale.spread

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        arms, bandit = self._arms, self.bandit
        allowed = None if among is arms else [arms.index(name) for name in among]
        index, propensity = (bandit.choose(allowed), 1.0) if bandit.deterministic else bandit.choose_with_propensity(allowed)
        return Pick(arms[index], propensity, bandit.pull(index, probability=propensity))

    def observe(self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None) -> None:
        bandit, index = self.bandit, self._arms.index(choice.arm)
        if evidence is not None and bandit.uses_costs:
            bandit.spend(index, max(len(evidence.trajectory), 1))
        if self._scaled:
            self._scale.see(value)
            if bandit.any_scale:
                bandit.spread = self._scale.spread
            else:  # it cannot be rescaled afterwards: old values keep the scale of their time, until the bandit forgets them
                value = self._scale.unit(value)
        bandit.update(index, value, pull=note)

    def forget(self, choice: Choice, *, note: Any) -> None:
        del choice
        self.bandit.withdraw(note)

    def start_epoch(self) -> None:
        if self.resets:  # voids the rounds in flight: their values are counted as late and never reach the new epoch's bandit
            self.bandit.reset(keep=[self._arms.index(name) for name in self._stationary] if self._stationary else ())

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        with self._lock:
            super().add_arm(name, stationary=stationary)
            self.bandit.add_arm()

    def remove_arm(self, name: str) -> None:
        with self._lock:
            index = self._index(name)
            super().remove_arm(name)
            self.bandit.remove_arm(index)

    def explain(self) -> dict[str, dict[str, float]]:
        """Adds what the bandit knows about each arm: pulls, mean, bonus, index, and what `Bandit.explain` returns."""
        with self._lock:
            columns = self.bandit.counts, self.bandit.means, self.bandit.indices()
            report = super().explain()
            for row, pulls, mean, index in zip(report.values(), *columns, strict=True):
                row |= {"pulls": pulls.item(), "mean": float(mean), "bonus": float(index - mean), "index": float(index)}
            for name, column in self.bandit.explain().items():
                for row, value in zip(report.values(), column.tolist(), strict=True):
                    row[name] = value
            return report

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            return super().state_dict() | {"bandit": self.bandit.state_dict(), "scale": self._scale.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where = f"the state of a {type(self).__name__}"
        with self._lock:
            self.check_state(state)
            try:
                with schema.restored_on_error(self.bandit, where), schema.restored_on_error(self._scale, where):
                    self.bandit.load_state_dict(state["bandit"])
                    self._scale.load_state_dict(state["scale"])
                    arms, n_arms = len(state["arms"]), self.bandit.n_arms
                    schema.require(arms == n_arms, "the bandit has all arms", where, arms=arms, n_arms=n_arms)
            finally:
                self._set_spread()
            super().load_state_dict(state)

    def check_state(self, state: Any) -> None:
        super().check_state(state)
        where = f"the state of a {type(self).__name__}"
        schema.check(state, {"bandit": dict, "scale": dict, str: object}, where)
        tickets = [ticket for _, ticket, known in state["open"] if known]
        schema.require(len(set(tickets)) == len(tickets), "open choices have different tickets", where, tickets=tickets)
