"""All runs of all portfolios and of each algorithm alone, in blocks that are stored as they finish."""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.engine import run_parts
from esbas.experiments.dialogue import constants
from esbas.experiments.dialogue.constants import ConstantPolicy
from esbas.experiments.dialogue.notation import DialogueAlgorithm, TableRow
from esbas.experiments.dialogue.setup import GAME, PROTOCOL
from esbas.kernels.counter import run_key
from esbas.kernels.dialogue.one_dialogue import Traits
from esbas.kernels.dialogue.whole_runs import Members, Protocol, members, whole_run
from esbas.reporting import Results

BLOCK = 50  # runs that are stored together
Known = Mapping[str, list[ConstantPolicy]]


class Outcome(NamedTuple):
    """What runs of one portfolio came to; the runs along the first axis."""

    returns: NDArray[np.float64]  # (R, epochs): the sum of the returns
    selections: NDArray[np.int64]  # (R, epochs, K)
    acts: NDArray[np.int64]  # (R, epochs): the sum of the system's acts

    @property
    def totals(self) -> NDArray[np.float64]:
        """(R,): the sum of a run's returns."""
        totals: NDArray[np.float64] = self.returns.sum(axis=1)
        return totals


def alone(row: TableRow) -> list[TableRow]:
    """The canonical meta-algorithms of a row: each of its algorithms alone, equal ones once."""
    return [TableRow(one.name, (one,), second=row.second and bool(one.mu)) for one in dict.fromkeys(row.algorithms)]


def portfolio(row: TableRow, known: Known, run: int) -> Members:
    """The kernel's view of a row in this run: its constants' policies take turns, its learners have noise of their own."""
    kinds: list[Traits] = []
    weights: list[NDArray[np.float64] | None] = []
    for k, algorithm in enumerate(row.algorithms):
        if algorithm.mu:
            policies = constants.find(algorithm.mu, known, second=row.second)
            kinds.append(Traits(3, square=1, constant=1, keep=int(not row.reset)))
            weights.append(policies[run % len(policies)].array)
        else:
            instance = row.algorithms[:k].count(algorithm)
            kinds.append(_learner(algorithm, instance))
            weights.append(None)
    return members(kinds, weights)


def _learner(algorithm: DialogueAlgorithm, instance: int) -> Traits:
    base, seed = 3 if algorithm.base == "simple" else 2, zlib.crc32(f"{algorithm.name} {instance}".encode())
    return Traits(base, noise=algorithm.noise, square=int(algorithm.squares), seed=seed)


def one_run(row: TableRow, known: Known, *, seed: int, run: int, protocol: Protocol = PROTOCOL) -> Outcome:
    """One run as a whole; dialogue τ of run number `run` has the same costs, user and channel under every portfolio."""
    values, arms, acts, _ = whole_run(run_key(seed, "dialogue", run), GAME, portfolio(row, known, run), protocol)
    starts = np.concatenate([[0], np.cumsum(protocol.epochs)[:-1]])
    chosen = arms[:, None] == np.arange(len(row.algorithms))  # (T, K)
    return Outcome(*(np.add.reduceat(column, starts, axis=0) for column in (values, chosen.astype(np.int64), acts)))


def block(row: TableRow, known: Known, seed: int, protocol: Protocol, runs: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Several runs, stacked."""
    outcomes = [one_run(row, known, seed=seed, run=run, protocol=protocol) for run in runs]
    return {key: np.stack([getattr(outcome, key) for outcome in outcomes]) for key in Outcome._fields}


def sweep(
    results: Results, rows: Iterable[TableRow], known: Known, *, runs: int, seed: int, jobs: int, protocol: Protocol
) -> tuple[dict[str, Outcome], dict[str, Outcome]]:
    """The outcomes of the rows, and of their algorithms alone, which rows share; each by name."""
    table = {row.name: row for row in rows}
    canonical = {one.name: one for row in table.values() for one in alone(row)}
    everything = canonical | table
    blocks = {
        f"{_file_name(name)}-{first:05d}": (
            name,
            partial(block, row, known, seed, protocol, range(first, min(first + BLOCK, runs))),
        )
        for first in range(0, runs, BLOCK)
        for name, row in everything.items()
    }
    finished = run_parts(
        {part: work for part, (_, work) in blocks.items()},
        load=results.part,
        store=results.store_part,
        jobs=jobs,
        description="dialogue",
    )
    outcomes = {}
    for name in everything:
        own = [finished[part] for part, (whose, _) in blocks.items() if whose == name]
        outcomes[name] = Outcome(*(np.concatenate([arrays[key] for arrays in own]) for key in Outcome._fields))
    return {name: outcomes[name] for name in table}, {name: outcomes[name] for name in canonical}


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.+=-]", "", name.replace("*", "x").replace("(", "=").replace("no reset", "no-reset"))
