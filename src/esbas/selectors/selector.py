"""The base of all selectors (the paper's meta-algorithm σ): ask which arm goes next, tell what its episode was worth."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from esbas import schema, seeding
from esbas.errors import ChoiceError, InvalidValueError, require, unknown
from esbas.evidence import Evidence
from esbas.registry import Registry
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.recorded import Recorded
from esbas.selectors.state import check_selector_state


class Selector(Recorded, ABC):
    """Choices, epochs and arms, safe to share between threads. A new selector implements `pick` and usually `observe`.

    Learners learn between the two calls of `claim_epoch` and `epoch_ready`. One caller gets the epoch that is due; choices of
    other callers belong to the old epoch until the new one is ready. If `claim_epoch` is never called, because nothing has to be
    retrained, epochs start by themselves.

    Args:
        arms: the names of the learners.
        epochs: the lengths of the epochs; after the last given one, lengths double. Learners learn when an epoch starts. None:
            there are no epochs, and learners learn all the time (online).
        stationary: the arms whose learners never learn.
        seed: seed of the selector's random stream.
    """

    wants: frozenset[str] = frozenset()
    """What the selector uses besides values: "context" in `pick`; "length", "trajectory" and "log_probs" as `evidence` in
    `observe`. A selector that wants no more than "length" can do without it."""
    note_shape: ClassVar[Any] = Any
    """The shape of the notes that `pick` returns, see `esbas.schema`: checked when a state is loaded."""

    def __init__(
        self, arms: Iterable[str], *, epochs: Sequence[int] | None = None, stationary: Collection[str] = (), seed: int = 0
    ) -> None:
        self._lock = threading.RLock()
        self._arms: list[str] = []
        for name in arms:
            self._check_new(name)
            self._arms.append(name)
        require(len(self._arms) > 0, "there is at least one arm", arms=self._arms)
        self._stationary = {self._arms[self._index(name)] for name in stationary}
        self._epochs = None if epochs is None else list(epochs)
        whole = all(isinstance(length, int) and length > 0 for length in self._epochs or ())
        require(whole and self._epochs != [], "epochs are positive integers", epochs=epochs)
        self.online = epochs is None  # whether learners learn all the time, or only when an epoch starts
        self._claimed: int | None = None  # the epoch that a caller prepares
        self._claims = False  # whether `claim_epoch` was ever called; otherwise epochs start by themselves
        self.rng = seeding.generator(seed, "selector")
        self._number, self._epoch, self._epoch_end = 0, -1 if self._epochs else 0, 0
        self._open: dict[int, tuple[Choice, Any, bool]] = {}  # number -> choice, its note, whether its arm is still there
        self._selections = dict.fromkeys(self._arms, 0)
        self._late = dict.fromkeys(self._arms, 0)  # values that arrived after the end of their epoch

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(self._arms)

    @property
    def stationary(self) -> frozenset[str]:
        """The arms whose learners never learn."""
        return frozenset(self._stationary)

    @property
    def number(self) -> int:
        """The number of choices so far."""
        return self._number

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return max(self._epoch, 0)

    @property
    def epoch_due(self) -> bool:
        """Whether the next epoch should start: `claim_epoch` returns it, unless another caller has claimed it."""
        return not self.online and self._number >= self._epoch_end

    @property
    def open_choices(self) -> tuple[Choice, ...]:
        """The choices that were neither told nor withdrawn."""
        with self._lock:
            return tuple(choice for choice, *_ in self._open.values())

    def claim_epoch(self) -> int | None:
        """The epoch that is due, for one caller; None for everybody else and if no epoch is due.

        The caller that gets an epoch retrains the learners and calls `epoch_ready`, or, if retraining fails, `release_epoch`.
        """
        self._claims = True
        if self.online or self._number < self._epoch_end:  # nothing is due: no need to wait for the lock
            return None
        with self._lock:
            if self._claimed is not None or self._number < self._epoch_end:
                return None
            self._claimed = self._epoch + 1
            return self._claimed

    def epoch_ready(self, epoch: int) -> None:
        """The policies of a claimed epoch are in place: the epoch starts."""
        with self._lock:
            if self._epochs is None or epoch is None or epoch != self._claimed:
                raise InvalidValueError(f"an epoch must be claimed before it is ready, but got {epoch!r}: call claim_epoch()")
            self._claimed, self._epoch = None, epoch
            doublings = max(epoch - len(self._epochs) + 1, 0)
            self._epoch_end = self._number + (self._epochs[min(epoch, len(self._epochs) - 1)] << doublings)
            self.start_epoch()

    def release_epoch(self, epoch: int) -> None:
        """Give a claimed epoch back: the old one continues, and another caller can claim the new one."""
        with self._lock:
            require(epoch is not None and epoch == self._claimed, "only a claimed epoch can be released", epoch=epoch)
            self._claimed = None

    def ask(self, *, among: Collection[str] | None = None, context: Any = None) -> Choice:
        """Choose the arm for the next episode.

        Args:
            among: the arms that are available (default: all).
            context: what is known about the episode, such as its first observation: numbers of any shape.
        """
        with self._lock:
            allowed = self._arms if among is None else self._allowed(among)
            if not self._claims and not self.online and self._number >= self._epoch_end:
                self._claimed = self._epoch + 1
                self.epoch_ready(self._claimed)
            known = plain_context(context) if "context" in self.wants and context is not None else None
            arm, propensity, note = self.pick(allowed, known)
            self._number += 1
            self._selections[arm] += 1
            epoch = self._epoch if self._epoch > 0 else 0
            choice = Choice(number=self._number, arm=arm, epoch=epoch, context=known, propensity=propensity)
            self._open[self._number] = choice, note, True
            return choice

    def tell(self, choice: Choice, value: float, *, evidence: Evidence | None = None) -> None:
        """Report the value of the choice's episode; larger is better. Each choice is told once, in any order."""
        if not math.isfinite(value):
            require(False, "a value is finite", "tell a finite one, or withdraw the choice", value=value)
        with self._lock:
            choice, note, known = self._close(choice)
            if known:
                self._late[choice.arm] += self._epoch > choice.epoch
                self.observe(choice, float(value), note=note, evidence=evidence)

    def withdraw(self, choice: Choice) -> None:
        """Close a choice without a value: its episode says nothing about its arm (it crashed, the user left)."""
        with self._lock:
            choice, note, known = self._close(choice)
            if known:
                self.forget(choice, note=note)

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        """Add an unplayed arm."""
        with self._lock:
            self._check_new(name)
            self._arms.append(name)
            self._stationary |= {name} if stationary else set()
            self._selections[name] = self._late[name] = 0

    def remove_arm(self, name: str) -> None:
        """Remove an arm; values of its open choices are accepted and have no effect."""
        with self._lock:
            index = self._index(name)
            require(len(self._arms) > 1, "at least one arm remains", arms=self._arms)
            del self._arms[index], self._selections[name], self._late[name]
            for number, (choice, note, known) in self._open.items():
                self._open[number] = choice, note, known and choice.arm != name
            self._stationary -= {name}

    def explain(self) -> dict[str, dict[str, float]]:
        """Per arm: selections so far, open choices, late values, and what the next choice depends on."""
        with self._lock:
            opened = [choice.arm for choice in self.open_choices]
            counts = self._selections, {arm: opened.count(arm) for arm in self._arms}, self._late
            return {arm: dict(zip(("selections", "open", "late"), (c[arm] for c in counts), strict=True)) for arm in self._arms}

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes, as plain data. A claim is not part of it: whoever loads the state can claim the epoch."""
        with self._lock:
            return {
                "kind": type(self).__name__,
                "arms": list(self._arms),
                "stationary": sorted(self._stationary),
                "number": self._number,
                "epoch": self._epoch,
                "epoch_end": self._epoch_end,
                "claims": self._claims,
                "open": [[asdict(choice), note, known] for choice, note, known in self._open.values()],
                "selections": [self._selections[arm] for arm in self._arms],
                "late": [self._late[arm] for arm in self._arms],
                "rng": seeding.state_of(self.rng),
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. A state that does not fit raises an error and changes nothing."""
        with self._lock:
            self.check_state(state)
            self._arms, self._stationary = list(state["arms"]), set(state["stationary"])
            self._number, self._epoch, self._epoch_end = state["number"], state["epoch"], state["epoch_end"]
            self._claims = state["claims"]
            opened = [(_choice(saved), note, known) for saved, note, known in state["open"]]
            self._open, self._claimed = {each[0].number: each for each in opened}, None
            self._selections = dict(zip(self._arms, state["selections"], strict=True))
            self._late = dict(zip(self._arms, state["late"], strict=True))
            seeding.restore(self.rng, state["rng"])

    def check_state(self, state: Any) -> None:
        """Raise an error unless `load_state_dict` can load the state. A selector that saves more extends it."""
        kind = type(self).__name__
        schema.check(state, {"kind": str, str: object}, f"the state of a {kind}")
        require(state["kind"] == kind, f"the state is that of a {kind}", "build the same selector", kind=state["kind"][:60])
        check_selector_state(state, f"the state of a {kind}", note=self.note_shape, epochs=self._epochs)
        seeding.check_state(self.rng, state["rng"])

    @abstractmethod
    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        """Choose one of these arms, and say with which probability it was chosen."""

    def observe(self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None) -> None:
        """The value of an episode has arrived. `note` is what `pick` returned for it."""

    def forget(self, choice: Choice, *, note: Any) -> None:
        """A choice was withdrawn."""

    def start_epoch(self) -> None:
        """Called when an epoch starts, before its first choice."""

    def _close(self, choice: Choice) -> tuple[Choice, Any, bool]:
        number = getattr(choice, "number", 0)  # the caller may have passed something else, such as the arm's name
        found = self._open.get(number)
        if found is None or (found[0] is not choice and found[0] != choice and found[0] != _choice(asdict(choice))):
            past = found is None and isinstance(number, int) and 1 <= number <= self._number
            why = "was told or withdrawn before" if past else "does not come from this selector"
            raise ChoiceError(f"a choice must be open to be closed, but {choice!r} {why}: ask for a new one")
        return self._open.pop(number)

    def _allowed(self, among: Collection[str]) -> list[str]:
        require(len(among) > 0, "there is an arm to choose from", among=among)
        return [self._arms[self._index(name)] for name in among]

    def _index(self, name: str) -> int:
        if name not in self._arms:
            raise unknown("arm", name, self._arms)
        return self._arms.index(name)

    def _check_new(self, name: str) -> None:
        require(isinstance(name, str), "an arm's name is text", arm=name)
        require(name not in self._arms, "arms have different names", "rename one", arm=name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())


SELECTORS: Registry[Callable[..., Selector]] = Registry("selector")
"""Selectors by name. A new one registers itself: `@SELECTORS.register("mine")` above its class."""


def plain_context(context: Any) -> tuple[float, ...]:
    """A context of any shape as a tuple of numbers."""
    try:
        return tuple(np.asarray(context, np.float64).ravel().tolist())
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidValueError(f"a context must be numbers of any shape, but got {schema.short(context)}: flatten it") from error


def _choice(saved: dict[str, Any]) -> Choice:
    """A choice from plain data; JSON turns the context into a list."""
    context = saved["context"]
    return Choice(**saved | {"context": None if context is None else tuple(context)})
