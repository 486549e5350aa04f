"""Any bandit on a sliding window."""

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from numpy.typing import NDArray

from esbas import schema
from esbas.bandits.bandit import Bandit, BanditFactory, Floats, Rng
from esbas.bandits.memory_bandit import ARMS
from esbas.bandits.window import Window
from esbas.errors import require
from esbas.schema import COUNT

Size = Callable[[int], int]


def on_window(bandit: BanditFactory, *, size: Size) -> BanditFactory:
    """The bandit on the last `size(τ)` rounds before round τ: exactly if it takes a `memory`, otherwise by `Staggered`."""
    takes_memory = "memory" in inspect.signature(bandit).parameters
    return partial(_exact if takes_memory else Staggered, bandit=bandit, size=size)


def _exact(n_arms: int, *, bandit: BanditFactory, size: Size, rng: Rng = None) -> Bandit:
    return bandit(n_arms, memory=Window(n_arms, size=size), rng=rng)


class Staggered(Bandit):
    """A window for bandits that cannot forget single rounds: two copies that started at different times.

    The older copy chooses, and both learn from all rewards. When the older copy has seen more rounds than the window holds, it is
    dropped and the younger one takes over; once that has seen half as many, a new copy starts. So the choice depends on between
    about a half and the whole of the window. Work per round is that of two bandits.

    Args:
        n_arms: K.
        bandit: creates the copies.
        size: size of the window before round τ; it may grow with τ.
        rng: for both copies.
    """

    def __init__(self, n_arms: int, *, bandit: BanditFactory, size: Size, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self._factory, self._size, self._rounds = bandit, size, 0
        self._copies: dict[int, Bandit] = {0: self._new(n_arms)}  # key: the rounds before its start; the older one first
        self.any_scale = self._older.any_scale
        self._open: dict[int, tuple[int, dict[int, int]]] = {}  # ticket -> arm, and by key of a copy its ticket

    def _new(self, n_arms: int) -> Bandit:
        return self._factory(n_arms, rng=self.rng)

    @property
    def _older(self) -> Bandit:
        return next(iter(self._copies.values()))

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

    def choose_with_propensity(self, among: Collection[int] | None = None) -> tuple[int, float | None]:
        return self._older.choose_with_propensity(among)

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round in both copies, with the probability that the arm had in the older one."""
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        if probability is None:
            probability = self._older.propensity(arm)
        tickets = {start: copy.pull(arm, probability=probability) for start, copy in self._copies.items()}
        self._rounds += 1
        self._open[self._rounds] = arm, tickets
        self._replace_copies()
        return self._rounds

    def _replace_copies(self) -> None:
        size = max(self._size(self._rounds + 1), 1)
        start = next(iter(self._copies))
        if self._rounds - start > size and len(self._copies) == 2:
            del self._copies[start]
            start = next(iter(self._copies))
        if len(self._copies) == 1 and 2 * (self._rounds - start) >= size:
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
        _, tickets = self._open.pop(ticket, (0, {}))
        return [(self._copies[start], ticket) for start, ticket in tickets.items() if start in self._copies]

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
        self._open = {ticket: (k - (k > arm), tickets) for ticket, (k, tickets) in self._open.items() if k != arm}

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
        opened = [[ticket, arm, [list(pair) for pair in tickets.items()]] for ticket, (arm, tickets) in self._open.items()]
        return {"n_arms": self.n_arms, "rounds": self._rounds, "copies": copies, "open": opened}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. A state that does not fit raises an error and changes nothing."""
        where, opened = f"the state of a {type(self).__name__}", [(COUNT, COUNT, [(COUNT, int)])]
        schema.check(state, {"n_arms": ARMS, "rounds": COUNT, "copies": [(COUNT, object)], "open": opened}, where)
        n_arms, rounds, starts = state["n_arms"], state["rounds"], [start for start, _ in state["copies"]]
        fits = len(starts) in (1, 2) and starts == sorted(set(starts)) and starts[-1] <= rounds
        schema.require(fits, "there are one or two copies, the older one first", where, starts=starts, rounds=rounds)
        tickets = [ticket for ticket, *_ in state["open"]]
        fits = len(set(tickets)) == len(tickets) and all(1 <= ticket <= rounds for ticket in tickets)
        schema.require(fits, "tickets are different and at most `rounds`", where, tickets=tickets, rounds=rounds)
        schema.require(all(arm < n_arms for _, arm, _ in state["open"]), "rounds name arms", where, n_arms=n_arms)
        copies = {start: self._new(n_arms) for start in starts}
        for copy, (_, saved) in zip(copies.values(), state["copies"], strict=True):
            copy.load_state_dict(saved)
            schema.require(copy.n_arms == n_arms, "copies have all arms", where, n_arms=n_arms, copy=copy.n_arms)
        self.n_arms, self._rounds, self._copies = n_arms, rounds, copies
        self._open = {ticket: (arm, dict(tickets)) for ticket, arm, tickets in state["open"]}
