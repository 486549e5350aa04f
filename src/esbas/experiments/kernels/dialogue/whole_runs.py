"""Whole runs of the negotiation dialogue, compiled.

The meta-algorithm is ESBAS or `SharedEvidence`, over fitted Q iteration and constant policies.
Dialogue τ of a run has the same random numbers under every portfolio: see
`esbas.experiments.kernels.counter`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from esbas._internal.compiling import compiled
from esbas.bandits import ucb
from esbas.experiments.kernels.counter import word
from esbas.experiments.kernels.dialogue.fitted_q import LANES, fitted_q, inverse
from esbas.experiments.kernels.dialogue.one_dialogue import (
    ACTION,
    ACTIONS,
    COLUMNS,
    ENDS,
    REWARD,
    TURN,
    Floats,
    Game,
    Integer,
    Integers,
    Scratch,
    Traits,
    feature_total,
    fill_row,
    log_probability,
    new_scratch,
    play,
)
from esbas.experiments.kernels.shared_evidence import (
    choose_shared,
    new_memory,
    observe_shared,
    start_shared,
)

CONSTANT = Traits._fields.index("constant")

_ucb_bonus = compiled(ucb.ucb_bonus)


class LearnerArrays(NamedTuple):
    """The learners of a portfolio as arrays."""

    traits: Integers  # (K, 6): the fields of Traits
    weights: Floats  # (K, A, D): of the constant policies; 0 for those that learn


class LearningProtocol(NamedTuple):
    """How learners learn and how they are chosen."""

    epochs: Integers  # lengths of the epochs
    xi: float  # of ESBAS
    exploration: float  # epsilon is this to the power of the epoch
    ridge: float
    tolerance: float
    max_iterations: int
    shared: bool = False  # whether `SharedEvidence` chooses


def learner_arrays(learners: Sequence[Traits], constants: Sequence[Floats | None]) -> LearnerArrays:
    """Convert a portfolio to arrays.

    Args:
        learners: the learners of the portfolio.
        constants: for each learner, the weights, (A, d), of a constant policy, or None.
    """
    size = max(feature_total(learner) for learner in learners)
    weights = np.zeros((len(learners), ACTIONS, size))
    for k, given in enumerate(constants):
        if given is not None:
            weights[k, :, : given.shape[1]] = given
    return LearnerArrays(np.array(learners, np.int64), weights)


@compiled
def whole_run(
    key: np.uint64, game: Game, portfolio: LearnerArrays, protocol: LearningProtocol
) -> tuple[Floats, Integers, Integers, Floats]:
    """Run ESBAS or `SharedEvidence` or, with one learner, this learner alone.

    Returns:
        For each dialogue its value, arm and number of system acts; and the weights at the end,
        (K, A, D).
    """
    arms, _, size = portfolio.weights.shape
    total = protocol.epochs.sum()
    stored = total - protocol.epochs[-1]  # the last epoch is not learnt from
    values = np.empty(total)
    chosen = np.empty(total, np.int64)
    acts = np.empty(total, np.int64)
    steps = np.empty(((stored + 1) * game.max_acts, COLUMNS))
    scratch = new_scratch(game, size)
    weights = portfolio.weights.copy()
    matrices = np.zeros((arms, ACTIONS, size, size))
    moments = np.zeros((arms, ACTIONS, size))
    counts = np.zeros(arms)
    sums = np.zeros(arms)
    shared = protocol.shared
    draws = word(key, -1)  # a stream that no dialogue has
    log_probs = np.empty(arms)
    memory = new_memory(arms, protocol.epochs.max() if shared else 1)
    number = np.int64(0)  # of dialogues
    count = np.int64(0)  # of stored steps
    learnt = np.int64(0)  # how many of the stored steps were learnt from
    for epoch in range(len(protocol.epochs)):
        for arm in range(arms):
            learner = _traits(portfolio, arm)
            if epoch > 0 and learner.constant == 0:
                _learn(
                    steps[:count],
                    learnt,
                    game.gamma,
                    learner,
                    protocol,
                    scratch,
                    matrices[arm],
                    moments[arm],
                    weights[arm],
                )
            if learner.keep == 0:
                counts[arm] = 0.0
                sums[arm] = 0.0
        if shared:
            start_shared(memory, portfolio.traits[:, CONSTANT] * (epoch > 0))
        learnt = count
        epsilon = protocol.exploration**epoch
        for _ in range(protocol.epochs[epoch]):
            if shared:
                arm = choose_shared(memory, number, draws)
            else:
                arm = _choose(counts, sums, protocol.xi)
            length, value = play(
                key,
                number,
                game,
                _traits(portfolio, arm),
                weights[arm],
                epsilon,
                steps,
                count,
                scratch,
            )
            values[number] = value
            chosen[number] = arm
            acts[number] = length
            if shared:
                for k in range(arms):
                    learner = _traits(portfolio, k)
                    log_probs[k] = log_probability(
                        steps, count, length, learner, weights[k], epsilon, scratch
                    )
                observe_shared(memory, arm, value, log_probs)
            number += 1
            if number <= stored:
                count += length
            counts[arm] += 1.0
            sums[arm] += value
    return values, chosen, acts, weights


@compiled
def mean_value(
    key: np.uint64, game: Game, portfolio: LearnerArrays, dialogues: int
) -> tuple[float, float]:
    """Return the mean value of the first learner's greedy policy, and the standard deviation.

    The policy has the weights of the portfolio. The deviation is that of a single value.
    """
    steps = np.empty((game.max_acts, COLUMNS))
    scratch = new_scratch(game, portfolio.weights.shape[2])
    learner = _traits(portfolio, 0)
    weights = portfolio.weights[0]
    total = 0.0
    squares = 0.0
    for number in range(dialogues):
        _, value = play(key, number, game, learner, weights, 0.0, steps, np.int64(0), scratch)
        total += value
        squares += value * value
    mean = total / dialogues
    return mean, math.sqrt(max(squares / dialogues - mean * mean, 0.0))


@compiled
def _traits(portfolio: LearnerArrays, arm: int) -> Traits:
    traits = portfolio.traits
    return Traits(
        traits[arm, 0],
        traits[arm, 1],
        traits[arm, 2],
        traits[arm, 3],
        traits[arm, 4],
        traits[arm, 5],
    )


@compiled
def _choose(counts: Floats, sums: Floats, xi: float) -> int:
    """Return the arm that UCB1 chooses.

    An arm without a pull comes first, then the arm with the largest index; the first one of equals.
    """
    total = counts.sum()
    best = -math.inf
    chosen = 0
    for arm in range(len(counts)):
        if counts[arm] == 0.0:
            return arm
        index = sums[arm] / counts[arm] + _ucb_bonus(xi, total, counts[arm])
        if index > best:
            best = index
            chosen = arm
    return chosen


@compiled
def _learn(
    steps: Floats,  # (N, COLUMNS)
    learnt: Integer,
    gamma: float,
    learner: Traits,
    protocol: LearningProtocol,
    scratch: Scratch,
    matrices: Floats,  # (A, D, D): Σ φ φᵀ
    moments: Floats,  # (A, D): Σ φ r
    weights: Floats,  # (A, D)
) -> None:
    """Run fitted Q iteration on all steps.

    `matrices` and `moments` already contain the steps before `learnt`.
    """
    starts = _block_starts(steps)
    d = feature_total(learner)
    row = scratch.features
    features = np.zeros((starts[-1], d, LANES))
    following = np.zeros((starts[-1], d, LANES))
    lane = starts * LANES  # (A + 1,): the next free lane of each action, counted over all blocks
    before = lane[0]  # the lane of the previous step, if that is not the last of its dialogue
    for i in range(len(steps)):
        fill_row(steps, i, learner, scratch)
        action = np.int64(steps[i, ACTION])
        reward = steps[i, REWARD]
        if i >= learnt:
            for j in range(d):
                moments[action, j] += reward * row[j]
                for k in range(d):
                    matrices[action, j, k] += row[j] * row[k]
        if steps[i, TURN] > 1.0:
            for j in range(d):
                following[before // LANES, j, before % LANES] = row[j]
        if steps[i, ENDS] == 0.0:
            before = lane[action]
            lane[action] += 1
            for j in range(d):
                features[before // LANES, j, before % LANES] = row[j]
    inverses = np.empty_like(matrices)
    for a in range(ACTIONS):
        inverse(matrices[a], d, protocol.ridge, inverses[a])
    fitted_q(
        inverses,
        moments,
        features,
        following,
        starts,
        gamma,
        protocol.tolerance,
        protocol.max_iterations,
        weights,
    )


@compiled
def _block_starts(steps: Floats) -> Integers:
    """Return the first block of each action, (A + 1,).

    Blocks contain the steps that are not the last of their dialogue.
    """
    starts = np.zeros(ACTIONS + 1, np.int64)
    for i in range(len(steps)):
        starts[np.int64(steps[i, ACTION]) + 1] += steps[i, ENDS] == 0.0
    for action in range(ACTIONS):
        blocks = (starts[action + 1] + LANES - 1) // LANES
        starts[action + 1] = starts[action] + blocks
    return starts
