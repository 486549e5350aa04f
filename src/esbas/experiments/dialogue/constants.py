"""Constant policies of a given mean return: how they are generated, and those that are stored with the package.

The paper generates them "with simple-2 learning from a predefined batch of limited size". Here, a candidate learns simple-2 by
fitted Q iteration from a batch of random dialogues, and is greedy afterwards, without exploration. Candidates use batches of
20, 40, ..., 2,560 dialogues in turn. A candidate is accepted as constant-μ if its mean return is within 0.003 of μ, measured on
1,000,000 other dialogues.

`make_constants.py` generated the stored policies.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.errors import InvalidValueError, UnknownNameError
from esbas.experiments.dialogue.notation import TableRow
from esbas.experiments.dialogue.setup import GAME, PROTOCOL
from esbas.kernels.counter import run_key
from esbas.kernels.dialogue.one_dialogue import Traits
from esbas.kernels.dialogue.whole_runs import mean_value, members, whole_run
from esbas.reporting import Results, terminal

POLICIES = 8
"""How many policies of the same mean return the runs of a row use in turn. Results depend on the policy, not only on its mean."""
BATCHES = tuple(20 * 2**k for k in range(8))
TOLERANCE = 0.003
SEED = 0
"""Of the stored policies."""
CANDIDATES = 20_000
"""How many are tried at most for one mean return."""
DIALOGUES = 1_000_000
_MEASURES = (5_000, 0.02), (50_000, 0.006), (DIALOGUES, 0.0)  # dialogues, and three standard errors of their mean
_SIMPLE_2 = Traits(3, square=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantPolicy:
    """A greedy policy on the features of simple-2, and how it was generated."""

    candidate: int
    batch: int  # how many random dialogues it learnt from
    mean: float  # return
    ci95: float
    weights: list[list[float]]  # (A, 10), rounded as they were when the mean was measured

    @property
    def array(self) -> NDArray[np.float64]:
        return np.array(self.weights)


Policies = Mapping[str, list[ConstantPolicy]]
"""Constant policies by mean return, such as "1.01"."""


@cache
def stored() -> dict[str, list[ConstantPolicy]]:
    """The policies of constants.json by mean return, such as "1.01"."""
    data = json.loads(resources.files("esbas.experiments.dialogue").joinpath("constants.json").read_text("utf-8"))
    return {mu: [ConstantPolicy(**policy) for policy in policies] for mu, policies in data["policies"].items()}


def find(mu: str, policies: Policies, *, second: bool) -> list[ConstantPolicy]:
    """The policies of constant-μ, or its second set."""
    return policies[mu][POLICIES : 2 * POLICIES] if second else policies[mu][:POLICIES]


def wanted(rows: Iterable[TableRow]) -> dict[str, int]:
    """The mean returns of the constant policies in these rows, and how many policies of each are needed."""
    counts: dict[str, int] = {}
    for row in rows:
        for constant in row.constants:
            counts[constant.mu] = max(counts.get(constant.mu, 0), POLICIES * (1 + row.second))
    return counts


def missing(wanted: Mapping[str, int], *, seed: int = SEED) -> dict[str, int]:
    """The wanted mean returns of which too few policies of this seed are stored, and how many are wanted."""
    return {mu: count for mu, count in wanted.items() if seed != SEED or len(stored().get(mu, [])) < count}


def not_stored(mu: str, count: int) -> UnknownNameError:
    """The error for a constant policy that is not stored."""
    available = ", ".join(known for known, policies in stored().items() if len(policies) >= count)
    name = f"constant-{mu}" if count <= POLICIES else f"second set of constant-{mu}"
    remedy = f"add --generate to make {count} such policies, or choose one of {available}"
    return UnknownNameError(f"there is no stored {name}: {remedy}")


def generated(results: Results, missing: Mapping[str, int], *, seed: int = SEED) -> dict[str, list[ConstantPolicy]]:
    """The missing policies: those that an earlier run stored in the results folder, or new ones."""
    parts = {mu: results.part(_part_name(mu)) for mu in missing}
    new = {mu: count for mu, count in missing.items() if parts[mu] is None}
    if new:
        with terminal.status(f"generating policies of mean return {', '.join(new)}"):
            made = generate(new, seed=seed, candidates=CANDIDATES * len(new))  # together: a candidate fits any of them
        for mu, count in new.items():
            parts[mu] = as_arrays(made[mu], mu, count)
        for mu in new:
            results.store_part(_part_name(mu), parts[mu] or {})
    return {mu: from_arrays(part or {}) for mu, part in parts.items()}


def _part_name(mu: str) -> str:
    return f"constant-{mu}-policies"


def generate(wanted: Mapping[str, int], *, seed: int, candidates: int = CANDIDATES) -> dict[str, list[ConstantPolicy]]:
    """Generate the wanted number of policies of each mean return, or fewer if there are not enough candidates."""
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
    for dialogues, slack in _MEASURES:  # a few dialogues rule out most candidates
        mean, deviation = mean_value(run_key(seed, "measure", candidate, dialogues), GAME, portfolio, dialogues)
        near = [mu for mu in near if abs(mean - float(mu)) <= TOLERANCE + slack]
        if not near:
            return
    ci95 = 1.96 * deviation / DIALOGUES**0.5
    for mu in near:
        yield mu, ConstantPolicy(candidate=candidate, batch=batch, mean=round(mean, 5), ci95=round(ci95, 5), weights=weights)


def as_arrays(policies: Sequence[ConstantPolicy], mu: str, count: int) -> dict[str, NDArray[Any]]:
    """The policies as arrays, for a results folder. Raises an error if there are fewer than `count`."""
    if len(policies) < count:
        raise InvalidValueError(
            f"a constant's mean return must be one that simple-2 learns from a small batch, but {len(policies)} of {count} "
            f"policies were found for constant-{mu}: choose one from 0.90 to 1.14"
        )
    return {name: np.array([getattr(policy, name) for policy in policies]) for name in ConstantPolicy.__slots__}


def from_arrays(part: Mapping[str, NDArray[Any]]) -> list[ConstantPolicy]:
    """The inverse of `as_arrays`."""
    columns = {name: column.tolist() for name, column in part.items()}
    return [ConstantPolicy(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
