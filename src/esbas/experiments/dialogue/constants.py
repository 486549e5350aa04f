"""Constant policies of a given mean return, generated or stored with the package.

The paper generates them "with simple-2 learning from a predefined batch of limited size". Here, a
candidate learns simple-2 by fitted Q iteration from a batch of random dialogues, and is greedy
afterwards, without exploration. Candidates use batches of 20, 40, ..., 2,560 dialogues in turn. A
candidate is accepted as constant-μ if its mean return is within 0.003 of μ, measured on 1,000,000
other dialogues.

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
from esbas.experiments.kernels.counter import run_key
from esbas.experiments.kernels.dialogue.one_dialogue import Traits
from esbas.experiments.kernels.dialogue.whole_runs import learner_arrays, mean_value, whole_run
from esbas.reporting import Results, terminal

POLICIES = 8
"""How many policies of the same mean return the runs of a row use in turn.

Results depend on the policy, not only on its mean.
"""
BATCHES = tuple(20 * 2**k for k in range(8))
TOLERANCE = 0.003
SEED = 0
"""Of the stored policies."""
CANDIDATES = 20_000
"""How many are tried at most for one mean return."""
DIALOGUES = 1_000_000
_MEASURES = (5_000, 0.02), (50_000, 0.006), (DIALOGUES, 0.0)
"""Numbers of dialogues, with three standard errors of the mean return."""
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
    """Load the policies of constants.json by mean return, such as "1.01"."""
    file = resources.files("esbas.experiments.dialogue").joinpath("constants.json")
    data = json.loads(file.read_text("utf-8"))
    loaded = {}
    for mu, policies in data["policies"].items():
        loaded[mu] = [ConstantPolicy(**policy) for policy in policies]
    return loaded


def find(mu: str, policies: Policies, *, second: bool) -> list[ConstantPolicy]:
    """Return the policies of constant-μ, or its second set."""
    if second:
        return policies[mu][POLICIES : 2 * POLICIES]
    return policies[mu][:POLICIES]


def wanted(rows: Iterable[TableRow]) -> dict[str, int]:
    """Return how many policies of each mean return these rows need."""
    counts: dict[str, int] = {}
    for row in rows:
        needed = 2 * POLICIES if row.second else POLICIES
        for constant in row.constants:
            counts[constant.mu] = max(counts.get(constant.mu, 0), needed)
    return counts


def missing(wanted: Mapping[str, int], *, seed: int = SEED) -> dict[str, int]:
    """Return the wanted mean returns of which too few policies of this seed are stored."""
    if seed != SEED:
        return dict(wanted)
    known = stored()
    return {mu: count for mu, count in wanted.items() if len(known.get(mu, [])) < count}


def not_stored(mu: str, count: int) -> UnknownNameError:
    """Return the error for a constant policy that is not stored."""
    available = ", ".join(known for known, policies in stored().items() if len(policies) >= count)
    name = f"constant-{mu}" if count <= POLICIES else f"second set of constant-{mu}"
    return UnknownNameError(
        f"There is no stored {name}: add --generate to make {count} such policies, "
        f"or choose one of {available}."
    )


def generated(
    results: Results, missing: Mapping[str, int], *, seed: int = SEED
) -> dict[str, list[ConstantPolicy]]:
    """Return the missing policies.

    They are those that an earlier run stored in the results folder, or new ones.
    """
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    new: dict[str, int] = {}
    for mu, count in missing.items():
        part = results.part(_part_name(mu))
        if part is None:
            new[mu] = count
        else:
            parts[mu] = part
    if new:
        with terminal.status(f"generating policies of mean return {', '.join(new)}"):
            # All at once, because a candidate may have any of these mean returns.
            made = generate(new, seed=seed, candidates=CANDIDATES * len(new))
        # Nothing is stored unless there are enough policies of each mean return.
        for mu, count in new.items():
            parts[mu] = as_arrays(made[mu], mu, count)
        for mu in new:
            results.store_part(_part_name(mu), parts[mu])
    return {mu: from_arrays(parts[mu]) for mu in missing}


def _part_name(mu: str) -> str:
    return f"constant-{mu}-policies"


def generate(
    wanted: Mapping[str, int], *, seed: int, candidates: int = CANDIDATES
) -> dict[str, list[ConstantPolicy]]:
    """Generate the wanted number of policies of each mean return.

    There are fewer if not enough of the candidates have this mean return.
    """
    found: dict[str, list[ConstantPolicy]] = {mu: [] for mu in wanted}
    for candidate in range(candidates):
        open_means = {mu for mu, count in wanted.items() if len(found[mu]) < count}
        if not open_means:
            break
        for mu, policy in _try(candidate, open_means, seed):
            found[mu].append(policy)
    return found


def _try(
    candidate: int, wanted: Collection[str], seed: int
) -> Iterator[tuple[str, ConstantPolicy]]:
    """Yield the policy of a candidate for each wanted mean return that it has."""
    batch = BATCHES[candidate % len(BATCHES)]
    # One epoch of random dialogues. Learning starts the next one.
    protocol = PROTOCOL._replace(epochs=np.array([batch, 1]))
    key = run_key(seed, "constant", candidate)
    *_, learnt = whole_run(key, GAME, learner_arrays([_SIMPLE_2], [None]), protocol)
    weights = [[float(f"{weight:.6g}") for weight in row] for row in learnt[0]]
    portfolio = learner_arrays([_SIMPLE_2], [np.array(weights)])
    near: Collection[str] = wanted
    for dialogues, slack in _MEASURES:  # a few dialogues rule out most candidates
        key = run_key(seed, "measure", candidate, dialogues)
        mean, deviation = mean_value(key, GAME, portfolio, dialogues)
        near = [mu for mu in near if abs(mean - float(mu)) <= TOLERANCE + slack]
        if not near:
            return
    ci95 = 1.96 * deviation / DIALOGUES**0.5
    policy = ConstantPolicy(
        candidate=candidate,
        batch=batch,
        mean=round(mean, 5),
        ci95=round(ci95, 5),
        weights=weights,
    )
    for mu in near:
        yield mu, policy


def as_arrays(policies: Sequence[ConstantPolicy], mu: str, count: int) -> dict[str, NDArray[Any]]:
    """Return the policies as arrays, for a results folder.

    Raises an error if there are fewer than `count`.
    """
    if len(policies) < count:
        raise InvalidValueError(
            "The mean return of a constant must be one that simple-2 learns from a small batch, "
            f"but {len(policies)} of {count} policies were found for constant-{mu}: "
            "choose one from 0.90 to 1.14."
        )
    columns = {}
    for name in ConstantPolicy.__slots__:
        columns[name] = np.array([getattr(policy, name) for policy in policies])
    return columns


def from_arrays(part: Mapping[str, NDArray[Any]]) -> list[ConstantPolicy]:
    """Return the policies of `as_arrays`."""
    columns = {name: column.tolist() for name, column in part.items()}
    policies = []
    for values in zip(*columns.values(), strict=True):
        fields = dict(zip(columns, values, strict=True))
        policies.append(ConstantPolicy(**fields))
    return policies
