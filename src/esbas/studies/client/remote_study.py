"""A study of a service, with the methods of a `Study` on this machine."""

import math
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from esbas import schema
from esbas.client.connection import Connection, checked, part, read_answer
from esbas.errors import ServiceError, StoreError
from esbas.selectors import Choice
from esbas.store.events import Event
from esbas.store.requests import check_arms, check_context, check_log_probs, check_name, check_value, number_of

_NUMBER = schema.AnyOf(None, float)
_COUNT, _TEXT = schema.AnyOf(None, schema.COUNT), schema.AnyOf(None, str)
_CHOICE = {
    "number": schema.COUNT,
    "arm": str,
    "epoch": schema.COUNT,
    "context": schema.AnyOf(None, [_NUMBER]),
    "propensity": _NUMBER,
    str: Any,
}
_EVENT = {
    "seq": schema.COUNT,
    "kind": str,
    "number": _COUNT,
    "arm": _TEXT,
    "value": _NUMBER,
    "propensity": _NUMBER,
    "epoch": _COUNT,
    "at": float,
    "key": _TEXT,
    "data": {str: Any},
    str: Any,
}
PAGE = 1000  # events that are read at a time
REFUSED = 1.0  # seconds until a stream that was refused is requested again


class RemoteStudy:
    """A study of a service. `Client.study` returns one.

    Its methods do the same as those of `esbas.store.Study`, and raise the same errors. Requests without a key get a random one,
    so that they can be repeated if an answer is lost.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self.name = check_name(name, "the name of a study")
        self.claimant = uuid.uuid4().hex  # under which this object claims epochs, unless the caller names another one
        self._connection = connection
        self._path = f"/v1/studies/{quote(name, safe='')}"

    def ask(self, *, among: Collection[str] | None = None, context: Any = None, key: str | None = None) -> Choice:
        """Choose the arm for the next episode."""
        names = None if among is None else check_arms(among, "the arms to choose from")
        found = self._post("ask", {"among": names, "context": check_context(context), "key": _key(key)})
        return choice_of(found)

    def tell(
        self,
        choice: Choice | int,
        value: float,
        *,
        log_probs: Mapping[str, Sequence[float]] | None = None,
        key: str | None = None,
    ) -> None:
        """Report the value of the choice's episode; larger is better."""
        given = {"value": check_value(value), "log_probs": check_log_probs(log_probs), "key": _key(key)}
        self._post("tell", _about(choice) | given)

    def withdraw(self, choice: Choice | int, *, key: str | None = None) -> None:
        """Close a choice without a value."""
        self._post("withdraw", _about(choice) | {"key": _key(key)})

    def add_arm(self, name: str, *, stationary: bool = False, key: str | None = None) -> None:
        """Add an unplayed arm."""
        self._post("arms", {"name": name, "stationary": bool(stationary), "key": _key(key)})

    def remove_arm(self, name: str, *, key: str | None = None) -> None:
        """Remove an arm."""
        arm = quote(check_name(name, "the name of an arm"), safe="")
        self._connection.request("DELETE", f"{self._path}/arms/{arm}", query={"key": _key(key)})

    def claim_epoch(self, *, claimant: str | None = None, key: str | None = None) -> int | None:
        """The epoch that is due, for one caller in all processes; None for everybody else and if no epoch is due."""
        answer = self._post("epochs/claim", {"claimant": claimant or self.claimant, "key": _key(key)})
        epoch: int | None = part(answer, "epoch", _COUNT)
        return epoch

    def epoch_ready(self, epoch: int, *, claimant: str | None = None, key: str | None = None) -> None:
        """The policies of a claimed epoch are in place: the epoch starts."""
        self._post(f"epochs/{epoch:d}/ready", {"claimant": claimant or self.claimant, "key": _key(key)})

    def release_epoch(self, epoch: int, *, claimant: str | None = None, key: str | None = None) -> None:
        """Give a claimed epoch back."""
        self._post(f"epochs/{epoch:d}/release", {"claimant": claimant or self.claimant, "key": _key(key)})

    def expire(self) -> list[int]:
        """Give up the choices that nobody told within `expire_after` seconds, and return their numbers."""
        return list(part(self._post("expire", None), "expired", [int]))

    def explain(self, choice: Choice | int | None = None) -> dict[str, dict[str, float]]:
        """Per arm: what the next choice depends on, or what an earlier one depended on. Infinite numbers arrive as NaN."""
        number = None if choice is None else number_of(choice)[0]
        rows = part(self._get("explain", choice=number), "arms", {str: {str: _NUMBER}})
        return {arm: {name: math.nan if item is None else item for name, item in row.items()} for arm, row in rows.items()}

    def history(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """All events, or those after the event number `after`, in order, and at most `limit` of them."""
        left = math.inf if limit is None else limit
        while left > 0:
            page = part(self._get("history", after=after, limit=int(min(left, PAGE))), "events", [Any])
            events = [event_of(each) for each in page]
            if not events:
                return
            yield from events
            after, left = events[-1].seq, left - len(events)

    def follow(self, *, after: int = 0) -> Iterator[Event]:
        """The events after `after`, and then new ones as they happen, without an end."""
        while True:
            seen = after
            try:
                for line in self._connection.lines(f"{self._path}/events", {"last-event-id": str(after)}):
                    if line.startswith("data: "):
                        event = event_of(read_answer(line.removeprefix("data: ")))
                        yield event
                        after = event.seq
            except (ServiceError, StoreError):
                if seen == after:  # the stream was refused: raise an error if the service is gone, or try again
                    self.counts()
                    time.sleep(REFUSED)

    def events_of(self, choice: Choice | int) -> dict[str, Event]:
        """The events of a choice, by kind."""
        found = part(self._get(f"choices/{number_of(choice)[0]:d}"), "events", {str: Any})
        return {kind: event_of(each) for kind, each in found.items()}

    def counts(self) -> dict[str, int]:
        """The number of events by kind."""
        return dict(part(self._get("counts"), "counts", {str: schema.COUNT}))

    def describe(self) -> dict[str, Any]:
        """The selector, the settings and the state of the study: see docs/service.md."""
        return dict(checked(self._connection.request("GET", self._path), {str: Any}))

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(part(self._get("arms"), "arms", [str]))

    def _post(self, path: str, body: Mapping[str, Any] | None) -> Any:
        return self._connection.request("POST", f"{self._path}/{path}", body=body)

    def _get(self, path: str, **query: int | None) -> Any:
        return self._connection.request("GET", f"{self._path}/{path}", query=query)


def choice_of(answer: Any) -> Choice:
    """The choice in an answer."""
    checked(answer, _CHOICE)
    context = answer["context"]
    known = None if context is None else tuple(math.nan if each is None else float(each) for each in context)
    return Choice(
        number=answer["number"], arm=answer["arm"], epoch=answer["epoch"], context=known, propensity=answer["propensity"]
    )


def event_of(answer: Any) -> Event:
    """The event in an answer."""
    checked(answer, _EVENT)
    return Event(**{name: answer[name] for name in Event._fields})


def _about(choice: Choice | int) -> dict[str, Any]:
    number, arm = number_of(choice)
    return {"choice": number, "arm": arm}


def _key(key: str | None) -> str:
    return uuid.uuid4().hex if key is None else check_name(key, "a key")
