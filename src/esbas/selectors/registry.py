"""Selectors by name."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from esbas._internal.registry import import_object
from esbas.bandits.bandit import BANDITS, Bandit
from esbas.errors import InvalidValueError, require, unknown
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.fixed import Fixed
from esbas.selectors.scale import ScaleSpec
from esbas.selectors.selector import SELECTORS, Selector


def make_selector(
    name: str,
    arms: Iterable[str],
    *,
    stationary: Collection[str] = (),
    scale: ScaleSpec = "auto",
    xi: float | None = None,
    epochs: Sequence[int] | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Selector:
    """Return the selector with this name.

    Args:
        name: "ssbas", "esbas", "uniform" or another registered name; "fixed:NAME" for always the
            arm NAME; a bandit's name, for a bandit that plays directly on learning arms; or
            "module:Class" for a selector or a bandit of your own. Case, dashes and underscores in
            registered names are ignored.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        scale: see `BanditSelector`; for selectors that have this parameter.
        xi: the parameter of UCB1 in "ssbas", "esbas" and "ucb1"; None: the default of the selector.
        epochs: the lengths of the epochs, for selectors that can have epochs; None: the default of
            the selector. With the epochs of ESBAS, "fixed:NAME" makes the canonical runs that ESBAS
            is compared with.
        seed: seed of the selector's random stream.
        options: other parameters of the selector; for a bandit's name, parameters of the bandit.
    """
    settings: dict[str, Any] = {"stationary": stationary, "scale": scale, "seed": seed}
    chosen: dict[str, Any] = {}  # the user's own settings
    if xi is not None:
        chosen["xi"] = xi
    if epochs is not None:
        chosen["epochs"] = epochs
    if options is not None:
        chosen |= options

    kind, _, arm = name.partition(":")
    if kind.lower() == "fixed":
        require(arm != "", f'A fixed selector needs its arm, as in "fixed:NAME", but got {name!r}.')
        return _made(partial(Fixed, arm=arm), name, arms, settings, chosen)
    found = find_selector(name)
    if issubclass(found, Selector):
        return _made(found, name, arms, settings, chosen)
    parameters = inspect.signature(found).parameters
    of_bandit = {key: value for key, value in chosen.items() if key in parameters}
    of_selector = {key: value for key, value in chosen.items() if key not in parameters}
    make = partial(BanditSelector, bandit=partial(found, **of_bandit))
    return _made(make, name, arms, settings, of_selector)


def _made(
    make: Callable[..., Selector],
    name: str,
    arms: Iterable[str],
    settings: dict[str, Any],
    chosen: dict[str, Any],
) -> Selector:
    """Call `make` with those settings that it has, and with all that the user chose."""
    parameters = inspect.signature(make).parameters
    for key in chosen:
        require(
            key in parameters,
            f"The selector {name!r} has no parameter `{key}`: "
            "leave it out, or name a selector that has it.",
        )
    known = {key: value for key, value in settings.items() if key in parameters}
    return make(arms, **known | chosen)


def selector_names() -> list[str]:
    """Return the names that `make_selector` knows."""
    return [*SELECTORS, "fixed:NAME", *(name for name in BANDITS if name not in SELECTORS)]


def find_selector(name: str) -> type[Selector] | type[Bandit]:
    """Return the class of the selector or the bandit with this name."""
    if ":" in name:
        found = import_object(name)
    elif name in SELECTORS:
        found = SELECTORS.find(name)
    elif name in BANDITS:
        found = BANDITS.find(name)
    else:
        raise unknown("selector", name, selector_names())
    if not (isinstance(found, type) and issubclass(found, Selector | Bandit)):
        raise InvalidValueError(
            f"{name!r} must name a selector or a bandit, but names {found!r}: see esbas.Selector."
        )
    return found
