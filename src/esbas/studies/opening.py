"""Opens stores and studies by URL."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from esbas.errors import InvalidValueError, StudyError, require
from esbas.selectors import Selector
from esbas.store.description import build_selector, check_trust, describe_selector
from esbas.store.requests import check_name, check_seconds
from esbas.store.sqlite import SQLiteStore
from esbas.store.store import Store, StudyRow
from esbas.store.study import Study

CLAIM_EXPIRES = 3600.0  # seconds


def open_store(url: str | os.PathLike[str], *, create: bool = True) -> Store:
    """The store at a URL: its studies.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` (`?synchronous=full` waits for the disk at every commit), the path
            of a file, or `postgresql://user:password@host/database`.
        create: whether to create the file or the tables if there are none.
    """
    url = os.fspath(url)
    kind, marker, rest = url.partition("://")
    if not marker:
        return SQLiteStore(_path(url, url), create=create)
    if kind in ("postgresql", "postgres"):
        from esbas.store.postgresql import PostgreSQLStore  # here, because psycopg is an extra

        return PostgreSQLStore(url, create=create)
    if kind != "sqlite":
        rule = "a store must be sqlite:///FILE, postgresql://... or the path of a file"
        raise InvalidValueError(f"{rule}, but got a URL that starts with {kind[:60]!r}: use one of them")
    place, _, query = rest.partition("?")
    require(place.startswith("/"), "a URL of SQLite has three slashes", "write sqlite:///FILE", url=url)
    options = dict(parse_qsl(query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "normal").lower()
    require(not options, "a URL of SQLite has no option but synchronous", "remove the others", url=url)
    if synchronous == "full":
        return SQLiteStore(_path(unquote(place[1:]), url), synchronous="full", create=create)
    require(synchronous == "normal", "synchronous is normal or full", url=url)
    return SQLiteStore(_path(unquote(place[1:]), url), create=create)


def open_study(
    url: str | os.PathLike[str],
    name: str,
    *,
    selector: str | Selector | Mapping[str, Any] | None = None,
    arms: Iterable[str] | None = None,
    stationary: Collection[str] = (),
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    expire_after: float | None = None,
    claim_expires: float | None = None,
    trust: bool = False,
) -> Study:
    """Create a study, or open an existing one.

    An existing study needs no selector and no settings; given ones must be those that it was created with.

    Args:
        url: see `open_store`.
        name: of the study: any text of 1 to 200 characters.
        selector: a name of `esbas.selectors.make_selector`; or a new selector, such as `esbas.default_selector(["a", "b"])`; or
            name, arms, stationary, seed and options as plain data, as `study.description["selector"]` has them.
        arms: the names of the arms.
        stationary: the arms that never learn.
        seed: of the selector's random stream.
        options: `scale`, `xi`, `epochs` and parameters of the selector or its bandit; `bandit` is the name of a bandit.
        expire_after: seconds until a choice that nobody told is given up (default: never).
        claim_expires: seconds until an epoch that was claimed can be claimed again (default: an hour).
        trust: whether the modules that an existing study names may be imported. Imported modules can run any code.
    """
    check_name(name, "the name of a study")
    check_seconds(expire_after, "expire_after")
    check_seconds(claim_expires, "claim_expires")
    wanted = None
    if selector is not None:
        wanted = describe_selector(selector, arms=arms, stationary=stationary, seed=seed, options=options)
    else:
        given = arms is None and not stationary and not seed and not options
        require(given, "arms, stationary, seed and options belong to a selector", "give one, or leave them out", arms=arms)
    store = open_store(url, create=wanted is not None)
    try:
        if wanted is None:
            row = store.get(name)
        else:
            build_selector(wanted)  # what cannot be built is not stored
            settings = {"expire_after": expire_after, "claim_expires": claim_expires or CLAIM_EXPIRES}
            row, _ = store.create(name, {"selector": wanted} | {key: value and float(value) for key, value in settings.items()})
        _check_same(row, wanted, {"expire_after": expire_after, "claim_expires": claim_expires})
        if wanted is None and not trust:
            check_trust(row.description["selector"], name)
        return Study(store, row)
    except BaseException:
        store.close()
        raise


def _check_same(row: StudyRow, selector: Mapping[str, Any] | None, settings: Mapping[str, float | None]) -> None:
    known = row.description["selector"]
    different = {} if selector is None else {key: item for key, item in selector.items() if known[key] != item}
    different |= {key: item for key, item in settings.items() if item is not None and row.description[key] != item}
    if different:
        before = {key: known.get(key, row.description.get(key)) for key in different}
        raise StudyError(
            f"a study keeps the selector and the settings that it was created with, but {row.name!r} has {before}, "
            f"not {different}: leave them out, or use another name"
        )


def _path(text: str, url: str) -> Path:
    require(text != "" and "\0" not in text and text != ":memory:", "a store is a file", "give its path", url=url)
    return Path(text)
