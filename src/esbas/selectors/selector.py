"""The base of all selectors (the paper's meta-algorithm σ).

Ask which arm controls the next episode, and tell the value of the episode.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from esbas import seeding
from esbas._internal import schema
from esbas._internal.registry import Registry
from esbas.errors import ChoiceError, InvalidValueError, counted, require, unknown
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick, not_finite
from esbas.selectors.choosing import SelectorBlocks
from esbas.selectors.recorded import Recorded
from esbas.selectors.state import check_selector_state


class Selector(SelectorBlocks, Recorded, ABC):
    """Choices, epochs and arms. A new selector implements `pick` and usually `observe`.

    Learners learn between the two calls of `claim_epoch` and `epoch_ready`. One caller gets the
    epoch that is due; choices of other callers belong to the old epoch until the new one is ready.
    If `claim_epoch` is never called, because nothing has to be retrained, epochs start by
    themselves. Selectors are safe to share between threads.

    Args:
        arms: the names of the learners.
        epochs: the lengths of the epochs; after the last given one, lengths double. Learners learn
            when an epoch starts. None: there are no epochs, and learners learn all the time
            (online).
        stationary: the arms whose learners never learn.
        seed: seed of the selector's random stream.
    """

    wants: frozenset[str] = frozenset()
    """What the selector uses besides values.

    "context" in `pick`; "trajectory" and "log_probs" in the `evidence` of `observe`.
    """
    note_shape: ClassVar[Any] = Any
    """The shape of the notes that `pick` returns, checked when a state is loaded.

    See `esbas._internal.schema`.
    """

    def __init__(
        self,
        arms: Iterable[str],
        *,
        epochs: Sequence[int] | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        self._lock = threading.RLock()
        self._arms: list[str] = []
        for name in arms:
            self._check_new(name)
            self._arms.append(name)
        require(len(self._arms) > 0, "`arms` must not be empty.")
        self._stationary = {self._arms[self._index(name)] for name in stationary}
        self.rng = seeding.generator(seed, "selector")

        # Whether learners learn all the time, or only when an epoch starts.
        self.online = epochs is None
        self._epochs = None if epochs is None else _epoch_lengths(epochs)
        self._epoch = 0 if self.online else -1  # -1: the first epoch has not started
        self._epoch_end = 0  # the number of choices after which the next epoch is due
        self._claimed: int | None = None  # the epoch that a caller prepares
        # Whether `claim_epoch` was ever called. Otherwise epochs start by themselves.
        self._claims = False

        self._number = 0
        # By number: the choice, its note, and whether its arm has not been removed since.
        self._open: dict[int, tuple[Choice, Any, bool]] = {}
        self._selections = dict.fromkeys(self._arms, 0)
        # Values that arrived after the end of their epoch.
        self._late = dict.fromkeys(self._arms, 0)

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
        return self._epoch if self._epoch > 0 else 0

    @property
    def epoch_due(self) -> bool:
        """Whether the next epoch should start.

        `claim_epoch` then returns it, unless another caller has claimed it.
        """
        return not self.online and self._number >= self._epoch_end

    @property
    def open_choices(self) -> tuple[Choice, ...]:
        """The choices that were neither told nor withdrawn."""
        with self._lock:
            return tuple(choice for choice, _, _ in self._open.values())

    def claim_epoch(self) -> int | None:
        """Return the epoch that is due, to one caller.

        The caller that gets an epoch retrains the learners and calls `epoch_ready`, or, if
        retraining fails, `release_epoch`. None: no epoch is due, or another caller has claimed it.
        """
        self._claims = True
        if not self.epoch_due:  # there is no need to wait for the lock
            return None
        with self._lock:
            if self._claimed is not None or not self.epoch_due:
                return None
            self._claimed = self._epoch + 1
            return self._claimed

    def epoch_ready(self, epoch: int) -> None:
        """Start a claimed epoch: its policies are in place."""
        with self._lock:
            self._check_claimed(epoch, "before it is ready")
            self._claimed = None
            self._epoch = epoch
            self._epoch_end = self._number + self._length(epoch)
            self.start_epoch()

    def release_epoch(self, epoch: int) -> None:
        """Give a claimed epoch back.

        The old epoch continues, and another caller can claim the new one.
        """
        with self._lock:
            self._check_claimed(epoch, "before it is released")
            self._claimed = None

    def ask(self, *, among: Collection[str] | None = None, context: Any = None) -> Choice:
        """Choose the arm for the next episode.

        Args:
            among: the arms that are available (default: all).
            context: what is known about the episode, such as its first observation: numbers of any
                shape.
        """
        with self._lock:
            allowed = self._arms if among is None else self._allowed(among)
            if not self._claims and self.epoch_due:
                self._claimed = self._epoch + 1
                self.epoch_ready(self._claimed)
            known = None
            if context is not None and "context" in self.wants:
                known = plain_context(context)
            arm, propensity, note = self.pick(allowed, known)
            self._number += 1
            self._selections[arm] += 1
            choice = Choice(
                number=self._number,
                arm=arm,
                epoch=self.epoch,
                context=known,
                propensity=propensity,
            )
            self._open[self._number] = (choice, note, True)
            return choice

    def tell(self, choice: Choice, value: float, *, evidence: Evidence | None = None) -> None:
        """Report the value of the choice's episode; larger is better.

        Each choice is told once, in any order.
        """
        if not math.isfinite(value):
            raise not_finite(value)
        with self._lock:
            choice, note, known = self._close(choice)
            if known:
                if choice.epoch < self._epoch:
                    self._late[choice.arm] += 1
                self.observe(choice, float(value), note=note, evidence=evidence)

    def withdraw(self, choice: Choice) -> None:
        """Close a choice without a value, for example because its episode crashed.

        The episode does not change what is known about its arm.
        """
        with self._lock:
            choice, note, known = self._close(choice)
            if known:
                self.forget(choice, note=note)

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        """Add an unplayed arm."""
        with self._lock:
            self._check_new(name)
            self._arms.append(name)
            if stationary:
                self._stationary.add(name)
            self._selections[name] = 0
            self._late[name] = 0

    def remove_arm(self, name: str) -> None:
        """Remove an arm; values of its open choices are accepted and have no effect."""
        with self._lock:
            index = self._index(name)
            require(
                len(self._arms) > 1,
                f"The only arm, {name!r}, cannot be removed: add another arm first.",
            )
            del self._arms[index]
            del self._selections[name]
            del self._late[name]
            self._stationary.discard(name)
            for number, (choice, note, known) in self._open.items():
                self._open[number] = (choice, note, known and choice.arm != name)

    def explain(self) -> dict[str, dict[str, float]]:
        """Return selections so far, open choices and late values of each arm.

        Selectors add the numbers on which the next choice depends.
        """
        with self._lock:
            opened = [choice.arm for choice in self.open_choices]
            report: dict[str, dict[str, float]] = {}
            for arm in self._arms:
                report[arm] = {
                    "selections": self._selections[arm],
                    "open": opened.count(arm),
                    "late": self._late[arm],
                }
            return report

    def state_dict(self) -> dict[str, Any]:
        """Return everything that changes, as plain data.

        A claim is not part of it: the caller that loads the state can claim the epoch.
        """
        with self._lock:
            opened = []
            for choice, note, known in self._open.values():
                opened.append([asdict(choice), note, known])
            return {
                "kind": type(self).__name__,
                "arms": list(self._arms),
                "stationary": sorted(self._stationary),
                "number": self._number,
                "epoch": self._epoch,
                "epoch_end": self._epoch_end,
                "claims": self._claims,
                "open": opened,
                "selections": [self._selections[arm] for arm in self._arms],
                "late": [self._late[arm] for arm in self._arms],
                "rng": seeding.state_of(self.rng),
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        A state that does not fit raises an error and changes nothing.
        """
        with self._lock:
            self.check_state(state)
            self._arms = list(state["arms"])
            self._stationary = set(state["stationary"])
            self._number = state["number"]
            self._epoch = state["epoch"]
            self._epoch_end = state["epoch_end"]
            self._claims = state["claims"]
            self._claimed = None
            self._open = {}
            for saved, note, known in state["open"]:
                choice = _choice(saved)
                self._open[choice.number] = (choice, note, known)
            self._selections = dict(zip(self._arms, state["selections"], strict=True))
            self._late = dict(zip(self._arms, state["late"], strict=True))
            seeding.restore(self.rng, state["rng"])

    def check_state(self, state: Any) -> None:
        """Raise an error unless `load_state_dict` can load the state.

        A selector that saves more extends this method.
        """
        kind = type(self).__name__
        where = f"the state of a {kind}"
        schema.check(state, {"kind": str, str: object}, where)
        require(
            state["kind"] == kind,
            f"The state must be that of a {kind}, but is that of a {state['kind'][:60]!r}: "
            "build the same selector.",
        )
        check_selector_state(state, where, note=self.note_shape, epochs=self._epochs)
        seeding.check_state(self.rng, state["rng"])

    @abstractmethod
    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        """Choose one of these arms, and return it with the probability that it had."""

    def observe(
        self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None
    ) -> None:
        """Learn from the value of an episode. `note` is what `pick` returned for it."""

    def forget(self, choice: Choice, *, note: Any) -> None:
        """Take back a choice that was withdrawn. `note` is what `pick` returned for it."""

    def start_epoch(self) -> None:
        """Prepare for a new epoch, before its first choice."""

    def _length(self, epoch: int) -> int:
        assert self._epochs is not None
        last = len(self._epochs) - 1
        doublings = max(epoch - last, 0)
        return self._epochs[min(epoch, last)] << doublings

    def _check_claimed(self, epoch: int, when: str) -> None:
        if epoch is None or epoch != self._claimed:
            raise InvalidValueError(
                f"Epoch {epoch!r} must be claimed {when}: call claim_epoch() first."
            )

    def _close(self, choice: Choice) -> tuple[Choice, Any, bool]:
        # The caller may have passed something else, such as the name of the arm.
        number = getattr(choice, "number", 0)
        opened = self._open.get(number)
        if opened is None:
            raise self._not_open(choice)
        own = opened[0]
        if own is not choice and own != choice and own != _choice(asdict(choice)):
            raise _from_elsewhere(choice)
        return self._open.pop(number)

    def _not_open(self, choice: Choice) -> ChoiceError:
        if isinstance(choice, Choice) and choice.number in range(1, self._number + 1):
            return ChoiceError(
                f"Choice {choice.number} ({choice.arm!r}) has already been told or withdrawn: "
                "call ask() for a new one."
            )
        return _from_elsewhere(choice)

    def _allowed(self, among: Collection[str]) -> list[str]:
        require(len(among) > 0, "`among` must not be empty.")
        return [self._arms[self._index(name)] for name in among]

    def _index(self, name: str) -> int:
        if name not in self._arms:
            raise unknown("arm", name, self._arms)
        return self._arms.index(name)

    def _check_new(self, name: str) -> None:
        require(isinstance(name, str), f"The name of an arm must be text, but got {name!r}.")
        require(
            name not in self._arms,
            f"Arms must have different names, but got {name!r} twice: rename one.",
        )

    def __repr__(self) -> str:
        # Errors may show a selector whose constructor has failed, which lacks attributes.
        arms = counted(len(getattr(self, "_arms", ())), "arm")
        choices = counted(getattr(self, "_number", 0), "choice")
        return f"<{type(self).__name__} of {arms}, {choices}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())


SELECTORS: Registry[Callable[..., Selector]] = Registry("selector")
"""Selectors by name. A new one registers itself: `@SELECTORS.register("mine")` above its class."""


def plain_context(context: Any) -> tuple[float, ...]:
    """Return a context of any shape as a tuple of numbers."""
    try:
        return tuple(np.asarray(context, np.float64).ravel().tolist())
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"A context must be numbers of any shape, but got {schema.short(context)}: flatten it."
        ) from error


def _epoch_lengths(epochs: Sequence[int]) -> list[int]:
    lengths = list(epochs)
    positive = all(isinstance(length, int) and length > 0 for length in lengths)
    require(
        len(lengths) > 0 and positive,
        f"`epochs` must be a list of positive whole numbers, but got {epochs!r}.",
    )
    return lengths


def _choice(saved: dict[str, Any]) -> Choice:
    """Return a choice from plain data; JSON turns the context into a list."""
    context = saved["context"]
    return Choice(**saved | {"context": None if context is None else tuple(context)})


def _from_elsewhere(choice: Any) -> ChoiceError:
    return ChoiceError(
        f"{choice!r} does not come from this selector: pass the choice that ask() returned."
    )
