"""What every selector offers (the paper's meta-algorithm σ): ask which arm goes next, tell what came of it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from esbas import seeding
from esbas.errors import ChoiceError, InvalidValueError, require, unknown
from esbas.selectors.epochs import Epochs


@dataclass(frozen=True, slots=True)
class Choice:
    """A token: which arm controls the next episode. Hand it back to `tell` with the episode's value, or to `withdraw`."""

    number: int  # meta-time τ, from 1
    arm: str
    index: int  # the arm's position among the selector's arms
    epoch: int  # β, from 0; 0 throughout where there are no epochs
    learn: bool  # whether learners learn before the episode


class Selector(ABC):
    """The book-keeping that all selectors share. A new one gives `_pick` and, if it learns from values, `_take`.

    Args:
        arms: the names of the learners.
        epochs: the lengths of the epochs at whose starts learners learn (growing batch); None: they learn all the time (online).
        stationary: the arms whose learners never learn.
        seed: of the selector's own random stream.
    """

    def __init__(
        self,
        arms: Iterable[str],
        *,
        epochs: Sequence[int] | Epochs | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        self._arms = list(arms)
        require(len(self._arms) > 0, "there is an arm", arms=self._arms)
        for name in self._arms:
            self._check_new(name)
        self._stationary = {self._arms[self._index(name)] for name in stationary}
        self._epochs = epochs if isinstance(epochs, Epochs | None) else Epochs(epochs)
        self.rng = seeding.generator(seed, "selector")
        self._number, self._epoch, self._epoch_end = 0, -1 if self._epochs else 0, 0
        self._open: dict[int, tuple[Choice, int]] = {}  # number -> choice, whatever `_begin` returned
        self._selections = [0] * len(self._arms)
        self._late = [0] * len(self._arms)  # values that came after their epoch had ended

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""
        return tuple(self._arms)

    @property
    def stationary(self) -> frozenset[str]:
        """The arms whose learners never learn."""
        return frozenset(self._stationary)

    @property
    def number(self) -> int:
        """How many choices were asked for so far."""
        return self._number

    @property
    def online(self) -> bool:
        """Whether learners learn from each transition (true) or when an epoch starts (false)."""
        return self._epochs is None

    @property
    def open_choices(self) -> tuple[Choice, ...]:
        """The choices that were asked for and neither told nor withdrawn."""
        return tuple(choice for choice, _ in self._open.values())

    def ask(self, among: Collection[str] | None = None) -> Choice:
        """Choose the arm for the next episode, out of `among` (default: all)."""
        allowed = None if among is None else [self._index(name) for name in among]
        require(allowed is None or len(allowed) > 0, "there is an arm to choose among", among=among)
        learn = self.online
        if self._epochs and self._number == self._epoch_end:
            self._epoch += 1
            self._epoch_end += self._epochs.length(self._epoch)
            learn = True
            self._start_epoch()
        index = self._pick(allowed)
        self._number += 1
        self._selections[index] += 1
        choice = Choice(self._number, self._arms[index], index, self._epoch, learn)
        self._open[choice.number] = choice, self._begin(index)
        return choice

    def tell(self, choice: Choice, value: float) -> None:
        """The value of the choice's episode; larger is better. Each choice is told once, in any order."""
        require(math.isfinite(value), "a value is finite", "tell another or withdraw the choice", value=value)
        ticket = self._close(choice)
        if choice.arm in self._arms:
            index = self._arms.index(choice.arm)
            self._late[index] += choice.epoch != self._epoch
            self._take(index, float(value), ticket)

    def withdraw(self, choice: Choice) -> None:
        """Close a choice without a value: its episode says nothing of its arm (it crashed, the user left)."""
        ticket = self._close(choice)
        if choice.arm in self._arms:
            self._drop(ticket)

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        """Add an arm; it is unplayed."""
        self._arms.append(name)
        try:
            self._check_new(name)
        except InvalidValueError:
            self._arms.pop()
            raise
        self._stationary |= {name} if stationary else set()
        self._selections.append(0)
        self._late.append(0)

    def remove_arm(self, name: str) -> None:
        """Remove an arm; values of its open choices are still taken, without effect."""
        index = self._index(name)
        require(len(self._arms) > 1, "one arm stays", arms=self._arms)
        for column in (self._arms, self._selections, self._late):
            del column[index]
        self._stationary -= {name}

    def explain(self) -> dict[str, dict[str, float]]:
        """Why the next choice is what it is, per arm: see the subclass; here selections so far, open choices, late values."""
        opened = [choice.arm for choice in self.open_choices]
        return {
            arm: {"selections": self._selections[k], "open": opened.count(arm), "late": self._late[k]}
            for k, arm in enumerate(self._arms)
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "kind": type(self).__name__,
            "arms": list(self._arms),
            "stationary": sorted(self._stationary),
            "number": self._number,
            "epoch": self._epoch,
            "epoch_end": self._epoch_end,
            "open": [[asdict(choice), ticket] for choice, ticket in self._open.values()],
            "selections": list(self._selections),
            "late": list(self._late),
            "rng": seeding.state_of(self.rng),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the selector that `state_dict` told of."""
        kind = type(self).__name__
        require(state["kind"] == kind, f"the state is of a {kind}", "build the same selector", kind=state["kind"])
        self._arms, self._stationary = list(state["arms"]), set(state["stationary"])
        self._number, self._epoch, self._epoch_end = state["number"], state["epoch"], state["epoch_end"]
        opened = [(Choice(**choice), ticket) for choice, ticket in state["open"]]
        self._open = {choice.number: (choice, ticket) for choice, ticket in opened}
        self._selections, self._late = list(state["selections"]), list(state["late"])
        seeding.restore(self.rng, state["rng"])

    @abstractmethod
    def _pick(self, among: list[int] | None) -> int:
        """The arm to play."""

    def _start_epoch(self) -> None:
        """Called before the first choice of each epoch."""

    def _begin(self, index: int) -> int:
        """An episode of this arm starts; returns what `_take` and `_drop` need to know of it."""
        del index
        return 0

    def _take(self, index: int, value: float, ticket: int) -> None:
        """An episode's value has arrived."""

    def _drop(self, ticket: int) -> None:
        """An episode has ended without a value."""

    def _close(self, choice: Choice) -> int:
        number = getattr(choice, "number", 0)  # somebody may tell an arm's name
        found = self._open.get(number)
        if found is None or found[0] != choice:
            past = 1 <= number <= self._number and found is None
            why = "was told or withdrawn before" if past else "was never asked for here"
            raise ChoiceError(f"an open choice must be told, but {choice!r} {why}: ask for another")
        del self._open[number]
        return found[1]

    def _index(self, name: str) -> int:
        if name not in self._arms:
            raise unknown("arm", name, self._arms)
        return self._arms.index(name)

    def _check_new(self, name: str) -> None:
        require(isinstance(name, str), "an arm's name is text", arm=name)
        require(self._arms.count(name) == 1, "arms have different names", "rename one", arm=name)
