"""What the commands have in common: the place of a study, and selectors as text."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import tyro

from esbas.store import Store, Study, open_store, open_study
from esbas.store.description import describe_selector
from esbas.training.options import split_options

Url = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="URL")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]


@contextmanager
def existing_store(url: str) -> Iterator[Store]:
    """A store that exists already."""
    with closing(open_store(url, create=False)) as store:
        yield store


@contextmanager
def existing_study(url: str, name: str, *, trust: bool) -> Iterator[Study]:
    """A study that exists already."""
    with open_study(url, name, trust=trust) as study:
        yield study


def read_description(text: str, arms: Sequence[str], *, stationary: Sequence[str] = (), seed: int = 0) -> dict[str, Any]:
    """The plain data of a selector such as "ssbas(xi=1)". `fixed:NAME` has no options: NAME may be any text."""
    name, options = (text, {}) if text.partition(":")[0].lower() == "fixed" else split_options(text)
    return describe_selector(name, arms=arms, stationary=stationary, seed=seed, options=options)


def as_date(seconds: float) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
