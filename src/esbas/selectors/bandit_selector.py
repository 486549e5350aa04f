"""A bandit as a selector: directly on learning arms, and the base of ESBAS and SSBAS."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from esbas.bandits import BanditFactory
from esbas.selectors.epochs import Epochs
from esbas.selectors.scale import Scale, ScaleSpec
from esbas.selectors.selector import Selector


class BanditSelector(Selector):
    """Any bandit, never reset, on arms that learn.

    Args:
        arms: the names of the learners.
        bandit: called as `bandit(n_arms, rng=generator)`, such as `esbas.UCB1` or `functools.partial(esbas.UCB1, xi=2)`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw values, as in the paper).
        epochs, stationary: see Selector.
        seed: of the selector's and its bandit's random stream.
    """

    def __init__(
        self,
        arms: Iterable[str],
        *,
        bandit: BanditFactory,
        scale: ScaleSpec = "auto",
        epochs: Sequence[int] | Epochs | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        super().__init__(arms, epochs=epochs, stationary=stationary, seed=seed)
        self.bandit = bandit(len(self._arms), rng=self.rng)
        self._scale = Scale(scale)
        self._tells_spread = self.bandit.any_scale and scale is not None

    def _pick(self, among: list[int] | None) -> int:
        self._tell_spread()
        return self.bandit.choose(among)

    def _tell_spread(self) -> None:
        if self._tells_spread:  # where values are raw, a bandit's own spread counts
            self.bandit.spread = self._scale.spread

    def _begin(self, index: int) -> int:
        return self.bandit.pull(index)

    def _take(self, index: int, value: float, ticket: int) -> None:
        self._scale.see(value)
        self._tell_spread()
        reward = value if self.bandit.any_scale else self._scale.unit(value)
        self.bandit.update(index, reward, pull=ticket)

    def _drop(self, ticket: int) -> None:
        self.bandit.withdraw(ticket)

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        """Add an arm; it is unplayed."""
        super().add_arm(name, stationary=stationary)
        self.bandit.add_arm()

    def remove_arm(self, name: str) -> None:
        """Remove an arm."""
        index = self._index(name)
        super().remove_arm(name)
        self.bandit.remove_arm(index)

    def explain(self) -> dict[str, dict[str, float]]:
        """Per arm what the bandit knows (pulls, mean, bonus, index), and selections so far, open choices, late values."""
        self._tell_spread()
        columns = self.bandit.counts, self.bandit.means, self.bandit.indices()
        report = super().explain()
        for row, pulls, mean, index in zip(report.values(), *columns, strict=True):
            row |= {"pulls": pulls.item(), "mean": float(mean), "bonus": float(index - mean), "index": float(index)}
        return report

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return super().state_dict() | {"bandit": self.bandit.state_dict(), "scale": self._scale.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the selector that `state_dict` told of."""
        super().load_state_dict(state)
        self.bandit.load_state_dict(state["bandit"])
        self._scale.load_state_dict(state["scale"])
