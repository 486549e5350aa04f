"""Selectors by name."""

from collections.abc import Collection, Iterable

from esbas.bandits import BANDITS, make_bandit
from esbas.errors import UnknownNameError, require, unknown
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.esbas import ESBAS
from esbas.selectors.fixed import Fixed, Uniform
from esbas.selectors.scale import ScaleSpec
from esbas.selectors.selector import Selector
from esbas.selectors.ssbas import SSBAS


def make_selector(
    name: str, arms: Iterable[str], *, stationary: Collection[str] = (), scale: ScaleSpec = "auto", seed: int = 0
) -> Selector:
    """The selector with this name.

    Args:
        name: "ssbas", "esbas", "uniform", "fixed:NAME" for always the arm NAME, or any bandit of the library, which then plays
            directly on learning arms; case and dashes do not matter, see `esbas.bandits.make_bandit`.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        scale: see `BanditSelector`; for selectors that learn from values.
        seed: of the selector's random stream.
    """
    kind, colon, arm = name.partition(":")
    if colon:
        if kind.lower() != "fixed":
            raise unknown("selector", name, SELECTORS)
        return Fixed(arms, arm=arm, seed=seed)
    require(kind.lower() != "fixed", 'a fixed selector is told its arm, as in "fixed:NAME"', selector=name)
    if kind.lower() == "ssbas":
        return SSBAS(arms, scale=scale, seed=seed)
    if kind.lower() == "esbas":
        return ESBAS(arms, scale=scale, stationary=stationary, seed=seed)
    if kind.lower() == "uniform":
        return Uniform(arms, stationary=stationary, seed=seed)
    try:
        bandit = make_bandit(name)
    except UnknownNameError:
        raise unknown("selector", name, SELECTORS) from None
    return BanditSelector(arms, bandit=bandit, scale=scale, stationary=stationary, seed=seed)


SELECTORS = "ssbas", "esbas", "uniform", "fixed:NAME", *(name for name in BANDITS if name != "uniform")
"""The names that `make_selector` knows."""
