"""Selectors by name."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from esbas.bandits.bandit import BANDITS, Bandit, BanditFactory
from esbas.errors import InvalidValueError, require, unknown
from esbas.registry import import_object
from esbas.selectors.bandit_selector import BanditSelector, ScaleSpec
from esbas.selectors.fixed import Fixed
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
    """The selector with this name.

    Args:
        name: "ssbas", "esbas", "uniform" or another registered name; "fixed:NAME" for always the arm NAME; a bandit's name, for a
            bandit that plays directly on learning arms; or "module:Class" for a selector or a bandit of your own. Case, dashes
            and underscores in registered names are ignored.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        scale: see `BanditSelector`; for selectors that have this parameter.
        xi: the parameter of UCB1 in "ssbas", "esbas" and "ucb1"; None: the default of the selector.
        epochs: the lengths of the epochs, for selectors that can have epochs; None: the default of the selector. With the epochs
            of ESBAS, "fixed:NAME" makes the canonical runs that ESBAS is compared with.
        seed: seed of the selector's random stream.
        options: other parameters of the selector; for a bandit's name, parameters of the bandit.
    """
    settings: dict[str, Any] = {"stationary": stationary, "scale": scale, "seed": seed}
    chosen = {key: value for key, value in (("xi", xi), ("epochs", epochs)) if value is not None} | dict(options or {})
    kind, _, arm = name.partition(":")
    if kind.lower() == "fixed":
        require(arm != "", 'a fixed selector needs its arm, as in "fixed:NAME"', selector=name)
        return _made(partial(Fixed, arm=arm), name, arms, settings, chosen)
    factory = find_selector(name)
    if issubclass(factory, Selector):
        return _made(factory, name, arms, settings, chosen)
    known = inspect.signature(factory).parameters
    bandit: BanditFactory = partial(factory, **{key: chosen.pop(key) for key in [*chosen] if key in known})
    return _made(partial(BanditSelector, bandit=bandit), name, arms, settings, chosen)


def _made(
    factory: Callable[..., Selector], name: str, arms: Iterable[str], settings: dict[str, Any], chosen: dict[str, Any]
) -> Selector:
    """Settings are passed as far as the selector has them; what the user chose must be one of its parameters."""
    parameters = inspect.signature(factory).parameters
    remedy = "leave it out, or name a selector that has it"
    for key, value in chosen.items():
        require(key in parameters, f"the selector has a parameter {key}", remedy, selector=name, **{key: value})
    return factory(arms, **{key: value for key, value in (settings | chosen).items() if key in parameters})


def selector_names() -> list[str]:
    """The names that `make_selector` knows."""
    return [*SELECTORS, "fixed:NAME", *(name for name in BANDITS if name not in SELECTORS)]


def find_selector(name: str) -> type[Selector] | type[Bandit]:
    """The class of the selector or the bandit with this name."""
    if ":" in name:
        found = import_object(name)
    elif name in SELECTORS:
        found = SELECTORS.find(name)
    elif name in BANDITS:
        found = BANDITS.find(name)
    else:
        raise unknown("selector", name, selector_names())
    if not (isinstance(found, type) and issubclass(found, Selector | Bandit)):
        raise InvalidValueError(f"{name!r} must name a selector or a bandit, but names {found!r}: see esbas.Selector")
    return found
