"""Command-line options from the fields of a dataclass, by tyro.

The help shows the defaults that the docstrings describe.
"""

import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from esbas._internal import values
from esbas._internal.field_texts import descriptions, own_first
from esbas._internal.links import links_in, with_links, without_links

_WIDTH = 80  # columns of the description


def parse(
    config: type[Any],
    words: Sequence[str],
    *,
    program: str,
    announce: Callable[[Mapping[str, Any]], None] | None = None,
) -> Any:
    """Return an instance of the dataclass with these options. Wrong options and --help exit.

    `announce` is called with the options before the instance is created, which may import much to
    check them.
    """
    registry = ConstructorRegistry()

    @registry.struct_rule
    def rule(info: StructTypeInfo) -> StructConstructorSpec | None:
        if info.type is not config:
            return None
        return StructConstructorSpec(dict, _fields(config))

    options: Any = tyro.cli(
        config, prog=program, args=words, registry=registry, description=_about(config)
    )
    # Read and called here, because tyro would show errors as if they were those of a type.
    for name, hint in typing.get_type_hints(config, include_extras=True).items():
        word = options.get(name)
        if _is_whole(hint) and isinstance(word, str):
            options[name] = values.whole(name, word)
    if announce is not None:
        announce(options)
    return config(**options)


def _about(config: type[Any]) -> str:
    """Return the docstring of the class, wrapped for a terminal.

    tyro does not wrap it, and joins lines again that begin with a letter: so they are indented.
    The links of all options are added: in the narrow column of an option, tyro would break them.
    """
    wrapped: list[str] = []
    for paragraph in with_links(inspect.getdoc(config) or "").split("\n\n"):
        words = " ".join(paragraph.split())
        lines = textwrap.fill(words, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        wrapped.append(lines)
    wrapped += links_in(" ".join(descriptions(config).values()))
    return "\n\n".join(wrapped)


def _fields(config: type[Any]) -> tuple[StructFieldSpec, ...]:
    hints = typing.get_type_hints(config, include_extras=True)
    texts = descriptions(config)
    found: list[StructFieldSpec] = []
    for field in own_first(config):
        hint = _shown(hints[field.name], field)
        text = without_links(texts.get(field.name, ""))
        found.append(StructFieldSpec(field.name, hint, _default(field), text))
    return tuple(found)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        return tyro.MISSING
    return field.default


def _shown(hint: Any, field: dataclasses.Field[Any]) -> Any:
    """Return the type, with its name in the help and whether the default is shown.

    Empty defaults are not shown, because the descriptions explain them.
    """
    is_empty = field.default in (None, (), "", dataclasses.MISSING)
    behavior_hint = "" if is_empty else None
    if _is_whole(hint):
        hint = Annotated[hint, _WHOLE_NUMBER]
    shown = tyro.conf.arg(metavar=_metavar(hint), help_behavior_hint=behavior_hint)
    return Annotated[hint, shown]


def _is_whole(hint: Any) -> bool:
    """Return whether the option is a whole number, which may be optional."""
    plain = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    return plain is int or plain == int | None


def _word_or_none(words: list[str]) -> str | None:
    return None if words[0] == "None" else words[0]


# Numbers are kept as they are written, such as 1e5 or 100k; `parse` reads them.
_WHOLE_NUMBER: PrimitiveConstructorSpec[Any] = PrimitiveConstructorSpec(
    nargs=1,
    metavar="INT",
    instance_from_str=_word_or_none,
    is_instance=lambda _: True,
    str_from_instance=lambda given: [str(given)],
)


def _metavar(hint: Any) -> str | None:
    """Return the name of an optional value or of a list, such as "INT..."; None for tyro's own."""
    metadata = getattr(hint, "__metadata__", ())
    if any(getattr(each, "metavar", None) for each in metadata):
        return None  # the annotation has a name
    plain = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    kinds = [each for each in typing.get_args(plain) if each not in (types.NoneType, Ellipsis)]
    if len(kinds) != 1 or not isinstance(kinds[0], type):
        return None
    name = kinds[0].__name__.upper()
    return f"{name}..." if typing.get_origin(plain) in (tuple, list) else name
