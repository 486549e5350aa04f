"""Selectors by name."""

import inspect
from collections.abc import Collection, Iterable
from typing import Any

from esbas.bandits.bandit import BANDITS, Bandit
from esbas.errors import InvalidValueError, require, unknown
from esbas.registry import import_object
from esbas.selectors.bandit_selector import BanditSelector, ScaleSpec
from esbas.selectors.fixed import Fixed
from esbas.selectors.selector import SELECTORS, Selector


def make_selector(
    name: str, arms: Iterable[str], *, stationary: Collection[str] = (), scale: ScaleSpec = "auto", seed: int = 0
) -> Selector:
    """The selector with this name.

    Args:
        name: "ssbas", "esbas", "uniform" or another registered name; "fixed:NAME" for always the arm NAME; a bandit's name, for a
            bandit that plays directly on learning arms; or "module:Class" for a selector or a bandit of your own. Case, dashes
            and underscores in registered names are ignored.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        scale: see `BanditSelector`; for selectors that have this parameter.
        seed: seed of the selector's random stream.
    """
    settings: dict[str, Any] = {"stationary": stationary, "scale": scale, "seed": seed}
    kind, _, arm = name.partition(":")
    if kind.lower() == "fixed":
        require(arm != "", 'a fixed selector needs its arm, as in "fixed:NAME"', selector=name)
        return Fixed(arms, arm=arm, seed=seed)
    factory = _find(name)
    if isinstance(factory, type) and issubclass(factory, Bandit):
        return BanditSelector(arms, bandit=factory, **settings)
    if not (isinstance(factory, type) and issubclass(factory, Selector)):
        raise InvalidValueError(f"{name!r} must name a selector or a bandit, but names {factory!r}: see esbas.Selector")
    takes = inspect.signature(factory).parameters
    return factory(arms, **{key: value for key, value in settings.items() if key in takes})


def selector_names() -> list[str]:
    """The names that `make_selector` knows."""
    return [*SELECTORS, "fixed:NAME", *(name for name in BANDITS if name not in SELECTORS)]


def _find(name: str) -> Any:
    if ":" in name:
        return import_object(name)
    if name in SELECTORS:
        return SELECTORS.find(name)
    if name in BANDITS:
        return BANDITS.find(name)
    raise unknown("selector", name, selector_names())
