"""Any bandit on a sliding window."""

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from numpy.typing import NDArray

from esbas._internal import schema
from esbas._internal.schema import COUNT
from esbas.bandits.bandit import Bandit, BanditFactory, Floats, Rng, no_such_arm
from esbas.bandits.memory_bandit import ARMS
from esbas.bandits.window import Window
from esbas.errors import require

Size = Callable[[int], int]


def on_window(bandit: BanditFactory, *, size: Size) -> BanditFactory:
    """Return the bandit on the last `size(τ)` rounds before round τ.

    The window is exact if the bandit takes a `memory`; otherwise, see `Staggered`.
    """
    takes_memory = "memory" in inspect.signature(bandit).parameters
    return partial(_exact if takes_memory else Staggered, bandit=bandit, size=size)


def _exact(n_arms: int, *, bandit: BanditFactory, size: Size, rng: Rng = None) -> Bandit:
    return bandit(n_arms, memory=Window(n_arms, size=size), rng=rng)


class Staggered(Bandit):
    """A window for bandits that cannot forget single rounds.

    It has two copies of the bandit that started at different times. The older copy chooses, and
    both learn from all rewards. When the older copy has seen more rounds than the window holds, it
    is dropped and the younger one takes over; once that has seen half as many, a new copy starts.
    So the choice depends on between about a half and the whole of the window. Work per round is
    that of two bandits.

    Args:
        n_arms: K.
        bandit: creates the copies.
        size: the size of the window before round τ; it may grow with τ.
        rng: for both copies.
    """

    def __init__(self, n_arms: int, *, bandit: BanditFactory, size: Size, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self._factory = bandit
        self._size = size
        self._rounds = 0
        # By the number of rounds before their start; the older one is the first.
        self._copies: dict[int, Bandit] = {0: self._new(n_arms)}
        self.any_scale = self._older.any_scale
        # By ticket: the arm, and the tickets of the copies by their start.
        self._open: dict[int, tuple[int, dict[int, int]]] = {}

    def _new(self, n_arms: int) -> Bandit:
        return self._factory(n_arms, rng=self.rng)

    @property
    def _older_start(self) -> int:
        return next(iter(self._copies))

    @property
    def _older(self) -> Bandit:
        return self._copies[self._older_start]

    @property
    def spread(self) -> float:
        """The width of the range of rewards."""
        return self._older.spread

    @spread.setter
    def spread(self, width: float) -> None:
        for copy in self._copies.values():
            copy.spread = width

    def choose(self, among: Collection[int] | None = None) -> int:
        return self._older.choose(among)

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float | None:
        return self._older.propensity(arm, among)

    def choose_with_propensity(
        self, among: Collection[int] | None = None
    ) -> tuple[int, float | None]:
        return self._older.choose_with_propensity(among)

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round in both copies, with the probability that the arm had in the older one."""
        if not 0 <= arm < self.n_arms:
            raise no_such_arm(arm, self.n_arms)
        if probability is None:
            probability = self._older.propensity(arm)
        tickets = {}
        for start, copy in self._copies.items():
            tickets[start] = copy.pull(arm, probability=probability)
        self._rounds += 1
        self._open[self._rounds] = (arm, tickets)
        self._replace_copies()
        return self._rounds

    def _replace_copies(self) -> None:
        size = max(self._size(self._rounds + 1), 1)
        if len(self._copies) == 2 and self._rounds - self._older_start > size:
            del self._copies[self._older_start]
        if len(self._copies) == 1 and 2 * (self._rounds - self._older_start) >= size:
            spread = self.spread
            self._copies[self._rounds] = self._new(self.n_arms)
            self.spread = spread

    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        """End the round in those copies in which it started."""
        self._older.check(reward)
        ticket = self.pull(arm) if pull is None else pull
        for copy, copy_ticket in self._close(ticket):
            copy.update(arm, reward, pull=copy_ticket)

    def _close(self, ticket: int) -> list[tuple[Bandit, int]]:
        """Forget a round, and return the copies in which it is in flight with their tickets."""
        if ticket not in self._open:
            return []
        _, tickets = self._open.pop(ticket)
        found = []
        for start, copy_ticket in tickets.items():
            if start in self._copies:
                found.append((self._copies[start], copy_ticket))
        return found

    def withdraw(self, pull: int) -> None:
        for copy, ticket in self._close(pull):
            copy.withdraw(ticket)

    def reset(self, keep: Collection[int] = ()) -> None:
        self._open.clear()
        for copy in self._copies.values():
            copy.reset(keep)

    def add_arm(self) -> None:
        self.n_arms += 1
        for copy in self._copies.values():
            copy.add_arm()

    def remove_arm(self, arm: int) -> None:
        for copy in self._copies.values():
            copy.remove_arm(arm)
        self.n_arms -= 1
        remaining = {}
        for ticket, (k, tickets) in self._open.items():
            if k != arm:
                remaining[ticket] = (k - 1 if k > arm else k, tickets)
        self._open = remaining

    def indices(self) -> Floats:
        return self._older.indices()

    @property
    def counts(self) -> NDArray[Any]:
        return self._older.counts

    @property
    def means(self) -> Floats:
        return self._older.means

    def explain(self) -> dict[str, NDArray[Any]]:
        return self._older.explain()

    def state_dict(self) -> dict[str, Any]:
        copies = [[start, copy.state_dict()] for start, copy in self._copies.items()]
        opened = []
        for ticket, (arm, tickets) in self._open.items():
            opened.append([ticket, arm, [list(pair) for pair in tickets.items()]])
        return {"n_arms": self.n_arms, "rounds": self._rounds, "copies": copies, "open": opened}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        A state that does not fit raises an error and changes nothing.
        """
        schema.check(state, STATE, f"the state of a {type(self).__name__}")
        n_arms = state["n_arms"]
        copies = {}
        for start, saved in state["copies"]:
            copy = self._new(n_arms)
            copy.load_state_dict(saved)
            require(
                copy.n_arms == n_arms,
                f"A copy of a bandit with {n_arms} arms must have as many, but has {copy.n_arms}: "
                "go back to an earlier copy of the state.",
            )
            copies[start] = copy
        require(
            len(copies) in (1, 2),
            f"A bandit must have one or two copies, but got {len(copies)}: "
            "go back to an earlier copy of the state.",
        )
        self.n_arms = n_arms
        self._rounds = state["rounds"]
        self._copies = copies
        self._open = {ticket: (arm, dict(tickets)) for ticket, arm, tickets in state["open"]}


STATE = {
    "n_arms": ARMS,
    "rounds": COUNT,
    "copies": [(COUNT, object)],
    "open": [(COUNT, COUNT, [(COUNT, int)])],
}
