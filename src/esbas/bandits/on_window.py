"""Any bandit on a sliding window."""

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from numpy.typing import NDArray

from esbas.bandits.bandit import Bandit, BanditFactory, Floats, Rng
from esbas.bandits.random_bandit import RandomBandit
from esbas.bandits.window import Window

Size = Callable[[int], int]


def on_window(bandit: BanditFactory, *, size: Size) -> BanditFactory:
    """The bandit on the last `size(τ)` rounds before round τ: exactly, if it takes a `memory`; else as `Staggered`."""
    takes_memory = "memory" in inspect.signature(bandit).parameters
    return partial(_exact if takes_memory else Staggered, bandit=bandit, size=size)


def _exact(n_arms: int, *, bandit: BanditFactory, size: Size, rng: Rng = None) -> Bandit:
    return bandit(n_arms, memory=Window(n_arms, size=size), rng=rng)


class Staggered(Bandit):
    """A window for bandits that cannot forget single rounds: two copies, started at different times, each replaced in its turn.

    The older copy chooses, and both learn from all rewards. When it has seen more rounds than the window holds, the younger one
    takes over; once that has seen half as many, another is started. So what counts is between about a half and the whole of the
    window. Work per round is that of two bandits.

    Args:
        n_arms: K.
        bandit: makes the copies.
        size: of the window before round τ; it may grow with τ.
        rng: of both copies.
    """

    def __init__(self, n_arms: int, *, bandit: BanditFactory, size: Size, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self._factory, self._size, self._rounds = bandit, size, 0
        self._copies: dict[int, Bandit] = {0: self._new()}  # by the rounds before its start, the older one first
        self.any_scale = self._older.any_scale
        self._open: dict[int, tuple[int, dict[int, int]]] = {}  # ticket -> arm and, by start of a copy, the ticket there

    def _new(self) -> Bandit:
        return self._factory(self.n_arms, rng=self.rng)

    @property
    def _older(self) -> Bandit:
        return next(iter(self._copies.values()))

    @property
    def spread(self) -> float:
        """The width of the rewards' range."""
        return self._older.spread

    @spread.setter
    def spread(self, width: float) -> None:
        for copy in self._copies.values():
            copy.spread = width

    def choose(self, among: Collection[int] | None = None) -> int:
        """What the older copy chooses."""
        return self._older.choose(among)

    def pull(self, arm: int) -> int:
        """Start a round in both copies; then see whose turn it is."""
        older = self._older
        tickets: dict[int, int] = {}
        for start, copy in self._copies.items():
            if copy is not older and isinstance(copy, RandomBandit) and isinstance(older, RandomBandit):
                chance = older.probability(next(iter(tickets.values())))  # the older copy drew the arm
                tickets[start] = copy.pull(arm, probability=chance)
            else:
                tickets[start] = copy.pull(arm)
        self._rounds += 1
        self._open[self._rounds] = arm, tickets
        self._take_turns()
        return self._rounds

    def _take_turns(self) -> None:
        size = max(self._size(self._rounds + 1), 1)
        start = next(iter(self._copies))
        if self._rounds - start > size and len(self._copies) == 2:
            del self._copies[start]
            start = next(iter(self._copies))
        if len(self._copies) == 1 and 2 * (self._rounds - start) >= size:
            spread = self.spread
            self._copies[self._rounds] = self._new()
            self.spread = spread

    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        """End the round in those copies that saw it start."""
        self._older.check(reward)
        ticket = self.pull(arm) if pull is None else pull
        for copy, copy_ticket in self._close(ticket):
            copy.update(arm, reward, pull=copy_ticket)

    def _close(self, ticket: int) -> list[tuple[Bandit, int]]:
        _, tickets = self._open.pop(ticket, (0, {}))
        return [(self._copies[start], ticket) for start, ticket in tickets.items() if start in self._copies]

    def withdraw(self, pull: int) -> None:
        """Undo the pull."""
        for copy, ticket in self._close(pull):
            copy.withdraw(ticket)

    def reset(self, keep: Collection[int] = ()) -> None:
        """Both copies forget."""
        self._open.clear()
        for copy in self._copies.values():
            copy.reset(keep)

    def add_arm(self) -> None:
        """One more arm."""
        self.n_arms += 1
        for copy in self._copies.values():
            copy.add_arm()

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        for copy in self._copies.values():
            copy.remove_arm(arm)
        self.n_arms -= 1
        self._open = {ticket: (k - (k > arm), tickets) for ticket, (k, tickets) in self._open.items() if k != arm}

    def indices(self) -> Floats:
        """(K,): of the older copy."""
        return self._older.indices()

    @property
    def counts(self) -> NDArray[Any]:
        """(K,): of the older copy."""
        return self._older.counts

    @property
    def means(self) -> Floats:
        """(K,): of the older copy."""
        return self._older.means

    def state_dict(self) -> dict[str, Any]:
        """Both copies and the rounds in flight."""
        copies = [[start, copy.state_dict()] for start, copy in self._copies.items()]
        opened = [[ticket, arm, [list(pair) for pair in tickets.items()]] for ticket, (arm, tickets) in self._open.items()]
        return {"n_arms": self.n_arms, "rounds": self._rounds, "copies": copies, "open": opened}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        self.n_arms, self._rounds = state["n_arms"], state["rounds"]
        self._copies = {}
        for start, saved in state["copies"]:
            self._copies[start] = self._new()
            self._copies[start].load_state_dict(saved)
        self._open = {ticket: (arm, dict(tickets)) for ticket, arm, tickets in state["open"]}
