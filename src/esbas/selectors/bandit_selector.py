"""A bandit as a selector: directly on learning arms, or restarted in each epoch.

The base of ESBAS and SSBAS.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar

from esbas._internal import schema
from esbas.bandits.bandit import BanditFactory
from esbas.errors import require
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.scale import Scale, ScaleSpec
from esbas.selectors.selector import Selector


class BanditSelector(Selector):
    """Any bandit, never reset, on arms that learn. Subclasses may reset it in each epoch.

    Args:
        arms: the names of the learners.
        bandit: called as `bandit(n_arms, rng=generator)`, such as `esbas.UCB1` or
            `functools.partial(esbas.UCB1, xi=2)`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw
            values, as in the paper).
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
        # Where values are raw, the bandit keeps its own spread.
        if self._scaled and self.bandit.any_scale:
            self.bandit.spread = self._scale.spread

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        arms = self._arms
        bandit = self.bandit
        allowed = None if among is arms else [arms.index(name) for name in among]
        propensity: float | None
        if bandit.deterministic:
            index = bandit.choose(allowed)
            propensity = 1.0
        else:
            index, propensity = bandit.choose_with_propensity(allowed)
        ticket = bandit.pull(index, probability=propensity)
        return Pick(arms[index], propensity, ticket)

    def observe(
        self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None
    ) -> None:
        del evidence
        bandit = self.bandit
        if self._scaled:
            self._scale.see(value)
            if bandit.any_scale:
                bandit.spread = self._scale.spread
            else:
                # Rewards in [0, 1] cannot be rescaled afterwards: old values keep the scale of
                # their time, until the bandit forgets them.
                value = self._scale.unit(value)
        bandit.update(self._arms.index(choice.arm), value, pull=note)

    def forget(self, choice: Choice, *, note: Any) -> None:
        del choice
        self.bandit.withdraw(note)

    def start_epoch(self) -> None:
        if self.resets:
            # Rounds in flight are void: their values are counted as late, and never reach the
            # bandit of the new epoch.
            kept = [k for k, name in enumerate(self._arms) if name in self._stationary]
            self.bandit.reset(keep=kept)

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
        """Return what the bandit knows about each arm, too.

        These are pulls, mean, bonus and index, and what `Bandit.explain` returns.
        """
        with self._lock:
            counts = self.bandit.counts
            means = self.bandit.means
            indices = self.bandit.indices()
            more = self.bandit.explain()
            report = super().explain()
            for k, row in enumerate(report.values()):
                row["pulls"] = counts[k].item()
                row["mean"] = float(means[k])
                row["bonus"] = float(indices[k] - means[k])
                row["index"] = float(indices[k])
                for name, column in more.items():
                    row[name] = column[k].item()
            return report

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            return super().state_dict() | {
                "bandit": self.bandit.state_dict(),
                "scale": self._scale.state_dict(),
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where = f"the state of a {type(self).__name__}"
        with self._lock:
            self.check_state(state)
            try:
                with (
                    schema.restored_on_error(self.bandit, where),
                    schema.restored_on_error(self._scale, where),
                ):
                    self.bandit.load_state_dict(state["bandit"])
                    self._scale.load_state_dict(state["scale"])
                    arms = len(state["arms"])
                    n_arms = self.bandit.n_arms
                    require(
                        arms == n_arms,
                        f"The bandit in {where} must have {arms} arms, but has {n_arms}: "
                        "go back to an earlier copy.",
                    )
            finally:
                self._set_spread()
            super().load_state_dict(state)

    def check_state(self, state: Any) -> None:
        super().check_state(state)
        where = f"the state of a {type(self).__name__}"
        schema.check(state, {"bandit": dict, "scale": dict, str: object}, where)
