"""Whole runs of the negotiation dialogue, compiled: ESBAS over fitted Q iteration and constant policies.

Dialogue τ of a run has the same random numbers under every portfolio: see `esbas.kernels.counter`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from esbas.bandits import ucb
from esbas.compiling import compiled
from esbas.kernels.counter import word
from esbas.kernels.dialogue.fitted_q import LANES, fitted_q, inverse
from esbas.kernels.dialogue.one_dialogue import (
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
from esbas.kernels.shared_evidence import choose_shared, new_memory, observe_shared, start_shared

CONSTANT = Traits._fields.index("constant")

_ucb_bonus = compiled(ucb.ucb_bonus)


class Members(NamedTuple):
    """A portfolio as arrays."""

    traits: Integers  # (K, 6): the fields of Traits
    weights: Floats  # (K, A, D): weights of the constant policies; 0 for learners


class LearningProtocol(NamedTuple):
    """How algorithms learn and how they are chosen."""

    epochs: Integers  # lengths of the epochs
    xi: float  # of ESBAS
    exploration: float  # epsilon is this to the power of the epoch
    ridge: float
    tolerance: float
    max_iterations: int
    shared: bool = False  # whether `SharedEvidence` chooses


def members(algorithms: Sequence[Traits], constants: Sequence[Floats | None]) -> Members:
    """Convert a portfolio to arrays. `constants` has the weights, (A, d), of each constant policy, and None for learners."""
    weights = np.zeros((len(algorithms), ACTIONS, max(feature_total(algorithm) for algorithm in algorithms)))
    for k, given in enumerate(constants):
        if given is not None:
            weights[k, :, : given.shape[1]] = given
    return Members(np.array(algorithms, np.int64), weights)


@compiled
def whole_run(
    key: np.uint64, game: Game, portfolio: Members, protocol: LearningProtocol
) -> tuple[Floats, Integers, Integers, Floats]:
    """A run of ESBAS or of `SharedEvidence`, or, with one member, of the canonical algorithm.

    Returns:
        Per dialogue its value, arm and number of system acts; and the weights at the end, (K, A, D).
    """
    arms, _, size = portfolio.weights.shape
    total = protocol.epochs.sum()
    stored = total - protocol.epochs[-1]  # the last epoch is not learnt from
    values, chosen, acts = np.empty(total), np.empty(total, np.int64), np.empty(total, np.int64)
    steps, scratch = np.empty(((stored + 1) * game.max_acts, COLUMNS)), new_scratch(game, size)
    weights = portfolio.weights.copy()
    matrices, moments = np.zeros((arms, ACTIONS, size, size)), np.zeros((arms, ACTIONS, size))
    counts, sums = np.zeros(arms), np.zeros(arms)
    shared, draws, log_probs = protocol.shared, word(key, -1), np.empty(arms)  # no dialogue has the stream -1
    memory = new_memory(arms, protocol.epochs.max() if shared else 1)
    number = count = learnt = np.int64(0)  # dialogues, steps, steps that were learnt from
    for epoch in range(len(protocol.epochs)):
        for arm in range(arms):
            member = _member(portfolio, arm)
            if epoch > 0 and member.constant == 0:
                args = matrices[arm], moments[arm], weights[arm]
                _learn(steps[:count], learnt, game.gamma, member, protocol, scratch, *args)
            if member.keep == 0:
                counts[arm], sums[arm] = 0.0, 0.0
        if shared:
            start_shared(memory, portfolio.traits[:, CONSTANT] * (epoch > 0))
        learnt = count
        epsilon = protocol.exploration**epoch
        for _ in range(protocol.epochs[epoch]):
            arm = choose_shared(memory, number, draws) if shared else _choose(counts, sums, protocol.xi)
            length, value = play(key, number, game, _member(portfolio, arm), weights[arm], epsilon, steps, count, scratch)
            values[number], chosen[number], acts[number] = value, arm, length
            if shared:
                for k in range(arms):
                    member = _member(portfolio, k)
                    log_probs[k] = log_probability(steps, count, length, member, weights[k], epsilon, scratch)
                observe_shared(memory, arm, value, log_probs)
            number += 1
            count += length if number <= stored else 0
            counts[arm] += 1.0
            sums[arm] += value
    return values, chosen, acts, weights


@compiled
def mean_value(key: np.uint64, game: Game, portfolio: Members, dialogues: int) -> tuple[float, float]:
    """The mean value of the first member's greedy policy, with its given weights, and the standard deviation of a value."""
    steps, scratch = np.empty((game.max_acts, COLUMNS)), new_scratch(game, portfolio.weights.shape[2])
    member, weights = _member(portfolio, 0), portfolio.weights[0]
    total = squares = 0.0
    for number in range(dialogues):
        _, value = play(key, number, game, member, weights, 0.0, steps, np.int64(0), scratch)
        total += value
        squares += value * value
    mean = total / dialogues
    return mean, math.sqrt(max(squares / dialogues - mean * mean, 0.0))


@compiled
def _member(portfolio: Members, arm: int) -> Traits:
    traits = portfolio.traits
    return Traits(traits[arm, 0], traits[arm, 1], traits[arm, 2], traits[arm, 3], traits[arm, 4], traits[arm, 5])


@compiled
def _choose(counts: Floats, sums: Floats, xi: float) -> int:
    """UCB1: an arm without a pull, otherwise the arm with the largest index; the first one of equals."""
    total = counts.sum()
    best, chosen = -math.inf, 0
    for arm in range(len(counts)):
        if counts[arm] == 0.0:
            return arm
        index = sums[arm] / counts[arm] + _ucb_bonus(xi, total, counts[arm])
        if index > best:
            best, chosen = index, arm
    return chosen


@compiled
def _learn(
    steps: Floats,  # (N, COLUMNS)
    learnt: Integer,
    gamma: float,
    member: Traits,
    protocol: LearningProtocol,
    scratch: Scratch,
    matrices: Floats,  # (A, D, D): Σ φ φᵀ
    moments: Floats,  # (A, D): Σ φ r
    weights: Floats,  # (A, D)
) -> None:
    """Fitted Q iteration on all steps. The matrices already contain the steps before `learnt`."""
    starts, d, row = _block_starts(steps), feature_total(member), scratch.features
    features, following = np.zeros((starts[-1], d, LANES)), np.zeros((starts[-1], d, LANES))
    place = starts * LANES
    before = place[0]  # place of the previous step, if it is not the last of its dialogue
    for i in range(len(steps)):
        fill_row(steps, i, member, scratch)
        action, reward = np.int64(steps[i, ACTION]), steps[i, REWARD]
        if i >= learnt:
            for j in range(d):
                moments[action, j] += reward * row[j]
                for k in range(d):
                    matrices[action, j, k] += row[j] * row[k]
        if steps[i, TURN] > 1.0:
            for j in range(d):
                following[before // LANES, j, before % LANES] = row[j]
        if steps[i, ENDS] == 0.0:
            before = place[action]
            place[action] += 1
            for j in range(d):
                features[before // LANES, j, before % LANES] = row[j]
    inverses = np.empty_like(matrices)
    for a in range(ACTIONS):
        inverse(matrices[a], d, protocol.ridge, inverses[a])
    limits = gamma, protocol.tolerance, protocol.max_iterations
    fitted_q(inverses, moments, features, following, starts, *limits, weights)


@compiled
def _block_starts(steps: Floats) -> Integers:
    """The first block of each action, counting the steps that are not the last of their dialogue."""
    starts = np.zeros(ACTIONS + 1, np.int64)
    for i in range(len(steps)):
        starts[np.int64(steps[i, ACTION]) + 1] += steps[i, ENDS] == 0.0
    for action in range(ACTIONS):
        starts[action + 1] = starts[action] + (starts[action + 1] + LANES - 1) // LANES
    return starts
