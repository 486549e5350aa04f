"""`with` blocks around an episode, for studies on this machine and studies of a service."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from esbas.errors import ChoiceError
from esbas.selectors import Choice, OpenChoice, Retraining
from esbas.studies import events
from esbas.studies.events import Event


class _Asks(Protocol):
    """What the blocks need of a study."""

    def ask(self, *, among: Any = None, context: Any = None, key: str | None = None) -> Choice: ...

    def tell(
        self,
        choice: Choice | int,
        value: float,
        *,
        log_probs: Mapping[str, Sequence[float]] | None = None,
    ) -> None: ...

    def withdraw(self, choice: Choice | int) -> None: ...

    def events_of(self, choice: Choice | int) -> dict[str, Event]: ...

    def claim_epoch(self, *, claimant: str | None = None) -> int | None: ...

    def epoch_ready(self, epoch: int, *, claimant: str | None = None) -> None: ...

    def release_epoch(self, epoch: int, *, claimant: str | None = None) -> None: ...


class StudyChoice(OpenChoice):
    """A choice of a study. See `OpenChoice`.

    A block that is entered again with the key of an earlier one, after a crash, has the same
    choice. If its value has been told, `told` is this value, `value` starts with it, and the
    episode need not be repeated: leaving the block has no effect, another value is refused. If the
    choice was withdrawn, entering raises a `ChoiceError`. If it has expired, `expired` is true: its
    value is recorded, but the selector does not use it.

    Attributes:
        log_probs: the log-probabilities of the episode's actions under the policies of the arms,
            for selectors that want them; may be set in the block.
        told: the value that was told before this block, or None.
        expired: whether the choice had expired before this block.
    """

    __slots__ = ("_key", "_options", "_study", "expired", "log_probs", "told")

    def __init__(self, study: _Asks, *, among: Any, context: Any, key: str | None) -> None:
        super().__init__()
        self._study = study
        self._key = key
        self._options = {"among": among, "context": context, "key": key}
        self.log_probs: Mapping[str, Sequence[float]] | None = None
        self.told: float | None = None
        self.expired = False

    def _ask(self) -> Choice:
        choice = self._study.ask(**self._options)
        if self._key is not None:  # otherwise the choice is new
            self._look_up(choice)
        return choice

    def _look_up(self, choice: Choice) -> None:
        past = self._study.events_of(choice)
        if events.WITHDRAWN in past:
            raise ChoiceError(
                f"Choice {choice.number} ({choice.arm!r}) of the key {self._key!r} was withdrawn: "
                "use a new key for another attempt."
            )
        self.expired = events.EXPIRED in past
        if events.TOLD in past:
            self.told = past[events.TOLD].value
            self._value = self.told

    def _tell(self, choice: Choice, value: float) -> None:
        if self.told is None or self.told != value:  # a study refuses a second value
            self._study.tell(choice, value, log_probs=self.log_probs)

    def _withdraw(self, choice: Choice) -> None:
        self._study.withdraw(choice)


class StudyBlocks:
    """The methods of a study that return `with` blocks."""

    def choose(
        self: _Asks,
        *,
        among: Collection[str] | None = None,
        context: Any = None,
        key: str | None = None,
    ) -> StudyChoice:
        """Return a `with` block that asks for a choice, and tells its value or withdraws it.

        Set `choice.value` in the block, and `choice.log_probs` for selectors that want them. See
        `StudyChoice`, also for blocks that are entered again with the same key.

        Args:
            among: see `ask`.
            context: see `ask`.
            key: see `Study`. It stands for the choice; its value needs no key.
        """
        return StudyChoice(self, among=among, context=context, key=key)

    def retraining(self: _Asks, *, claimant: str | None = None) -> Retraining:
        """Return a `with` block that claims the epoch that is due, and starts or releases it.

        The block gets None if no epoch is due, or another caller has claimed it.

        Args:
            claimant: see `claim_epoch`.
        """
        return Retraining(
            claim=partial(self.claim_epoch, claimant=claimant),
            ready=partial(self.epoch_ready, claimant=claimant),
            release=partial(self.release_epoch, claimant=claimant),
        )
