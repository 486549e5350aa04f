"""Constant policies of a given mean return: how they are made, and those that are stored with the package.

The paper generates them "with simple-2 learning from a predefined batch of limited size". Here: a candidate learns simple-2 by
fitted Q iteration from a batch of random dialogues and is greedy from then on, without exploration. Batches of 20, 40, ..., 2,560
dialogues take turns. It serves as constant-μ if its mean return lies within 0.003 of μ, measured on 1,000,000 other dialogues.

`make_constants.py` made the stored ones.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.errors import InvalidValueError, UnknownNameError
from esbas.experiments.dialogue.setup import GAME, PROTOCOL
from esbas.kernels.counter import run_key
from esbas.kernels.dialogue.one_dialogue import Traits
from esbas.kernels.dialogue.whole_runs import mean_value, members, whole_run

POLICIES = 8
"""How many policies of the same mean return a row uses, run by run in turn: results depend on which policy has that mean."""
BATCHES = tuple(20 * 2**k for k in range(8))
TOLERANCE = 0.003
DIALOGUES = 1_000_000
_MEASURES = (5_000, 0.02), (50_000, 0.006), (DIALOGUES, 0.0)  # dialogues, and three standard errors of their mean
_SIMPLE_2 = Traits(3, square=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantPolicy:
    """A greedy policy on the features of simple-2, and how it came about."""

    candidate: int
    batch: int  # how many random dialogues it learnt from
    mean: float  # return
    ci95: float
    weights: list[list[float]]  # (A, 10), rounded as they were when the mean was measured

    @property
    def array(self) -> NDArray[np.float64]:
        """The weights as an array."""
        return np.array(self.weights)


@cache
def stored() -> dict[str, list[ConstantPolicy]]:
    """The policies of constants.json by mean return, such as "1.01"."""
    data = json.loads(resources.files("esbas.experiments.dialogue").joinpath("constants.json").read_text("utf-8"))
    return {mu: [ConstantPolicy(**policy) for policy in policies] for mu, policies in data["policies"].items()}


def find(mu: str, known: Mapping[str, list[ConstantPolicy]], *, second: bool) -> list[ConstantPolicy]:
    """The policies that serve as constant-μ, or as its second set."""
    return known[mu][POLICIES : 2 * POLICIES] if second else known[mu][:POLICIES]


def missing(wanted: Mapping[str, int]) -> dict[str, int]:
    """What is wanted and not stored: mean returns, and how many policies of each."""
    return {mu: count for mu, count in wanted.items() if len(stored().get(mu, [])) < count}


def nobody_has(mu: str, count: int) -> UnknownNameError:
    """The error for a constant that is not stored."""
    having = ", ".join(known for known, policies in stored().items() if len(policies) >= count)
    name = f"constant-{mu}" if count <= POLICIES else f"second set of constant-{mu}"
    return UnknownNameError(f"nobody has a {name}: add --generate to make {count} such policies, or take one of {having}")


def generate(wanted: Mapping[str, int], *, seed: int, candidates: int = 20_000) -> dict[str, list[ConstantPolicy]]:
    """Make so many policies of each mean return; fewer if that many candidates do not suffice."""
    found: dict[str, list[ConstantPolicy]] = {mu: [] for mu in wanted}
    for candidate in range(candidates):
        open_means = {mu for mu, count in wanted.items() if len(found[mu]) < count}
        if not open_means:
            break
        for mu, policy in _try(candidate, open_means, seed):
            found[mu].append(policy)
    return found


def _try(candidate: int, wanted: Collection[str], seed: int) -> Iterator[tuple[str, ConstantPolicy]]:
    batch = BATCHES[candidate % len(BATCHES)]
    protocol = PROTOCOL._replace(epochs=np.array([batch, 1]))  # one epoch of random dialogues; learning starts the next one
    *_, learnt = whole_run(run_key(seed, "constant", candidate), GAME, members([_SIMPLE_2], [None]), protocol)
    weights = [[float(f"{weight:.6g}") for weight in row] for row in learnt[0]]
    portfolio = members([_SIMPLE_2], [np.array(weights)])
    near: Collection[str] = wanted
    for dialogues, slack in _MEASURES:  # few dialogues tell most candidates off
        mean, deviation = mean_value(run_key(seed, "measure", candidate, dialogues), GAME, portfolio, dialogues)
        near = [mu for mu in near if abs(mean - float(mu)) <= TOLERANCE + slack]
        if not near:
            return
    ci95 = 1.96 * deviation / DIALOGUES**0.5
    for mu in near:
        yield mu, ConstantPolicy(candidate=candidate, batch=batch, mean=round(mean, 5), ci95=round(ci95, 5), weights=weights)


def as_arrays(policies: Sequence[ConstantPolicy], mu: str, count: int) -> dict[str, NDArray[Any]]:
    """For a results folder; refuses fewer policies than were wanted."""
    if len(policies) < count:
        raise InvalidValueError(
            f"a constant's mean return must be one that simple-2 learns from a small batch, but {len(policies)} of {count} "
            f"policies were found for constant-{mu}: take one from 0.90 to 1.14"
        )
    return {name: np.array([getattr(policy, name) for policy in policies]) for name in ConstantPolicy.__slots__}


def from_arrays(part: Mapping[str, NDArray[Any]]) -> list[ConstantPolicy]:
    """What `as_arrays` made."""
    columns = {name: column.tolist() for name, column in part.items()}
    return [ConstantPolicy(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
