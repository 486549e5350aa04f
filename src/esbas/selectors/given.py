"""Selectors from what users pass: an object, a class, a function, a name, or nothing."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeGuard

from esbas._internal import schema
from esbas.bandits.bandit import Bandit, BanditFactory
from esbas.errors import InvalidValueError
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.recommended import default_selector
from esbas.selectors.registry import make_selector
from esbas.selectors.selector import Selector

SelectorLike = Selector | str | Callable[..., Selector] | BanditFactory | None
"""What `as_selector` accepts. Classes are functions that make their objects."""


def as_selector(
    given: SelectorLike, arms: Iterable[str], *, stationary: Collection[str] = (), seed: int = 0
) -> Selector:
    """Return the selector that is given, or make it.

    Args:
        given: one of

            - a `Selector`, whose arms must be `arms`, in this order;
            - a class of selectors, such as `esbas.SSBAS`;
            - a class of bandits, such as `esbas.UCB1`, or `functools.partial` of one. The bandit
              plays directly on learning arms, see `BanditSelector`;
            - a function that makes a selector, such as `functools.partial(esbas.SSBAS, xi=1)` or
              `lambda arms: esbas.SSBAS(arms, xi=1)`. It is called with the arms, and with the
              keyword arguments `seed` and `stationary` if its signature has them. A function with
              `**options` gets the seed;
            - a name, see `make_selector`;
            - None for the recommended selector, see `default_selector`.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        seed: the seed of the selector's random stream.
    """
    names = list(arms)
    if given is None:
        return default_selector(names, seed=seed)
    if isinstance(given, Selector):
        return _with_arms(given, names, "The selector")
    if isinstance(given, str):
        return make_selector(given, names, stationary=stationary, seed=seed)
    if _makes_bandits(given):
        return BanditSelector(names, bandit=given, stationary=stationary, seed=seed)
    if isinstance(given, type) and not issubclass(given, Selector):
        raise _not_a_selector(f"the class {given.__name__}")
    if not callable(given):
        raise _not_a_selector(schema.short(given))

    made = _call(given, names, {"stationary": stationary, "seed": seed})
    if not isinstance(made, Selector):
        raise _not_a_selector(f"{schema.short(made)} from {_name_of(given)}")
    return _with_arms(made, names, f"The selector that {_name_of(given)} makes")


def _makes_bandits(given: Any) -> TypeGuard[BanditFactory]:
    """Return whether this is a class of bandits, or a partial of one."""
    kind = _function_of(given)
    return isinstance(kind, type) and issubclass(kind, Bandit)


def _call(make: Callable[..., Any], arms: list[str], settings: Mapping[str, Any]) -> Any:
    """Call a function that makes a selector, with the settings that its signature has."""
    try:
        signature = inspect.signature(make)
    except ValueError as error:
        if isinstance(make, partial):  # with arguments that the function does not have
            raise InvalidValueError(f"A selector cannot be made by {make}: {error}.") from error
        return make(arms)  # some functions in C have no signature
    accepted = _accepted(make, signature, settings)
    try:
        signature.bind(arms, **accepted)
    except TypeError as error:
        raise InvalidValueError(
            f"A selector is made by calling {_name_of(make)} with the list of arms, but {error}: "
            "set its other arguments with functools.partial."
        ) from error
    if inspect.isabstract(make):
        raise InvalidValueError(
            f"{_name_of(make)} is an abstract class and cannot choose: "
            "pass a selector such as esbas.SSBAS, or a subclass that implements `pick`."
        )
    return make(arms, **accepted)


def _accepted(
    make: Callable[..., Any], signature: inspect.Signature, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings that the signature has."""
    names = set(signature.parameters)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        # Every selector has a seed, but not every one knows stationary arms.
        names.add("seed")
    if isinstance(make, partial):
        names -= set(make.keywords)  # what the user has set must not be overridden
    return {name: value for name, value in settings.items() if name in names}


def _with_arms(selector: Selector, arms: list[str], what: str) -> Selector:
    """Return the selector; an error unless it has these arms."""
    if list(selector.arms) != arms:
        raise InvalidValueError(
            f"{what} must have the names of the learners as its arms, in the same order, "
            f"but has {_listed(selector.arms)} for the learners {_listed(arms)}: "
            "pass a class such as esbas.SSBAS, which gets the names."
        )
    return selector


def _not_a_selector(got: str) -> InvalidValueError:
    return InvalidValueError(
        "`selector` must be a selector, a class of selectors or bandits, a function that makes a "
        f"selector, or a name, but got {got}: pass for example esbas.SSBAS or 'ssbas'."
    )


def _name_of(make: Any) -> str:
    function = _function_of(make)
    return str(getattr(function, "__name__", type(function).__name__))


def _function_of(make: Any) -> Any:
    """Return the function of a partial, and everything else as it is."""
    return make.func if isinstance(make, partial) else make


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
