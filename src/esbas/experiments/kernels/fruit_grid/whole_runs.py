"""Whole runs of the fruit collection experiment.

The formulas of the environment, the learners and the bandit are compiled. The tables of all
learners are in one float32 array, state by action by learner, so that one instruction updates all
four. The row of the last state stays 0, so that the update after the last fruit is not a special
case.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas._internal.compiling import compiled
from esbas.bandits import ucb
from esbas.experiments.envs import FruitMap
from esbas.experiments.kernels import kalman
from esbas.experiments.kernels.fruit_grid.random import (
    CHANCE_BITS,
    Integer,
    Stream,
    below,
    chance,
    next_word,
    normal,
    random_action,
    uniform,
)
from esbas.learners import schedules
from esbas.learners.tabular import q_learning as tabular_q

MAX_EPISODE_STEPS = 100  # maximum number of steps of an episode
FAILURE = 200  # the objective of a truncated episode

# How learners are selected.
SLIDING = 0  # SSBAS
EPOCHAL = 1  # ESBAS
KALMAN = 2  # Kalman Thompson sampling

_q_update: Any = compiled(tabular_q.q_update)  # of float32 here
_ucb_bonus = compiled(ucb.ucb_bonus)
_linear = compiled(schedules.linear)
_hyperbolic = compiled(schedules.hyperbolic)
_new_bank = kalman.new_bank
_observe = kalman.observe
_draw = kalman.draw
_sample = kalman.sample
_A = 4  # actions


class GridTables(NamedTuple):
    """A map as arrays."""

    following: NDArray[np.uint32]  # (S + 1) * 4: the next state for each state and action
    fruits: NDArray[np.float32]  # (S + 1) * 4: fruits eaten by the move, 0 or 1
    starts: NDArray[np.uint32]  # (starts,)


class Learning(NamedTuple):
    """The parameters that the learners share, and the learning rate of each."""

    rates: tuple[float, ...]  # learning rate of each learner in the first episode
    decay: float  # decay of the rates: see schedules.hyperbolic
    gamma: float
    epsilon: float  # in the first episode
    horizon: float  # the episode in which epsilon reaches 0: see schedules.linear


class Counters(NamedTuple):
    """Sums over the episodes of each bin."""

    transitions: NDArray[np.int64]  # (bins,)
    objective: NDArray[np.int64]  # (bins,): number of steps, or FAILURE for a truncated episode
    selections: NDArray[np.int64]  # (bins, K)


def grid_tables(grid: FruitMap) -> GridTables:
    """Convert a map to arrays."""
    return GridTables(
        grid.following.ravel().astype(np.uint32),
        grid.eaten.ravel().astype(np.float32),
        grid.starts.astype(np.uint32),
    )


@compiled
def whole_run(
    stream: Stream,
    chooser: Stream,
    grid: GridTables,
    learning: Learning,
    xi: float,
    rule: int,
    edges: NDArray[np.int64],
) -> Any:
    """Run edges[-1] episodes, and count them in bins that end with the episodes `edges`.

    With several learners, `rule` selects: SLIDING, EPOCHAL with epochs of 1, 2, 4, ... episodes, or
    KALMAN, which draws from the stream `chooser`. One learner learns by epochs if the rule is
    EPOCHAL.

    Returns:
        The fields of `Counters`.
    """
    k = len(learning.rates)
    epochal = rule == EPOCHAL
    filtered = rule == KALMAN
    table = np.zeros(len(grid.following) * k, np.float32)
    acting = table.copy() if epochal else table  # policies do not change within an epoch
    counts = np.zeros(k, np.int64)
    sums = np.zeros(k, np.int64)
    total = 0
    # The rounds of SLIDING, in a ring: value * k + arm.
    window = np.zeros(edges[-1] // 2 + 1 if rule == SLIDING and k > 1 else 1, np.uint16)
    newest = 0
    oldest = 0
    bank = _new_bank(k)
    normals = np.zeros(k)
    transitions = np.zeros(len(edges), np.int64)
    objective = np.zeros(len(edges), np.int64)
    selections = np.zeros((len(edges), k), np.int64)
    number = 0
    epoch_end = 0
    epsilon = 0.0
    for b in range(len(edges)):
        while number < edges[b]:
            number += 1
            if not epochal:
                epsilon = _linear(learning.epsilon, learning.horizon, number)
            elif number > epoch_end:
                epsilon = _linear(learning.epsilon, learning.horizon, number)
                epoch_end = 2 * epoch_end + 1
                acting[:] = table
                counts[:] = 0
                sums[:] = 0
                total = 0
            arm: Integer = 0
            if filtered:
                chooser, arm = _thompson(chooser, bank, normals)
            elif k > 1:
                arm = _choose(counts, sums, total, xi)
            stream, steps, value = _episode(
                stream, grid, learning, acting, table, arm, epsilon, number
            )
            transitions[b] += steps
            objective[b] += value
            selections[b, arm] += 1
            counts[arm] += 1
            sums[arm] += value
            total += 1
            if filtered:
                _observe(bank, arm, -float(value))  # less is better
            elif k > 1 and not epochal:
                window[newest] = value * k + arm
                newest = newest + 1 if newest + 1 < len(window) else 0
                if number % 2 == 0:
                    # The window of the next round is as long as this one: the oldest round leaves.
                    old = window[oldest]
                    oldest = oldest + 1 if oldest + 1 < len(window) else 0
                    counts[old % k] -= 1
                    sums[old % k] -= old // k
                    total -= 1
    return transitions, objective, selections


@compiled
def _choose(counts: NDArray[np.int64], sums: NDArray[np.int64], total: int, xi: float) -> int:
    """Return the arm that UCB1 chooses on times, where less is better.

    An arm without a pull comes first, then the arm with the largest index; the first one of equals.
    """
    best = -math.inf
    arm = 0
    for k in range(len(counts)):
        if counts[k] == 0:
            return k
        index = -sums[k] / counts[k] + _ucb_bonus(xi, total, counts[k])
        if index > best:
            best = index
            arm = k
    return arm


@compiled
def _thompson(
    chooser: Stream, bank: kalman.Bank, normals: NDArray[np.float64]
) -> tuple[Stream, Integer]:
    """Return the arm that Kalman Thompson sampling chooses. The first arm is random."""
    chooser, word = next_word(chooser)
    if bank.rounds[0] == 0:
        return chooser, below(word, len(normals))
    f = _draw(bank, uniform(word))
    for k in range(len(normals)):
        chooser, word = next_word(chooser)
        chooser, normals[k] = normal(chooser, word)
    return _largest(chooser, _sample(bank, f, normals))


@compiled
def _largest(chooser: Stream, samples: NDArray[np.float64]) -> tuple[Stream, Integer]:
    """Return the arm with the largest sample; a random one of equals."""
    largest = samples.max()
    equals: Integer = 0
    for k in range(len(samples)):
        equals += samples[k] == largest
    wanted = equals  # which of the equals is taken, counted from 1
    if equals > 1:
        chooser, word = next_word(chooser)
        wanted = 1 + below(word, equals)
    for k in range(len(samples)):
        wanted -= samples[k] == largest
        if wanted == 0:
            return chooser, k
    return chooser, 0


@compiled
def _episode(
    stream: Stream,
    grid: GridTables,
    learning: Learning,
    acting: NDArray[np.float32],
    table: NDArray[np.float32],
    arm: Integer,
    epsilon: float,
    number: int,
) -> tuple[Stream, int, int]:
    """Play an episode in which `arm` acts and all learners learn.

    Returns:
        The stream, the length and the value.
    """
    k = len(learning.rates)
    gamma = np.float32(learning.gamma)
    end = len(grid.following) // _A - 1
    following = grid.following
    fruits = grid.fruits
    explore_below = math.ceil(epsilon * (1 << CHANCE_BITS))
    stream, word = next_word(stream)
    state = np.int64(grid.starts[below(word, len(grid.starts))])
    for step in range(1, MAX_EPISODE_STEPS + 1):
        stream, word = next_word(stream)
        if chance(word) < explore_below:
            action = random_action(word)
        else:
            action = _greedy(acting, state * _A * k + arm, k)
        move = state * _A + action
        state = np.int64(following[move])
        stream, noise = normal(stream, word)
        reward = fruits[move] + noise
        for i in range(k):
            rate = np.float32(_hyperbolic(learning.rates[i], learning.decay, number))
            best_next = _best(table, state * _A * k + i, k)
            table[move * k + i] = _q_update(table[move * k + i], rate, reward, gamma, best_next)
        if state == end:
            return stream, step, step
    return stream, MAX_EPISODE_STEPS, FAILURE


@compiled
def _greedy(table: NDArray[np.float32], at: Integer, k: int) -> int:
    """Return the best action; the first one of equals.

    `at` is the index of the first value of a state and learner; its other values are k apart.
    """
    action = 0
    best = table[at]
    if table[at + k] > best:
        action = 1
        best = table[at + k]
    if table[at + 2 * k] > best:
        action = 2
        best = table[at + 2 * k]
    return 3 if table[at + 3 * k] > best else action


@compiled
def _best(table: NDArray[np.float32], at: Integer, k: int) -> Any:
    """Return the largest of the four values."""
    best = table[at]
    for action in range(1, _A):
        value = table[at + action * k]
        best = value if value > best else best  # faster than max(), which checks for NaN
    return best
