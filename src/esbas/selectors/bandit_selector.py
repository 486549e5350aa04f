"""A bandit as a selector: directly on learning arms, or restarted in each epoch. The base of ESBAS and SSBAS."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, Literal

from esbas import schema
from esbas.bandits.bandit import BanditFactory
from esbas.errors import require
from esbas.evidence import Evidence
from esbas.selectors.selector import Choice, Pick, Selector

ScaleSpec = Literal["auto"] | tuple[float, float] | None


class Scale:
    """Makes values of any size and sign comparable, from what has been seen so far.

    The range of the values is that seen so far ("auto"), given ((low, high)), or not used (None: bandits see raw values).
    """

    def __init__(self, spec: ScaleSpec) -> None:
        self._auto, self._raw = spec == "auto", spec is None
        self._low, self._high, self.spread = math.inf, -math.inf, 1.0
        if not self._auto and spec is not None:
            pair = isinstance(spec, tuple | list) and len(spec) == 2 and -math.inf < spec[0] < spec[1] < math.inf
            require(pair, 'scale is "auto", None or (low, high) with low < high', scale=spec)
            self._low, self._high = float(spec[0]), float(spec[1])
            self.spread = self._high - self._low

    def see(self, value: float) -> None:
        """Take a value into account: `spread` is the width of the range, 1 while all values are equal."""
        if self._auto:
            self._low, self._high = min(self._low, value), max(self._high, value)
            width = self._high - self._low
            self.spread = width if 0 < width < math.inf else 1.0

    def unit(self, value: float) -> float:
        """The value mapped to [0, 1]; clipped to a given range; 1/2 while all values are equal."""
        if self._raw:
            return value
        width = self._high - self._low
        return min(max((value - self._low) / width, 0.0), 1.0) if 0 < width < math.inf else 0.5

    def state_dict(self) -> dict[str, Any]:
        """The range seen, None before the first value."""
        seen = self._low <= self._high
        return {"low": self._low if seen else None, "high": self._high if seen else None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where, number = "the state of a scale", schema.AnyOf(float, None)
        schema.check(state, {"low": number, "high": number}, where)
        low, high = state["low"], state["high"]
        fits = low is high is None or (low is not None and high is not None and low <= high)
        schema.require(fits, "low <= high, or both are None", where, low=low, high=high)
        if low is None:
            self._low, self._high, self.spread = math.inf, -math.inf, 1.0
        else:
            self._low, self._high = state["low"], state["high"]
            width = self._high - self._low
            self.spread = width if 0 < width < math.inf else 1.0


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
        del evidence
        bandit = self.bandit
        if self._scaled:
            self._scale.see(value)
            if bandit.any_scale:
                bandit.spread = self._scale.spread
            else:
                value = self._scale.unit(value)
        bandit.update(self._arms.index(choice.arm), value, pull=note)

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
        """Adds what the bandit knows about each arm: pulls, mean, bonus, index."""
        with self._lock:
            columns = self.bandit.counts, self.bandit.means, self.bandit.indices()
            report = super().explain()
            for row, pulls, mean, index in zip(report.values(), *columns, strict=True):
                row |= {"pulls": pulls.item(), "mean": float(mean), "bonus": float(index - mean), "index": float(index)}
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
