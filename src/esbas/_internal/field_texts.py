"""The descriptions of the fields of dataclasses: the string below each field."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
from typing import Any

from esbas._internal.links import with_links


def own_first(config: type[Any]) -> list[dataclasses.Field[Any]]:
    """Return the fields, those of base classes last: a help begins with what a command is about."""
    inherited: set[str] = set()
    for base in config.__mro__[1:]:
        inherited |= set(getattr(base, "__annotations__", {}))
    own = [field for field in dataclasses.fields(config) if field.name not in inherited]
    return own + [field for field in dataclasses.fields(config) if field.name in inherited]


def descriptions(config: type[Any]) -> dict[str, str]:
    """Return the string below each field, in one line, also for fields of base classes.

    Pages of the documentation are links.
    """
    found: dict[str, str] = {}
    for each in reversed(config.__mro__):
        if dataclasses.is_dataclass(each):
            found |= _own_descriptions(each)
    return found


def _own_descriptions(config: type[Any]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(config))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in itertools.pairwise(definition.body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = " ".join(str(after.value.value).split())
            found[field.target.id] = with_links(text)
    return found
