"""`with` blocks around an episode and around a retraining, for selectors and studies alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, Protocol, Self

from esbas._internal import schema
from esbas.errors import (
    ChoiceError,
    FileError,
    InvalidValueError,
    ServiceError,
    StoreError,
    StudyError,
    describe,
)
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, check_value

_NEW = "new"  # the block has not been entered
_OPEN = "open"
_CLOSED = "closed"


class OpenChoice(ABC):
    """A choice that a `with` block makes and closes. `choose()` returns one.

    Entering the block asks for a choice. Set `value` in the block: leaving it tells this value. If
    an exception leaves the block, the choice is withdrawn, because its episode is no evidence for
    its arm, and the exception passes. A block that is left without a value is an error, and its
    choice is withdrawn, too. If there is no value, call `withdraw()` in the block.

    A value that is refused raises an error, and the choice is withdrawn. If a value cannot be told
    because the store or the service cannot be reached, the choice stays open.

    An object is for one block. Any number of blocks may be open at the same time.
    """

    __slots__ = ("_choice", "_state", "_value")

    def __init__(self) -> None:
        self._state = _NEW
        self._choice: Choice | None = None
        self._value: float | None = None

    @property
    def number(self) -> int:
        """The number of the choice, from 1."""
        return self._made().number

    @property
    def arm(self) -> str:
        """The arm that controls the episode."""
        return self._made().arm

    @property
    def epoch(self) -> int:
        """The epoch of the choice; always 0 without epochs."""
        return self._made().epoch

    @property
    def context(self) -> tuple[float, ...] | None:
        """What the arm was chosen for, if the selector uses contexts."""
        return self._made().context

    @property
    def propensity(self) -> float | None:
        """The probability with which the arm was chosen; None if the selector cannot compute it."""
        return self._made().propensity

    @property
    def value(self) -> float | None:
        """The value of the episode, larger is better; None until it is set. Must be finite."""
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        self._opened()
        self._value = check_value(value)

    def withdraw(self) -> None:
        """Close the choice without a value: the episode is no evidence for its arm."""
        choice = self._opened()
        self._withdraw(choice)
        self._value = None
        self._state = _CLOSED

    def __enter__(self) -> Self:
        if self._state != _NEW:
            raise ChoiceError(
                "A choice is for one `with` block, but this one was used before: "
                "call choose() again."
            )
        self._choice = self._ask()
        self._state = _OPEN
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._state != _OPEN:  # withdrawn in the block
            return
        choice = self._made()
        self._state = _CLOSED
        if error is not None:
            self._abandon(choice, error)
        elif self._value is None:
            missing = ChoiceError(
                f"{_named(choice)} was left without a value and is withdrawn: "
                "set `choice.value` in the `with` block, or call `choice.withdraw()`."
            )
            self._abandon(choice, missing)
            raise missing
        else:
            self._finish(choice, self._value)

    def __repr__(self) -> str:
        kind = type(self).__name__
        choice = self._choice
        if choice is None:
            return f"<{kind}, not made yet>"
        value = "" if self._value is None else f", value {self._value:g}"
        return f"<{kind} {choice.number}: {choice.arm!r}, {self._state}{value}>"

    def _made(self) -> Choice:
        """Return the choice; an error before the block is entered."""
        if self._choice is None:
            raise ChoiceError(
                "The choice has not been made yet: write `with study.choose() as choice:`."
            )
        return self._choice

    def _opened(self) -> Choice:
        """Return the choice; an error unless it is open."""
        choice = self._made()
        if self._state != _OPEN:
            raise ChoiceError(
                f"{_named(choice)} has been told or withdrawn already: "
                "set its value, or withdraw it, once in the `with` block."
            )
        return choice

    def _finish(self, choice: Choice, value: float) -> None:
        try:
            self._tell(choice, value)
        except (StoreError, ServiceError, FileError) as error:
            # The value may or may not have arrived. Telling the same value again is safe, but the
            # value of a choice that is withdrawn would be lost.
            error.add_note(f"{_named(choice)} may still be open: tell its value {value} again.")
            raise
        except BaseException as error:
            self._abandon(choice, error)
            raise

    def _abandon(self, choice: Choice, error: BaseException) -> None:
        """Withdraw the choice because of an error, which the caller raises in any case."""
        try:
            self._withdraw(choice)
        except ChoiceError:  # it is closed: there is nothing to withdraw
            pass
        except Exception as failure:
            error.add_note(
                f"{_named(choice)} could not be withdrawn and may still be open: "
                f"{describe(failure)}"
            )

    @abstractmethod
    def _ask(self) -> Choice: ...

    @abstractmethod
    def _tell(self, choice: Choice, value: float) -> None: ...

    @abstractmethod
    def _withdraw(self, choice: Choice) -> None: ...


def _named(choice: Choice) -> str:
    return f"Choice {choice.number} ({choice.arm!r})"


class _Chooses(Protocol):
    """What the blocks need of a selector."""

    def ask(self, *, among: Any = None, context: Any = None) -> Choice: ...

    def tell(self, choice: Choice, value: float, *, evidence: Evidence | None = None) -> None: ...

    def withdraw(self, choice: Choice) -> None: ...

    def claim_epoch(self) -> int | None: ...

    def epoch_ready(self, epoch: int) -> None: ...

    def release_epoch(self, epoch: int) -> None: ...


class SelectorChoice(OpenChoice):
    """A choice of a selector in memory. See `OpenChoice`.

    Attributes:
        evidence: the evidence of the episode for all arms, for selectors that want it; may be set
            in the block.
    """

    __slots__ = ("_options", "_selector", "evidence")

    def __init__(self, selector: _Chooses, *, among: Any, context: Any) -> None:
        super().__init__()
        self._selector = selector
        self._options = {"among": among, "context": context}
        self.evidence: Any = None  # Evidence, which is checked when it is told

    def _ask(self) -> Choice:
        return self._selector.ask(**self._options)

    def _tell(self, choice: Choice, value: float) -> None:
        if not isinstance(self.evidence, Evidence | None):
            raise InvalidValueError(
                f"`evidence` must be esbas.Evidence, but got {schema.short(self.evidence)}: "
                "pass esbas.Evidence(trajectory=..., value=..., arm=...), or leave it out."
            )
        self._selector.tell(choice, value, evidence=self.evidence)

    def _withdraw(self, choice: Choice) -> None:
        self._selector.withdraw(choice)


class Retraining:
    """A `with` block that retrains if an epoch is due. `retraining()` returns one.

    Entering the block claims the epoch that is due and returns its number, or None if there is
    nothing to do: no epoch is due, or another caller retrains. Leaving the block starts the epoch.
    If an exception leaves the block, or the epoch cannot be started, it is released, so that
    another caller can claim it, and the exception passes.

    Args:
        claim: claims the epoch that is due.
        ready: starts a claimed epoch.
        release: gives a claimed epoch back.
    """

    __slots__ = ("_claim", "_epoch", "_ready", "_release", "_used")

    def __init__(
        self,
        *,
        claim: Callable[[], int | None],
        ready: Callable[[int], None],
        release: Callable[[int], None],
    ) -> None:
        self._claim = claim
        self._ready = ready
        self._release = release
        self._epoch: int | None = None
        self._used = False

    def __enter__(self) -> int | None:
        if self._used:
            raise InvalidValueError(
                "A retraining is for one `with` block, but this one was used before: "
                "call retraining() again."
            )
        self._used = True
        self._epoch = self._claim()
        return self._epoch

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._epoch is None:
            return
        if error is not None:
            self._give_back(self._epoch, error)
            return
        try:
            self._ready(self._epoch)
        except BaseException as failure:
            self._give_back(self._epoch, failure)
            raise

    def __repr__(self) -> str:
        if not self._used:
            return "<Retraining, not claimed yet>"
        if self._epoch is None:
            return "<Retraining: nothing is due>"
        return f"<Retraining of epoch {self._epoch}>"

    def _give_back(self, epoch: int, error: BaseException) -> None:
        """Release the epoch because of an error, which the caller raises in any case."""
        try:
            self._release(epoch)
        except (InvalidValueError, StudyError):  # it is no longer claimed by this caller
            pass
        except Exception as failure:
            error.add_note(f"Epoch {epoch} could not be released: {describe(failure)}")


class SelectorBlocks:
    """The methods of a selector that return `with` blocks."""

    __slots__ = ()

    def choose(
        self: _Chooses, *, among: Collection[str] | None = None, context: Any = None
    ) -> SelectorChoice:
        """Return a `with` block that asks for a choice, and tells its value or withdraws it.

        >>> from esbas import SSBAS
        >>> selector = SSBAS(["a", "b"])
        >>> with selector.choose() as choice:
        ...     choice.value = 0.7 if choice.arm == "a" else 0.4

        Args:
            among: see `ask`.
            context: see `ask`.
        """
        return SelectorChoice(self, among=among, context=context)

    def retraining(self: _Chooses) -> Retraining:
        """Return a `with` block that claims the epoch that is due, and starts or releases it.

        >>> from esbas import ESBAS
        >>> selector = ESBAS(["a", "b"])
        >>> with selector.retraining() as epoch:
        ...     if epoch is not None:
        ...         print("retrain for epoch", epoch)
        retrain for epoch 0
        """
        return Retraining(
            claim=self.claim_epoch, ready=self.epoch_ready, release=self.release_epoch
        )
