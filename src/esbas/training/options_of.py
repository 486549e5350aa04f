"""Functions that take the options of a configuration class: each option has one definition."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_origin

from esbas._internal.field_texts import descriptions, own_first
from esbas._internal.schema import short
from esbas.errors import InvalidValueError, require, unknown

Options = ParamSpec("Options")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def takes_options_of(
    config: Callable[Options, Any],
) -> Callable[[Callable[[Any], Result]], Callable[Options, Result]]:
    """Give a function of a configuration the arguments of the configuration class."""

    def decorate(function: Callable[[Any], Result]) -> Callable[Options, Result]:
        @functools.wraps(function)
        def call(*arguments: Options.args, **options: Options.kwargs) -> Result:
            _check_names(config, arguments, options)
            return function(config(*arguments, **options))

        _describe(call, function, config, before=[])
        return call

    return decorate


def method_takes_options_of(
    config: Callable[Options, Any],
) -> Callable[[Callable[[Owner, Any], Result]], Callable[Concatenate[Owner, Options], Result]]:
    """Do the same as `takes_options_of`, for a method."""

    def decorate(
        method: Callable[[Owner, Any], Result],
    ) -> Callable[Concatenate[Owner, Options], Result]:
        @functools.wraps(method)
        def call(self: Owner, /, *arguments: Options.args, **options: Options.kwargs) -> Result:
            _check_names(config, arguments, options)
            return method(self, config(*arguments, **options))

        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        _describe(call, method, config, before=[itself])
        return call

    return decorate


def _check_names(config: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise an error for unknown options, and for values that need a name."""
    names = [each.name for each in fields(config)]
    for name in options:
        if name not in names:
            raise unknown("option", name, names)
    unnamed = [each.name for each in fields(config) if not each.kw_only]
    if len(arguments) > len(unnamed):
        which = "Only " + " and ".join(f"`{name}`" for name in unnamed) if unnamed else "No option"
        given = ", ".join(map(short, arguments))
        raise InvalidValueError(
            f"{which} can be given without its name, but got {given}: write name=value."
        )
    for name in unnamed[: len(arguments)]:
        require(name not in options, f"`{name}` is given twice: leave one out.")


def names_of(config: Any) -> list[str]:
    """Return the names of all options."""
    return [each.name for each in fields(config)]


def _for_people(annotation: Any) -> Any:
    """Return a type without what `Annotated` adds to it for the command line."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0]
    return annotation


def _describe(call: Any, function: Any, config: Any, *, before: list[inspect.Parameter]) -> None:
    """Set signature and docstring: those of the function, and a line for each option."""
    own = inspect.signature(config).parameters
    texts = descriptions(config)
    parameters = list(before)
    lines = []
    for field in own_first(config):
        parameter = own[field.name]
        parameters.append(parameter.replace(annotation=_for_people(parameter.annotation)))
        lines.append(f"    {field.name}: {texts[field.name]}")
    returned = inspect.signature(function).return_annotation
    call.__signature__ = inspect.Signature(parameters, return_annotation=returned)
    call.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "Args:", *lines])
