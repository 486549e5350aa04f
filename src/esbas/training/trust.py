"""Which modules the folder of a training would import. A module can run any code when it is imported."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esbas.errors import TrustError
from esbas.training.config import Train
from esbas.training.options import read_call

_OWN = "esbas", "gymnasium"  # packages whose import does not run code from elsewhere


def check_modules(config: Train, portfolio: Mapping[str, Any], folder: Path) -> None:
    """Raise a TrustError if the task, the selector, the objective, a wrapper or a member is in a module.

    Nothing is imported. Only tasks in modules of esbas and Gymnasium are allowed, because a task's module is imported and nothing
    else: any other part is also called with options from the folder.

    Args:
        config: the options of the training.
        portfolio: the tables of portfolio.toml.
        folder: of the training, for the error.
    """
    found = list(dict.fromkeys(_parts(config, portfolio)))
    if found:
        parts = ", ".join(f"{name.partition(':')[0]!r} ({kind} {name!r})" for kind, name in found)
        message = f"modules run code and must be trusted, but the folder {str(folder)!r} would import {parts}"
        raise TrustError(f"{message}: if you know where this folder comes from, add --trust (in Python: trust=True)")


def _parts(config: Train, portfolio: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of each part that is in a module."""
    if ":" in config.env_id and config.env_id.partition(":")[0].partition(".")[0] not in _OWN:
        yield "task", config.env_id
    if ":" in config.selector and config.selector.partition(":")[0].lower() != "fixed":
        yield "selector", config.selector
    if ":" in config.objective:
        yield "objective", config.objective
    for text in config.wrappers:
        name, _ = read_call(text)
        if ":" in name:
            yield "wrapper", name
    members = portfolio.get("member")
    for table in members if isinstance(members, list) else ():
        name = str(table.get("algorithm", "")) if isinstance(table, dict) else ""
        if ":" in name:
            yield "member", name
