"""A study: a selector with a name and a durable log, shared by any number of processes."""

import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from esbas._internal import schema
from esbas.errors import ChoiceError, StudyError, counted, require, unknown
from esbas.selectors import Choice, Selector
from esbas.selectors.choice import check_value
from esbas.studies import events
from esbas.studies.choosing import StudyBlocks
from esbas.studies.events import Event, choice_of
from esbas.studies.log import StudyLog
from esbas.studies.replica import ClaimedEpoch
from esbas.studies.requests import (
    MOST_ARMS,
    check_arms,
    check_context,
    check_key,
    check_log_probs,
    check_name,
    number_of,
    same_arm,
)
from esbas.studies.store import Store, StudyRow


class Study(StudyBlocks):
    """A selector whose choices and values are in a store. `esbas.open_study` creates or opens one.

    Every process keeps the selector in memory. A request is one transaction: the process applies
    the events that others have added, makes its choice, and adds its own event. So all processes
    choose as one selector would, and what was returned is in the store. A study can be shared by
    threads, and is opened again by itself in a forked process.

    Requests have an optional `key`, any text that the client uses once: a request that is sent
    again with the same key has the same answer and no further effect.
    """

    def __init__(self, store: Store, row: StudyRow) -> None:
        self.store = store
        self.name = row.name
        self.description: Mapping[str, Any] = row.description
        self.expire_after: float | None = row.description["expire_after"]
        self.claim_expires: float = row.description["claim_expires"]
        # The name under which this object claims epochs, unless the caller gives another one
        self.claimant = uuid.uuid4().hex
        self._log = StudyLog(
            store, row.id, row.description["selector"], expire_after=self.expire_after
        )
        with store.lock:
            self._log.current()

    def ask(
        self, *, among: Collection[str] | None = None, context: Any = None, key: str | None = None
    ) -> Choice:
        """Choose the arm for the next episode.

        Args:
            among: the arms that are available (default: all).
            context: what is known about the episode: numbers of any shape. It is recorded, also if
                the selector ignores it.
            key: see `Study`.
        """
        check_key(key)
        names = None if among is None else check_arms(among, "The arms to choose from")
        numbers = check_context(context)
        data: dict[str, Any] = {}
        if names is not None:
            data["among"] = names
        if numbers is not None:
            data["context"] = numbers
        with self._log.writing() as turn:
            repeated = turn.repeated(key, events.ASKED, data=data)
            if repeated is not None:
                return choice_of(repeated, with_context="context" in turn.replica.selector.wants)
            for name in names or ():
                if name not in turn.replica.selector.arms:
                    raise unknown("arm", name, turn.replica.selector.arms)
            return turn.ask(names, numbers, key=key, data=data)

    def tell(
        self,
        choice: Choice | int,
        value: float,
        *,
        log_probs: Mapping[str, Sequence[float]] | None = None,
        key: str | None = None,
    ) -> None:
        """Report the value of the choice's episode; larger is better.

        The same value may be told again, without effect; another one is refused. The value of a
        choice that has expired is recorded, but the selector does not use it.

        Args:
            choice: what `ask` returned, or its number.
            value: a finite number.
            log_probs: the log-probabilities of the episode's actions under the policies of the
                arms; recorded, and passed to selectors that want them.
            key: see `Study`.
        """
        check_key(key)
        number, arm = number_of(choice)
        value = check_value(value)
        data: dict[str, Any] = {}
        if log_probs is not None:
            data["log_probs"] = check_log_probs(log_probs)
        with self._log.writing() as turn:
            if turn.repeated(key, events.TOLD, number=number, value=value, data=data) is not None:
                return
            found = turn.replica.opened.get(number)
            if found is None:
                past = self._log.of_choice(number)
                arm = same_arm(number, arm, past[events.ASKED].arm)
                if events.TOLD in past:
                    told = past[events.TOLD].value
                    if told != value:
                        raise ChoiceError(
                            f"Choice {number} has already been told {told}, but got {value}: "
                            "call ask() for a new one."
                        )
                    return
                if events.WITHDRAWN in past:
                    raise ChoiceError(
                        f"Choice {number} has already been withdrawn: call ask() for a new one."
                    )
                data["late"] = True
            else:
                opened, _ = found
                arm = same_arm(number, arm, opened.arm)
            turn.add(events.TOLD, number=number, arm=arm, value=value, key=key, data=data)

    def withdraw(self, choice: Choice | int, *, key: str | None = None) -> None:
        """Close a choice without a value, so that its episode does not count for its arm.

        A choice that was withdrawn before, or has expired, stays as it is.
        """
        check_key(key)
        number, arm = number_of(choice)
        with self._log.writing() as turn:
            if turn.repeated(key, events.WITHDRAWN, number=number) is not None:
                return
            found = turn.replica.opened.get(number)
            if found is None:
                past = self._log.of_choice(number)
                same_arm(number, arm, past[events.ASKED].arm)
                if events.TOLD in past:
                    raise ChoiceError(
                        f"Choice {number} cannot be withdrawn, because it has already been told."
                    )
                return
            opened, _ = found
            arm = same_arm(number, arm, opened.arm)
            turn.add(events.WITHDRAWN, number=number, arm=arm, key=key)

    def add_arm(self, name: str, *, stationary: bool = False, key: str | None = None) -> None:
        """Add an unplayed arm."""
        check_key(key)
        check_name(name, "The name of an arm")
        data = {"stationary": bool(stationary)}
        with self._log.writing() as turn:
            if turn.repeated(key, events.ARM_ADDED, arm=name, data=data) is not None:
                return
            arms = turn.replica.selector.arms
            require(name not in arms, f"There is already an arm named {name!r}: use another name.")
            require(
                len(arms) < MOST_ARMS,
                f"A study can have at most {MOST_ARMS} arms, but got one more: remove one first.",
            )
            turn.add(events.ARM_ADDED, arm=name, key=key, data=data)

    def remove_arm(self, name: str, *, key: str | None = None) -> None:
        """Remove an arm; values of its open choices are recorded and have no effect."""
        check_key(key)
        with self._log.writing() as turn:
            if turn.repeated(key, events.ARM_REMOVED, arm=name) is not None:
                return
            arms = turn.replica.selector.arms
            if name not in arms:
                raise unknown("arm", name, arms)
            require(
                len(arms) > 1,
                f"The last arm, {name!r}, cannot be removed: add another one before.",
            )
            turn.add(events.ARM_REMOVED, arm=name, key=key)

    def claim_epoch(self, *, claimant: str | None = None, key: str | None = None) -> int | None:
        """Claim the epoch that is due. One caller in all processes gets it.

        The caller that gets an epoch retrains and calls `epoch_ready`, or, if retraining fails,
        `release_epoch`. If it does neither within `claim_expires` seconds, another caller gets the
        epoch.

        Args:
            claimant: the name of the caller (default: one for this object). Only the claimant can
                call `epoch_ready`.
            key: see `Study`.

        Returns:
            The epoch; None if no epoch is due or another caller has claimed it.
        """
        check_key(key)
        owner = check_name(self.claimant if claimant is None else claimant, "A claimant")
        # Every process calls this before every episode: nothing is written unless an epoch is due.
        with self.store.lock:
            replica = self._log.current()
            if replica.selector.online:
                return None
            taken = replica.claim is not None and replica.claim.until > time.time()
            nothing_due = taken or not replica.selector.epoch_due
            if replica.claims and key is None and nothing_due:
                return None
        with self._log.writing() as turn:
            repeated = turn.repeated(key, events.EPOCH_CLAIMED)
            if repeated is not None:
                return repeated.epoch
            replica = turn.replica
            claim = replica.claim
            if claim is not None:
                if claim.until > turn.now:
                    return None
                turn.add(events.EPOCH_RELEASED, epoch=claim.epoch, data={"expired": True})
            if replica.claims and not replica.selector.epoch_due:
                return None
            data = {"claimant": owner, "until": turn.now + self.claim_expires}
            return turn.claim_epoch(key=key, data=data)

    def epoch_ready(
        self, epoch: int, *, claimant: str | None = None, key: str | None = None
    ) -> None:
        """Start a claimed epoch: its policies are ready."""
        self._finish(events.EPOCH_READY, epoch, claimant, key)

    def release_epoch(
        self, epoch: int, *, claimant: str | None = None, key: str | None = None
    ) -> None:
        """Release a claimed epoch, so that another caller can claim it. The old one continues."""
        self._finish(events.EPOCH_RELEASED, epoch, claimant, key)

    def expire(self) -> list[int]:
        """Give up choices without a value after `expire_after` seconds; return their numbers.

        Every request does this as well; a system without requests can call it from time to time.
        """
        if self.expire_after is None:
            return []
        return self._log.expire()

    def explain(self, choice: Choice | int | None = None) -> dict[str, dict[str, float]]:
        """Return, per arm, what the next choice depends on.

        With a choice, return what that choice depended on, computed from the log.
        """
        if choice is not None:
            asked = self.events_of(choice)[events.ASKED]
            return self._log.before(asked).selector.explain()
        with self.store.lock:
            return self._log.current().selector.explain()

    def history(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Return the events after the event number `after`, in order, at most `limit` of them."""
        self._log.check_process()
        until = None if limit is None else after + limit
        return self.store.events(self._log.study, after=after, until=until)

    def last(self) -> int:
        """Return the number of the last event; 0 if there is none."""
        with self.store.lock:
            self._log.check_process()
            return self.store.last(self._log.study)

    def find_choice(self, key: str) -> Choice:
        """Return the choice that was made for the request with this key."""
        check_name(key, "A key")
        with self.store.lock:
            self._log.check_process()
            event = self.store.with_key(self._log.study, key)
            if event is None or event.kind != events.ASKED:
                raise ChoiceError(
                    f"There was no ask() with the key {schema.short(key)}: ask with it first."
                )
            return choice_of(event, with_context="context" in self._log.current().selector.wants)

    def events_of(self, choice: Choice | int) -> dict[str, Event]:
        """Return the events of a choice, by kind."""
        with self.store.lock:
            self._log.check_process()
            number, _ = number_of(choice)
            return self._log.of_choice(number)

    def counts(self) -> dict[str, int]:
        """Return the number of events by kind: asked, told, withdrawn, expired, ..."""
        with self.store.lock:
            self._log.check_process()
            return self.store.counts(self._log.study)

    @property
    def arms(self) -> tuple[str, ...]:
        return self._selector().arms

    @property
    def number(self) -> int:
        """The number of choices so far."""
        return self._selector().number

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return self._selector().epoch

    @property
    def open_choices(self) -> tuple[Choice, ...]:
        """The choices that were neither told nor withdrawn, and have not expired."""
        return self._selector().open_choices

    @property
    def open_since(self) -> dict[int, float]:
        """When each open choice was made, by its number, in seconds since 1970; oldest first."""
        with self.store.lock:
            return {number: at for number, (_, at) in self._log.current().opened.items()}

    @property
    def claim(self) -> ClaimedEpoch | None:
        """The epoch that is claimed, and by whom; also after the claim has expired."""
        with self.store.lock:
            return self._log.current().claim

    def close(self) -> None:
        """Close the connection to the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        arms = self._log.arms_in_memory()  # without a query
        return f"<Study {self.name!r} in {self.store.url}, {counted(len(arms), 'arm')}>"

    def _selector(self) -> Selector:
        with self.store.lock:
            return self._log.current().selector

    def _finish(self, kind: str, epoch: int, claimant: str | None, key: str | None) -> None:
        check_key(key)
        owner = self.claimant if claimant is None else claimant
        with self._log.writing() as turn:
            if turn.repeated(key, kind, epoch=epoch) is not None:
                return
            claim = turn.replica.claim
            if claim is None or claim.epoch != epoch or claim.claimant != owner:
                what = "no epoch is claimed"
                if claim is not None:
                    what = f"epoch {claim.epoch} is claimed by {claim.claimant!r}"
                raise StudyError(
                    f"Epoch {schema.short(epoch)} must be claimed by {schema.short(owner)} to "
                    f"become ready or to be released, but {what}: call claim_epoch(), and finish "
                    f"within {self.claim_expires:g} s."
                )
            turn.add(kind, epoch=epoch, key=key)
