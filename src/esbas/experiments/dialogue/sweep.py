"""All runs of all portfolios and of each learner alone.

They run in blocks, which are stored as they finish.
"""

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
from esbas.experiments.dialogue.notation import DialogueLearner, TableRow, parse
from esbas.experiments.dialogue.setup import GAME, PROTOCOL, TABLE
from esbas.experiments.kernels.counter import run_key
from esbas.experiments.kernels.dialogue.one_dialogue import Traits
from esbas.experiments.kernels.dialogue.whole_runs import (
    LearnerArrays,
    LearningProtocol,
    learner_arrays,
    whole_run,
)
from esbas.experiments.options import SweepOptions
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
    """Return the rows by name; "all" stands for the rows of the paper's table."""
    require(len(names) > 0, "`rows` must not be empty: give a portfolio, or all.")
    texts: list[str] = []
    for name in names:
        if name.strip().lower() == "all":
            texts += TABLE
        else:
            texts.append(name)
    rows = {}
    for text in texts:
        row = parse(text, constants=constants.stored())
        if no_reset:
            row = row.without_reset()
        rows[row.name] = row
    return rows


def alone(row: TableRow) -> list[TableRow]:
    """Return the canonical meta-algorithms of a row: each of its learners alone.

    Equal learners are listed once.
    """
    rows = []
    for learner in dict.fromkeys(row.learners):
        second = row.second and bool(learner.mu)
        rows.append(TableRow(learner.name, (learner,), second=second))
    return rows


def kernel_learners(row: TableRow, policies: Policies, run: int) -> LearnerArrays:
    """Return the learners of a row as arrays for the kernel.

    Runs use the policies of a constant in turn. Each learner has its own noise.
    """
    kinds: list[Traits] = []
    weights: list[NDArray[np.float64] | None] = []
    for k, learner in enumerate(row.learners):
        if learner.mu:
            found = constants.find(learner.mu, policies, second=row.second)
            kinds.append(Traits(3, square=1, constant=1, keep=int(not row.reset)))
            weights.append(found[run % len(found)].array)
        else:
            instance = row.learners[:k].count(learner)
            kinds.append(_traits(learner, instance))
            weights.append(None)
    return learner_arrays(kinds, weights)


def _traits(learner: DialogueLearner, instance: int) -> Traits:
    base = 3 if learner.base == "simple" else 2
    seed = zlib.crc32(f"{learner.name} {instance}".encode())
    return Traits(base, noise=learner.noise, square=int(learner.squares), seed=seed)


def one_run(
    row: TableRow, policies: Policies, *, seed: int, run: int, protocol: LearningProtocol = PROTOCOL
) -> EpochSums:
    """Execute one run.

    Dialogue τ of run number `run` has the same costs, user and channel under every portfolio.
    """
    key = run_key(seed, "dialogue", run)
    portfolio = kernel_learners(row, policies, run)
    values, arms, acts, _ = whole_run(key, GAME, portfolio, protocol)
    starts = np.concatenate([[0], np.cumsum(protocol.epochs)[:-1]])
    chosen = (arms[:, None] == np.arange(len(row.learners))).astype(np.int64)  # (T, K)
    return EpochSums(
        returns=np.add.reduceat(values, starts, axis=0),
        selections=np.add.reduceat(chosen, starts, axis=0),
        acts=np.add.reduceat(acts, starts, axis=0),
    )


def block(
    row: TableRow, policies: Policies, seed: int, protocol: LearningProtocol, runs: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """Execute several runs, and stack their outcomes."""
    outcomes = [one_run(row, policies, seed=seed, run=run, protocol=protocol) for run in runs]
    return {
        "returns": np.stack([outcome.returns for outcome in outcomes]),
        "selections": np.stack([outcome.selections for outcome in outcomes]),
        "acts": np.stack([outcome.acts for outcome in outcomes]),
    }


class Outcomes(NamedTuple):
    """The outcomes of all rows and of each learner alone (which rows share), by name."""

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
    """Execute all runs of these rows with ESBAS and, if `shared`, with shared evidence."""
    table = {row.name: row for row in rows}
    canonical = {}
    for row in table.values():
        for one in alone(row):
            canonical[one.name] = one

    plans: dict[str, tuple[TableRow, LearningProtocol]] = {}  # by the name of the stored parts
    for name, row in (canonical | table).items():
        plans[_file_name(name)] = (row, protocol)
    if shared:
        for name, row in table.items():
            plans[_shared_name(name)] = (row, protocol._replace(shared=True))

    firsts = range(0, options.runs, BLOCK)
    blocks = {}
    for first in firsts:
        runs = range(first, min(first + BLOCK, options.runs))
        for name, (row, plan) in plans.items():
            blocks[_part_name(name, first)] = partial(
                block, row, policies, options.seed, plan, runs
            )
    finished = options.run_parts(results, blocks, description="dialogue")

    def joined(name: str) -> EpochSums:
        own = [finished[_part_name(name, first)] for first in firsts]
        return EpochSums(
            returns=np.concatenate([part["returns"] for part in own]),
            selections=np.concatenate([part["selections"] for part in own]),
            acts=np.concatenate([part["acts"] for part in own]),
        )

    return Outcomes(
        rows={name: joined(_file_name(name)) for name in table},
        canonical={name: joined(_file_name(name)) for name in canonical},
        shared={name: joined(_shared_name(name)) for name in table if shared},
    )


def _part_name(name: str, first: int) -> str:
    return f"{name}-{first:05d}"


def _shared_name(name: str) -> str:
    return f"{_file_name(name)}=shared-evidence"


def _file_name(name: str) -> str:
    readable = name.replace("*", "x").replace("(", "=").replace("no reset", "no-reset")
    return re.sub(r"[^\w.+=-]", "", readable)
