"""The studies that the service has open: one object each, shared by all requests."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from esbas.errors import StudyError
from esbas.studies import Store, Study, open_store, open_study
from esbas.studies.description import check_trust, describe_selector
from esbas.studies.requests import check_name
from esbas.studies.server.settings import ServiceLimits


@dataclass
class _Entry:
    study: Study
    users: int = 0


class OpenStudies:
    """Studies by name, opened when they are needed.

    If too many are open, those that were not used for the longest time are closed.

    Args:
        url: the store, which is created if there is none.
        limits: see `ServiceLimits`.
        trust: whether modules that studies in the store name may be imported. Clients can never
            name any.
    """

    def __init__(self, url: str, *, limits: ServiceLimits, trust: bool = False) -> None:
        self._url = url
        self._limits = limits
        self._trust = trust
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()  # of the entries
        self._opening = threading.Lock()  # one study is opened at a time
        self.store: Store = open_store(url)

    @contextmanager
    def use(self, name: str) -> Iterator[Study]:
        """Give a study, which stays open within the block."""
        entry = self._take(name)
        if entry is None:
            with self._opening:
                entry = self._take(name)  # another thread may have opened it meanwhile
                if entry is None:
                    entry = self._add(name, open_study(self._url, name, trust=self._trust))
        try:
            yield entry.study
        finally:
            with self._lock:
                entry.users -= 1
            self._close_idle()

    def open(
        self,
        name: str,
        *,
        selector: str | None,
        settings: Mapping[str, Any],
        expire_after: float | None,
        claim_expires: float | None,
    ) -> None:
        """Create a study, unless it exists with the same settings.

        Args:
            name: of the study.
            selector: a name of `esbas.selectors.make_selector`; None: the study must exist.
            settings: the other arguments of `describe_selector`.
            expire_after: see `open_study`.
            claim_expires: see `open_study`.
        """
        check_name(name, "The name of a study")
        given: dict[str, Any]
        if selector is None:
            given = {"trust": self._trust, **settings}
        else:
            description = describe_selector(selector, **settings)
            check_trust(description, name)
            self._check_number(name)
            given = {"selector": description}
        study = open_study(
            self._url, name, expire_after=expire_after, claim_expires=claim_expires, **given
        )
        study.close()

    def close(self) -> None:
        """Close all studies and the store."""
        with ExitStack() as stack, self._lock:
            stack.callback(self.store.close)
            for entry in self._entries.values():
                stack.callback(entry.study.close)
            self._entries.clear()

    def _check_number(self, name: str) -> None:
        with self.store.lock:
            studies = 0 if self.store.find(name) else len(self.store.studies())
        if studies >= self._limits.studies:
            raise StudyError(
                f"The service can have at most {self._limits.studies} studies, and has {studies}: "
                "use an existing one, or start the service with a larger limit."
            )

    def _take(self, name: str) -> _Entry | None:
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None:
                entry.users += 1
                self._entries.move_to_end(name)
            return entry

    def _add(self, name: str, study: Study) -> _Entry:
        with self._lock:
            entry = _Entry(study, users=1)
            self._entries[name] = entry
            return entry

    def _close_idle(self) -> None:
        if len(self._entries) <= self._limits.open_studies:
            return
        with self._lock:
            too_many = len(self._entries) - self._limits.open_studies
            idle = [name for name, entry in self._entries.items() if not entry.users]
            gone = [self._entries.pop(name) for name in idle[:too_many]]
        for entry in gone:
            entry.study.close()
