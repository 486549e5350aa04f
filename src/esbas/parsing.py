"""Command-line options from the fields of a dataclass, by tyro. The help shows the defaults that the docstrings describe."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo


def parse(config: type[Any], words: Sequence[str], *, program: str) -> Any:
    """An instance of the dataclass with the options in these words. Wrong options and --help exit."""
    registry = ConstructorRegistry()

    @registry.struct_rule
    def rule(info: StructTypeInfo) -> StructConstructorSpec | None:
        return StructConstructorSpec(config, _fields(config)) if info.type is config else None

    return tyro.cli(config, prog=program, args=words, registry=registry)


def _fields(config: type[Any]) -> tuple[StructFieldSpec, ...]:
    hints, texts = typing.get_type_hints(config, include_extras=True), _descriptions(config)
    return tuple(
        StructFieldSpec(field.name, _shown(hints[field.name], field), _default(field), texts.get(field.name, ""))
        for field in dataclasses.fields(config)
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return tyro.MISSING if field.default is dataclasses.MISSING else field.default


def _shown(hint: Any, field: dataclasses.Field[Any]) -> Any:
    """The type with its name in the help. Empty defaults are not shown: the descriptions say what they mean."""
    plain = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    kinds = [each for each in typing.get_args(plain) if each not in (types.NoneType, Ellipsis)]
    several = typing.get_origin(plain) in (tuple, list)
    own = any(getattr(each, "metavar", None) for each in getattr(hint, "__metadata__", ()))
    named = own or len(kinds) != 1 or not isinstance(kinds[0], type)  # by itself, or not optional or a list of one plain type
    metavar = None if named else kinds[0].__name__.upper() + ("..." if several else "")
    empty = field.default in (None, (), "", dataclasses.MISSING)
    return Annotated[hint, tyro.conf.arg(metavar=metavar, help_behavior_hint="" if empty else None)]


def _descriptions(config: type[Any]) -> dict[str, str]:
    """The docstring below each field, also those of base classes."""
    found: dict[str, str] = {}
    for each in reversed(config.__mro__):
        if dataclasses.is_dataclass(each):
            body = typing.cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]).body
            for field, after in itertools.pairwise(body):
                text = after.value if isinstance(after, ast.Expr) else None
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Constant):
                    found[field.target.id] = " ".join(str(text.value).split())
    return found
