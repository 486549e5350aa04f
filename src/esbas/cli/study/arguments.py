"""What the commands share: the URL and the name of a study, and selectors as text."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import tyro

from esbas.specs.options import split_options
from esbas.studies import Store, Study, open_store, open_study
from esbas.studies.description import describe_selector

Url = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="URL")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]


@contextmanager
def existing_store(url: str) -> Iterator[Store]:
    """Open a store that exists already."""
    with closing(open_store(url, create=False)) as store:
        yield store


@contextmanager
def existing_study(url: str, name: str, *, trust: bool) -> Iterator[Study]:
    """Open a study that exists already."""
    with open_study(url, name, trust=trust) as study:
        yield study


def read_description(
    text: str, arms: Sequence[str], *, stationary: Sequence[str] = (), seed: int = 0
) -> dict[str, Any]:
    """Return the plain data of a selector such as "ssbas(xi=1)".

    `fixed:NAME` has no options: NAME may be any text.
    """
    is_fixed = text.partition(":")[0].lower() == "fixed"
    name, options = (text, {}) if is_fixed else split_options(text)
    return describe_selector(name, arms=arms, stationary=stationary, seed=seed, options=options)


def as_date(seconds: float) -> str:
    """Return a human-readable UTC time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
