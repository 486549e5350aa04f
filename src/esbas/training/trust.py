"""Which modules the folder of a training would import. A module can run any code when it is imported."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esbas.errors import TrustError
from esbas.registry import split_path
from esbas.training.config import Train
from esbas.training.options import read_call, split_options

_OWN = "esbas", "gymnasium", "ale_py"  # packages whose import does not run code from elsewhere


def check_modules(config: Train, portfolio: Mapping[str, Any], folder: Path) -> None:
    """Raise a TrustError if the task, the selector, the objective, a wrapper or a member is in a module.

    Nothing is imported. Only registered tasks in modules of esbas, Gymnasium and ale-py are allowed, because such a module is
    imported and nothing else: any other part is also called with options from the folder.

    Args:
        config: the options of the training.
        portfolio: the tables of portfolio.toml.
        folder: of the training, for the error.
    """
    found = list(dict.fromkeys(_parts(config, portfolio)))
    if found:
        parts = ", ".join(f"{split_path(name)[0]!r} ({kind} {name!r})" for kind, name in found)
        message = f"modules run code and must be trusted, but the folder {str(folder)!r} would import {parts}"
        raise TrustError(f"{message}: if you know where this folder comes from, add --trust (in Python: trust=True)")


def _parts(config: Train, portfolio: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of each part that is in a module."""
    task, options = split_options(config.env_id)
    place, name = split_path(task)
    called = all(part.isidentifier() for part in name.split("."))  # a class or function; ids have dashes
    own = place.partition(".")[0] in _OWN and not place.endswith(".py") and ":" not in name
    if config.env is None and place and (called or not own):
        yield "task", task
    for text in _texts(options):
        if ":" in text:  # some tasks import what an option names
            yield "task", text
    yield from _parts_of_selector(config.selector)
    if ":" in config.objective:
        yield "objective", config.objective
    for wrapper in config.wrappers:
        name, _ = read_call(wrapper)
        if ":" in name:
            yield "wrapper", name
    members = portfolio.get("member")
    for table in members if isinstance(members, list) else ():
        name = str(table.get("algorithm", "")) if isinstance(table, dict) else ""
        if ":" in name:
            yield "member", name


def _parts_of_selector(text: str) -> Iterator[tuple[str, str]]:
    if text.partition(":")[0].lower() == "fixed":
        return
    name, options = split_options(text)
    for each in (name, *_texts(options)):
        if ":" in each:
            yield "selector", each


def _texts(value: Any) -> Iterator[str]:
    """All texts within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple | set):
        for each in value:
            yield from _texts(each)
