"""The client of a service, which lists and opens its studies."""

from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from esbas.selectors import SelectorLike
from esbas.studies.client.connection import Connection, checked, part
from esbas.studies.client.remote_study import RemoteStudy
from esbas.studies.description import check_no_settings, describe_selector


class Client:
    """A service of studies, as `esbas serve` starts one. Safe to share between threads.

    Requests that fail because the service or its store cannot be reached, or because there were too
    many, are sent again for `patience` seconds. This is safe: every request that changes a study
    has a key.

    Args:
        url: of the service, such as `http://127.0.0.1:8000`.
        token: a token of the service's token file.
        timeout: seconds to wait for an answer.
        patience: seconds during which a request is repeated.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 60.0, patience: float = 30.0
    ) -> None:
        self._connection = Connection(url, token=token, timeout=timeout, patience=patience)

    def study(
        self,
        name: str,
        *,
        selector: SelectorLike | Mapping[str, Any] = None,
        arms: Iterable[str] | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        expire_after: float | None = None,
        claim_expires: float | None = None,
    ) -> RemoteStudy:
        """Open a study of the service; with a selector, create it unless it exists.

        The arguments are those of `esbas.open_study`.
        """
        body: dict[str, Any] = {
            "name": name,
            "expire_after": expire_after,
            "claim_expires": claim_expires,
        }
        if selector is not None:
            described = describe_selector(
                selector, arms=arms, stationary=stationary, seed=seed, options=options
            )
            body |= described | {"name": name, "selector": described["name"]}
        else:
            check_no_settings(arms=arms, stationary=stationary, seed=seed, options=options)
        answer = self._connection.request("POST", "/v1/studies", body=body)
        return RemoteStudy(self._connection, part(answer, "name", str))

    def existing_study(self, name: str) -> RemoteStudy:
        """Open a study that exists. A token with the scope read is enough."""
        study = RemoteStudy(self._connection, name)
        study.describe()
        return study

    def studies(self) -> list[dict[str, Any]]:
        """Return all studies: name, selector, settings, and the number of the last event."""
        answer = self._connection.request("GET", "/v1/studies")
        return list(part(answer, "studies", [{str: Any}]))

    def health(self) -> dict[str, Any]:
        """Return whether the service and its store work, and the version of esbas there."""
        answer = self._connection.request("GET", "/healthz")
        return dict(checked(answer, {str: Any}))

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<Client of {self._connection.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
