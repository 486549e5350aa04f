"""Opens stores and studies by URL."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from esbas._internal import schema, values
from esbas.errors import InvalidValueError, StudyError, require
from esbas.selectors import SelectorLike
from esbas.studies.description import (
    build_selector,
    check_no_settings,
    check_trust,
    describe_selector,
)
from esbas.studies.requests import check_name, check_seconds
from esbas.studies.sqlite import SQLiteStore
from esbas.studies.store import Store, StudyRow
from esbas.studies.study import Study

CLAIM_EXPIRES = 3600.0  # seconds


def open_store(url: str | os.PathLike[str], *, create: bool = True) -> Store:
    """Open the store at a URL.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` (`?synchronous=full` waits for the
            disk at every commit), the path of a file, or
            `postgresql://user:password@host/database`.
        create: whether to create the file or the tables if there are none.
    """
    if not isinstance(url, str | os.PathLike) or not isinstance(os.fspath(url), str):
        raise InvalidValueError(
            "A store must be sqlite:///FILE, postgresql://... or the path of a file, "
            f"but got {schema.short(url)}."
        )
    url = os.fspath(url)
    kind, marker, rest = url.partition("://")
    if not marker:
        return SQLiteStore(_path(url, url), create=create)
    if kind in ("postgresql", "postgres"):
        from esbas.studies.postgresql import PostgreSQLStore  # here, because psycopg is an extra

        return PostgreSQLStore(url, create=create)
    if kind in ("http", "https"):
        raise InvalidValueError(
            f"A store must be a database or a file, but got a URL that starts with {kind!r}: "
            "for a service, use esbas.studies.client.Client(url).study(name)."
        )
    if kind != "sqlite":
        raise InvalidValueError(
            "A store must be sqlite:///FILE, postgresql://... or the path of a file, but got a "
            f"URL that starts with {kind[:60]!r}."
        )
    file, _, query = rest.partition("?")
    require(
        file.startswith("/"),
        f"A URL of SQLite must have three slashes, but got {url!r}: write sqlite:///FILE.",
    )
    options = dict(parse_qsl(query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "normal").lower()
    require(
        not options,
        f"A URL of SQLite can have no option but `synchronous`, but got {url!r}: "
        "remove the others.",
    )
    require(
        synchronous in ("normal", "full"), f"`synchronous` must be normal or full, but got {url!r}."
    )
    path = _path(unquote(file[1:]), url)
    if synchronous == "full":
        return SQLiteStore(path, synchronous="full", create=create)
    return SQLiteStore(path, create=create)


def open_study(
    url: str | os.PathLike[str],
    name: str,
    *,
    selector: SelectorLike | Mapping[str, Any] = None,
    arms: Iterable[str] | None = None,
    stationary: Collection[str] = (),
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    expire_after: float | None = None,
    claim_expires: float | None = None,
    trust: bool = False,
) -> Study:
    """Create a study, or open an existing one.

    An existing study needs no selector and no settings; given ones must be those that it was
    created with.

    Args:
        url: see `open_store`.
        name: of the study: any text of 1 to 200 characters.
        selector: a name of `esbas.selectors.make_selector`; a class such as `esbas.SSBAS`; a new
            selector, such as `esbas.default_selector(["a", "b"])`; or name, arms, stationary, seed
            and options as plain data, as `study.description["selector"]` has them.
        arms: the names of the arms.
        stationary: the arms that never learn.
        seed: of the selector's random stream.
        options: `scale`, `xi`, `epochs` and parameters of the selector or its bandit; `bandit` is
            the name of a bandit.
        expire_after: seconds until a choice without a value is given up (default: never).
        claim_expires: seconds until an epoch that was claimed can be claimed again (default: an
            hour).
        trust: whether the modules that an existing study names may be imported. Imported modules
            can run any code.
    """
    check_name(name, "The name of a study")
    values.truth("trust", trust)
    check_seconds(expire_after, "`expire_after`")
    check_seconds(claim_expires, "`claim_expires`")
    wanted = None
    if selector is not None:
        wanted = describe_selector(
            selector, arms=arms, stationary=stationary, seed=seed, options=options
        )
    else:
        check_no_settings(arms=arms, stationary=stationary, seed=seed, options=options)
    store = open_store(url, create=wanted is not None)
    try:
        if wanted is None:
            row = store.get(name)
        else:
            build_selector(wanted)  # what cannot be built is not stored
            description = {
                "selector": wanted,
                "expire_after": None if expire_after is None else float(expire_after),
                "claim_expires": float(claim_expires or CLAIM_EXPIRES),
            }
            row, _ = store.create(name, description)
        _check_same(row, wanted, {"expire_after": expire_after, "claim_expires": claim_expires})
        if wanted is None and not trust:
            check_trust(row.description["selector"], name)
        return Study(store, row)
    except BaseException:
        store.close()
        raise


def _check_same(
    row: StudyRow, selector: Mapping[str, Any] | None, settings: Mapping[str, float | None]
) -> None:
    """Raise an error if a selector or settings are given that differ from those of the study."""
    known = row.description["selector"] | row.description
    given = {key: seconds for key, seconds in settings.items() if seconds is not None}
    wanted = {**(selector or {}), **given}
    different = {key: item for key, item in wanted.items() if known[key] != item}
    if different:
        before = {key: known[key] for key in different}
        raise StudyError(
            "A study keeps the selector and the settings that it was created with, but "
            f"{row.name!r} has {before}, not {different}: leave them out, or use another name."
        )


def _path(text: str, url: str) -> Path:
    require(
        text != "" and "\0" not in text and text != ":memory:",
        f"A store must be a file, but got {url!r}: give its path.",
    )
    return Path(text)
