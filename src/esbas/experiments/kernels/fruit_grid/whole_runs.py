"""Whole runs of the fruit collection experiment: the formulas of the environment, the learners and the bandit, compiled.

The tables of all learners are in one float32 array, state by action by learner, so that one instruction updates all four.
The row of the last state stays 0, so that the update after the last fruit is not a special case.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.bandits import budgeted_thompson, ucb
from esbas.compiling import compiled
from esbas.envs import FruitMap
from esbas.kernels import kalman
from esbas.kernels.fruit_grid.random import CHANCE_BITS, Integer, Stream, below, chance, next_word, normal, random_action, uniform
from esbas.learners import schedules, tabular_q

MAX_STEPS = 100  # maximum number of steps of an episode
FAILURE = 200  # the objective of a truncated episode
SLIDING, EPOCHAL, KALMAN, BUDGETED = 0, 1, 2, 3  # how learners are selected: SSBAS, ESBAS, Kalman and budgeted Thompson sampling

_q_update: Any = compiled(tabular_q.q_update)  # of float32 here
_ucb_bonus = compiled(ucb.ucb_bonus)
_linear, _hyperbolic = compiled(schedules.linear), compiled(schedules.hyperbolic)
_new_bank, _observe, _draw, _sample, _average = kalman.new_bank, kalman.observe, kalman.draw, kalman.sample, kalman.average
_mean_cost, _acceptance = compiled(budgeted_thompson.mean_cost), compiled(budgeted_thompson.acceptance)
_leader, _WIDTH = compiled(budgeted_thompson.leader), budgeted_thompson.WIDTH
_A = 4  # actions


class Task(NamedTuple):
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


def task(grid: FruitMap) -> Task:
    """Convert a map to arrays."""
    return Task(grid.following.ravel().astype(np.uint32), grid.eaten.ravel().astype(np.float32), grid.starts.astype(np.uint32))


@compiled
def whole_run(
    stream: Stream, chooser: Stream, task: Task, learning: Learning, xi: float, rule: int, edges: NDArray[np.int64]
) -> Any:
    """A run of edges[-1] episodes, counted in bins that end with the episodes `edges`.

    With several learners, `rule` selects: SLIDING, EPOCHAL with epochs of 1, 2, 4, ... episodes, or KALMAN or BUDGETED, which
    draw from the stream `chooser`. One learner learns by epochs if the rule is EPOCHAL.
    """
    k, epochal, filtered = len(learning.rates), rule == EPOCHAL, rule in (KALMAN, BUDGETED)
    table = np.zeros(len(task.following) * k, np.float32)
    acting = table.copy() if epochal else table  # policies do not change within an epoch
    counts, sums, total = np.zeros(k, np.int64), np.zeros(k, np.int64), 0
    window = np.zeros(edges[-1] // 2 + 1 if rule == SLIDING and k > 1 else 1, np.uint16)
    bank, normals = _new_bank(k), np.zeros(k)
    played, costs = np.zeros(k, np.int64), np.zeros(k)  # of BUDGETED
    newest = oldest = 0  # places in the window
    transitions, objective = np.zeros(len(edges), np.int64), np.zeros(len(edges), np.int64)
    selections = np.zeros((len(edges), k), np.int64)
    number = 0
    epoch_end, epsilon = 0, 0.0
    for b in range(len(edges)):
        while number < edges[b]:
            number += 1
            if not epochal:
                epsilon = _linear(learning.epsilon, learning.horizon, number)
            elif number > epoch_end:
                epsilon = _linear(learning.epsilon, learning.horizon, number)
                epoch_end = 2 * epoch_end + 1
                acting[:] = table
                counts[:], sums[:], total = 0, 0, 0
            arm: Integer = 0
            if filtered:
                chooser, arm = _thompson(chooser, bank, normals, costs, rule)
            elif k > 1:
                arm = _choose(counts, sums, total, xi)
            stream, steps, value = _episode(stream, task, learning, acting, table, arm, epsilon, number)
            transitions[b] += steps
            objective[b] += value
            selections[b, arm] += 1
            counts[arm] += 1
            sums[arm] += value
            total += 1
            if rule == BUDGETED:
                played[arm] += 1
                costs[arm] = _mean_cost(costs[arm], played[arm], float(steps))
            if filtered:
                _observe(bank, arm, -float(value))  # less is better
            elif k > 1 and not epochal:
                window[newest] = value * k + arm
                newest = newest + 1 if newest + 1 < len(window) else 0
                if number % 2 == 0:  # the next round's window is as long as this one's: the oldest leaves
                    old = window[oldest]
                    oldest = oldest + 1 if oldest + 1 < len(window) else 0
                    counts[old % k] -= 1
                    sums[old % k] -= old // k
                    total -= 1
    return transitions, objective, selections


@compiled
def _choose(counts: NDArray[np.int64], sums: NDArray[np.int64], total: int, xi: float) -> int:
    """UCB1 on times, where less is better: an arm without a pull, otherwise the first arm with the largest index."""
    best, arm = -math.inf, 0
    for k in range(len(counts)):
        if counts[k] == 0:
            return k
        index = -sums[k] / counts[k] + _ucb_bonus(xi, total, counts[k])
        if index > best:
            best, arm = index, k
    return arm


@compiled
def _thompson(
    chooser: Stream, bank: kalman.Bank, normals: NDArray[np.float64], costs: NDArray[np.float64], rule: int
) -> tuple[Stream, Integer]:
    """Kalman or budgeted Thompson sampling. The first arm is random."""
    chooser, word = next_word(chooser)
    if bank.rounds[0] == 0:
        return chooser, below(word, len(normals))
    f = _draw(bank, uniform(word))
    for k in range(len(normals)):
        chooser, word = next_word(chooser)
        chooser, normals[k] = normal(chooser, word)
    if rule == BUDGETED:
        normals *= _WIDTH
    chooser, arm = _largest(chooser, _sample(bank, f, normals))
    cheaper = False
    for k in range(len(costs)):  # all costs are 0 with the rule KALMAN
        cheaper |= 0.0 < costs[k] < costs[arm]
    if not cheaper:
        return chooser, arm
    leading = _leader(_average(bank), range(len(normals)))
    share = _acceptance(costs[leading], costs[arm]) if leading >= 0 else 1.0
    if share == 1.0:
        return chooser, arm
    chooser, word = next_word(chooser)
    return chooser, arm if uniform(word) < share else leading


@compiled
def _largest(chooser: Stream, samples: NDArray[np.float64]) -> tuple[Stream, Integer]:
    """The arm with the largest sample, a random one of equals."""
    largest = samples.max()
    equals: Integer = 0
    for k in range(len(samples)):
        equals += samples[k] == largest
    if equals > 1:
        chooser, word = next_word(chooser)
        equals = 1 + below(word, equals)  # the number of the one to take
    for k in range(len(samples)):
        equals -= samples[k] == largest
        if equals == 0:
            return chooser, k
    return chooser, 0


@compiled
def _episode(
    stream: Stream,
    task: Task,
    learning: Learning,
    acting: NDArray[np.float32],
    table: NDArray[np.float32],
    arm: Integer,
    epsilon: float,
    number: int,
) -> tuple[Stream, int, int]:
    """An episode in which `arm` acts and all learners learn. Returns the stream, the length and the value."""
    k, gamma, end = len(learning.rates), np.float32(learning.gamma), len(task.following) // _A - 1
    following, fruits = task.following, task.fruits
    explore_below = math.ceil(epsilon * (1 << CHANCE_BITS))
    stream, word = next_word(stream)
    state = np.int64(task.starts[below(word, len(task.starts))])
    for step in range(1, MAX_STEPS + 1):
        stream, word = next_word(stream)
        action = random_action(word) if chance(word) < explore_below else _greedy(acting, state * _A * k + arm, k)
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
    return stream, MAX_STEPS, FAILURE


@compiled
def _greedy(table: NDArray[np.float32], at: Integer, k: int) -> int:
    """The best action for the learner and state whose values start at `at`; the first one of equals."""
    action, best = 0, table[at]
    if table[at + k] > best:
        action, best = 1, table[at + k]
    if table[at + 2 * k] > best:
        action, best = 2, table[at + 2 * k]
    return 3 if table[at + 3 * k] > best else action


@compiled
def _best(table: NDArray[np.float32], at: Integer, k: int) -> Any:
    """The largest of the four values."""
    best = table[at]
    for action in range(1, _A):
        value = table[at + action * k]
        best = value if value > best else best  # faster than max(), which checks for NaN
    return best
