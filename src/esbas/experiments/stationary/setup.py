"""What is compared: every bandit of the library, with its default parameters, on the same arms."""

import inspect
from dataclasses import dataclass
from functools import partial

from esbas.bandits import BANDITS, UCB1, BanditFactory

COMPARED: dict[str, BanditFactory] = {name: BANDITS.find(name) for name in BANDITS} | {"ucb1-auer": partial(UCB1, xi=2.0)}


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Arms that give a reward of 1 with a fixed probability, otherwise 0."""

    means: tuple[float, ...]
    rounds: int


def label(name: str) -> str:
    """The name of the bandit in tables."""
    special = {"ucb1": "UCB1 (ξ = 1/4)", "ucb1-auer": "UCB1 (ξ = 2)"}
    return special[name] if name in special else str(getattr(COMPARED[name], "__name__", name))


def factory(name: str, *, rounds: int) -> BanditFactory:
    """The bandit with its defaults, and with the number of rounds if it takes a horizon."""
    takes_horizon = "horizon" in inspect.signature(COMPARED[name]).parameters
    return partial(COMPARED[name], horizon=rounds) if takes_horizon else COMPARED[name]
