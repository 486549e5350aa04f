"""All runs of all portfolios and of each algorithm alone, in blocks that are stored as they finish."""

import re
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.errors import require
from esbas.experiments.dialogue import constants
from esbas.experiments.dialogue.constants import Policies
from esbas.experiments.dialogue.notation import DialogueAlgorithm, TableRow, parse
from esbas.experiments.dialogue.setup import GAME, PROTOCOL, TABLE
from esbas.experiments.options import SweepOptions
from esbas.kernels.counter import run_key
from esbas.kernels.dialogue.one_dialogue import Traits
from esbas.kernels.dialogue.whole_runs import LearningProtocol, Members, members, whole_run
from esbas.reporting import Results

BLOCK = 50  # runs that are stored together


class EpochSums(NamedTuple):
    """The outcome of the runs of one portfolio, with the runs along the first axis."""

    returns: NDArray[np.float64]  # (R, epochs): the sum of the returns
    selections: NDArray[np.int64]  # (R, epochs, K)
    acts: NDArray[np.int64]  # (R, epochs): the sum of the system's acts

    @property
    def totals(self) -> NDArray[np.float64]:
        """(R,): the sum of a run's returns."""
        totals: NDArray[np.float64] = self.returns.sum(axis=1)
        return totals


def chosen_rows(names: Sequence[str], *, no_reset: bool = False) -> dict[str, TableRow]:
    """The rows by name; "all" stands for the rows of the paper's table."""
    require(len(names) > 0, "there is a row", "give a portfolio, or all", rows=names)
    texts = [text for name in names for text in (TABLE if name.strip().lower() == "all" else [name])]
    rows = [parse(text, constants=constants.stored()) for text in texts]
    return {row.name: row for row in (row.without_reset() if no_reset else row for row in rows)}


def alone(row: TableRow) -> list[TableRow]:
    """The canonical meta-algorithms of a row: each of its algorithms alone. Equal algorithms are listed once."""
    return [TableRow(one.name, (one,), second=row.second and bool(one.mu)) for one in dict.fromkeys(row.algorithms)]


def kernel_members(row: TableRow, policies: Policies, run: int) -> Members:
    """The row in the form that the kernel takes. Runs use the policies of a constant in turn; each learner has its own noise."""
    kinds: list[Traits] = []
    weights: list[NDArray[np.float64] | None] = []
    for k, algorithm in enumerate(row.algorithms):
        if algorithm.mu:
            found = constants.find(algorithm.mu, policies, second=row.second)
            kinds.append(Traits(3, square=1, constant=1, keep=int(not row.reset)))
            weights.append(found[run % len(found)].array)
        else:
            instance = row.algorithms[:k].count(algorithm)
            kinds.append(_learner(algorithm, instance))
            weights.append(None)
    return members(kinds, weights)


def _learner(algorithm: DialogueAlgorithm, instance: int) -> Traits:
    base, seed = 3 if algorithm.base == "simple" else 2, zlib.crc32(f"{algorithm.name} {instance}".encode())
    return Traits(base, noise=algorithm.noise, square=int(algorithm.squares), seed=seed)


def one_run(row: TableRow, policies: Policies, *, seed: int, run: int, protocol: LearningProtocol = PROTOCOL) -> EpochSums:
    """One run. Dialogue τ of run number `run` has the same costs, user and channel under every portfolio."""
    values, arms, acts, _ = whole_run(run_key(seed, "dialogue", run), GAME, kernel_members(row, policies, run), protocol)
    starts = np.concatenate([[0], np.cumsum(protocol.epochs)[:-1]])
    chosen = arms[:, None] == np.arange(len(row.algorithms))  # (T, K)
    return EpochSums(*(np.add.reduceat(column, starts, axis=0) for column in (values, chosen.astype(np.int64), acts)))


def block(
    row: TableRow, policies: Policies, seed: int, protocol: LearningProtocol, runs: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """Several runs, stacked."""
    outcomes = [one_run(row, policies, seed=seed, run=run, protocol=protocol) for run in runs]
    return {key: np.stack([getattr(outcome, key) for outcome in outcomes]) for key in EpochSums._fields}


class Outcomes(NamedTuple):
    """The outcomes of all rows and of each algorithm alone (which rows share), by name."""

    rows: dict[str, EpochSums]  # with ESBAS
    canonical: dict[str, EpochSums]
    shared: dict[str, EpochSums]  # with shared evidence; empty if it was not run


def run_sweep(
    options: SweepOptions,
    results: Results,
    rows: Iterable[TableRow],
    policies: Policies,
    *,
    protocol: LearningProtocol,
    shared: bool = False,
) -> Outcomes:
    """All runs of these rows with ESBAS, and, if `shared`, with shared evidence."""
    table = {row.name: row for row in rows}
    canonical = {one.name: one for row in table.values() for one in alone(row)}
    sharing = protocol._replace(shared=True)
    plans = {_file_name(name): (row, protocol) for name, row in (canonical | table).items()}
    plans |= {_shared_name(name): (row, sharing) for name, row in table.items() if shared}
    blocks = {
        f"{name}-{first:05d}": partial(block, row, policies, options.seed, plan, range(first, min(first + BLOCK, options.runs)))
        for first in range(0, options.runs, BLOCK)
        for name, (row, plan) in plans.items()
    }
    finished = options.run_parts(results, blocks, description="dialogue")

    def joined(name: str) -> EpochSums:
        own = [finished[f"{name}-{first:05d}"] for first in range(0, options.runs, BLOCK)]
        return EpochSums(*(np.concatenate([arrays[key] for arrays in own]) for key in EpochSums._fields))

    esbas, single = ({name: joined(_file_name(name)) for name in names} for names in (table, canonical))
    return Outcomes(esbas, single, {name: joined(_shared_name(name)) for name in table if shared})


def _shared_name(name: str) -> str:
    return f"{_file_name(name)}=shared-evidence"


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.+=-]", "", name.replace("*", "x").replace("(", "=").replace("no reset", "no-reset"))
