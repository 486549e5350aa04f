"""A study of a service, with the methods of a `Study` on this machine."""

import math
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from esbas._internal import schema
from esbas.errors import ServiceError, StoreError
from esbas.selectors import Choice
from esbas.selectors.choice import check_value
from esbas.studies.choosing import StudyBlocks
from esbas.studies.client.connection import Connection, checked, part, read_answer
from esbas.studies.events import Event
from esbas.studies.requests import check_arms, check_context, check_log_probs, check_name, number_of

_NUMBER = schema.AnyOf(None, float)
_COUNT = schema.AnyOf(None, schema.COUNT)
_TEXT = schema.AnyOf(None, str)
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


class RemoteStudy(StudyBlocks):
    """A study of a service. `Client.study` returns one.

    Its methods do the same as those of `esbas.studies.Study`, and raise the same errors. Requests
    without a key get a random one, so that they can be repeated if an answer is lost.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self.name = check_name(name, "The name of a study")
        # The name under which this object claims epochs, unless the caller gives another one
        self.claimant = uuid.uuid4().hex
        self._connection = connection
        self._path = f"/v1/studies/{quote(name, safe='')}"

    def ask(
        self, *, among: Collection[str] | None = None, context: Any = None, key: str | None = None
    ) -> Choice:
        """Choose the arm for the next episode."""
        names = None if among is None else check_arms(among, "The arms to choose from")
        body = {"among": names, "context": check_context(context), "key": _key(key)}
        return choice_of(self._post("ask", body))

    def tell(
        self,
        choice: Choice | int,
        value: float,
        *,
        log_probs: Mapping[str, Sequence[float]] | None = None,
        key: str | None = None,
    ) -> None:
        """Report the value of the choice's episode; larger is better."""
        body = {
            **_about(choice),
            "value": check_value(value),
            "log_probs": check_log_probs(log_probs),
            "key": _key(key),
        }
        self._post("tell", body)

    def withdraw(self, choice: Choice | int, *, key: str | None = None) -> None:
        """Close a choice without a value."""
        self._post("withdraw", {**_about(choice), "key": _key(key)})

    def add_arm(self, name: str, *, stationary: bool = False, key: str | None = None) -> None:
        """Add an unplayed arm."""
        self._post("arms", {"name": name, "stationary": bool(stationary), "key": _key(key)})

    def remove_arm(self, name: str, *, key: str | None = None) -> None:
        """Remove an arm."""
        arm = quote(check_name(name, "The name of an arm"), safe="")
        self._connection.request("DELETE", f"{self._path}/arms/{arm}", query={"key": _key(key)})

    def claim_epoch(self, *, claimant: str | None = None, key: str | None = None) -> int | None:
        """Claim the epoch that is due, or return None. One caller in all processes gets it."""
        answer = self._post("epochs/claim", self._claim(claimant, key))
        epoch: int | None = part(answer, "epoch", _COUNT)
        return epoch

    def epoch_ready(
        self, epoch: int, *, claimant: str | None = None, key: str | None = None
    ) -> None:
        """Start a claimed epoch: its policies are ready."""
        self._post(f"epochs/{epoch:d}/ready", self._claim(claimant, key))

    def release_epoch(
        self, epoch: int, *, claimant: str | None = None, key: str | None = None
    ) -> None:
        """Release a claimed epoch."""
        self._post(f"epochs/{epoch:d}/release", self._claim(claimant, key))

    def expire(self) -> list[int]:
        """Give up choices without a value after `expire_after` seconds; return their numbers."""
        return list(part(self._post("expire", None), "expired", [int]))

    def explain(self, choice: Choice | int | None = None) -> dict[str, dict[str, float]]:
        """Return, per arm, what the next choice depends on, or what an earlier one depended on.

        Infinite numbers arrive as NaN.
        """
        number = None
        if choice is not None:
            number, _ = number_of(choice)
        rows = part(self._get("explain", choice=number), "arms", {str: {str: _NUMBER}})
        explained = {}
        for arm, row in rows.items():
            explained[arm] = {name: _or_nan(item) for name, item in row.items()}
        return explained

    def history(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Yield the events after the event number `after`, in order, at most `limit` of them."""
        left = math.inf if limit is None else limit
        while left > 0:
            answer = self._get("history", after=after, limit=int(min(left, PAGE)))
            events = [event_of(each) for each in part(answer, "events", [Any])]
            if not events:
                return
            yield from events
            after = events[-1].seq
            left -= len(events)

    def follow(self, *, after: int = 0) -> Iterator[Event]:
        """Yield the events after `after`, and then new ones as they happen, without an end."""
        while True:
            seen = after
            headers = {"last-event-id": str(after)}
            try:
                for line in self._connection.lines(f"{self._path}/events", headers):
                    if line.startswith("data: "):
                        event = event_of(read_answer(line.removeprefix("data: ")))
                        yield event
                        after = event.seq
            except (ServiceError, StoreError):
                # The stream was refused: raise an error if the service is gone, or try again.
                if seen == after:
                    self.counts()
                    time.sleep(REFUSED)

    def events_of(self, choice: Choice | int) -> dict[str, Event]:
        """Return the events of a choice, by kind."""
        number, _ = number_of(choice)
        found = part(self._get(f"choices/{number:d}"), "events", {str: Any})
        return {kind: event_of(each) for kind, each in found.items()}

    def counts(self) -> dict[str, int]:
        """Return the number of events by kind."""
        return dict(part(self._get("counts"), "counts", {str: schema.COUNT}))

    def describe(self) -> dict[str, Any]:
        """Return the selector, the settings and the state of the study: see docs/service.md."""
        return dict(checked(self._connection.request("GET", self._path), {str: Any}))

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(part(self._get("arms"), "arms", [str]))

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r} at {self._connection.url}>"

    def _claim(self, claimant: str | None, key: str | None) -> dict[str, Any]:
        """Return the body of a request about an epoch."""
        return {"claimant": claimant or self.claimant, "key": _key(key)}

    def _post(self, path: str, body: Mapping[str, Any] | None) -> Any:
        return self._connection.request("POST", f"{self._path}/{path}", body=body)

    def _get(self, path: str, **query: int | None) -> Any:
        return self._connection.request("GET", f"{self._path}/{path}", query=query)


def choice_of(answer: Any) -> Choice:
    """Return the choice in an answer."""
    checked(answer, _CHOICE)
    context = None
    if answer["context"] is not None:
        context = tuple(float(_or_nan(each)) for each in answer["context"])
    return Choice(
        number=answer["number"],
        arm=answer["arm"],
        epoch=answer["epoch"],
        context=context,
        propensity=answer["propensity"],
    )


def event_of(answer: Any) -> Event:
    """Return the event in an answer."""
    checked(answer, _EVENT)
    return Event(**{name: answer[name] for name in Event._fields})


def _about(choice: Choice | int) -> dict[str, Any]:
    number, arm = number_of(choice)
    return {"choice": number, "arm": arm}


def _key(key: str | None) -> str:
    return uuid.uuid4().hex if key is None else check_name(key, "A key")


def _or_nan(number: float | None) -> float:
    """Return a number of an answer: JSON has null for numbers that are not finite."""
    return math.nan if number is None else number
