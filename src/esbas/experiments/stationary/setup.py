"""What is compared: every bandit of the library, with its default parameters, on the same arms."""

import inspect
from dataclasses import dataclass
from functools import partial

from esbas.bandits import BANDITS, UCB1, BanditFactory

COMPARED: dict[str, BanditFactory] = {name: BANDITS.find(name) for name in BANDITS}
COMPARED["ucb1-auer"] = partial(UCB1, xi=2.0)


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Arms that give a reward of 1 with a fixed probability, otherwise 0."""

    means: tuple[float, ...]
    rounds: int


def label(name: str) -> str:
    """Return the name of the bandit in tables."""
    if name == "ucb1":
        return "UCB1 (ξ = 1/4)"
    if name == "ucb1-auer":
        return "UCB1 (ξ = 2)"
    return str(getattr(COMPARED[name], "__name__", name))


def factory(name: str, *, rounds: int) -> BanditFactory:
    """Return the bandit with its defaults, and with the number of rounds if it takes a horizon."""
    bandit = COMPARED[name]
    if "horizon" in inspect.signature(bandit).parameters:
        return partial(bandit, horizon=rounds)
    return bandit
