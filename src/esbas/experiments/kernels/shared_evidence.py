"""`SharedEvidence` in compiled runs: the same formulas in loops, without allocations."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas._internal.compiling import compiled
from esbas.bandits import kalman_filters
from esbas.experiments.kernels.counter import normal
from esbas.selectors import evidence_formulas as formulas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_factor = compiled(kalman_filters.factor)
_following_fit = compiled(formulas.following_fit)
_few_pulls_variance = compiled(formulas.few_pulls_variance)
_merged = compiled(formulas.merged)
_value_variance = compiled(formulas.value_variance)
_optimistic = compiled(formulas.optimistic)
_condition = compiled(formulas.condition)
_accumulated = compiled(formulas.accumulated)
_limited_precision = compiled(formulas.limited_precision)


class SharedMemory(NamedTuple):
    """What the selector knows, as arrays."""

    whole: Integers  # (3,): trajectories of the epoch, those at the last fit, normal draws so far
    current: Floats  # (3,): number, mean and squared deviations of the values of the epoch
    older: Floats  # (3,): of the values of earlier epochs, whose weights are halved in each epoch
    unchanged: Integers  # (K,): whether the policy is the one of the previous epoch
    carried: Floats  # (3, K): mean, precision and pulls of earlier epochs, for unchanged arms
    s2: Floats  # (1,): the variance of values
    counts: Floats  # (K,): pulls in the epoch
    values: Floats  # (T,)
    ratios: Floats  # (K, T): p_ik / max_j p_ij
    weights: Floats  # (K, T)
    fitted: Floats  # (K,): V
    covariance: Floats  # (K, K)
    factor: Floats  # (K, K)
    samples: Floats  # (K,)


@compiled
def new_memory(n_arms: int, longest: int) -> SharedMemory:
    """Allocate a memory for epochs of at most `longest` trajectories."""
    return SharedMemory(
        np.zeros(3, np.int64),
        np.zeros(3),
        np.zeros(3),
        np.zeros(n_arms, np.int64),
        np.zeros((3, n_arms)),
        np.zeros(1),
        np.zeros(n_arms),
        np.empty(longest),
        np.empty((n_arms, longest)),
        np.empty((n_arms, longest)),
        np.zeros(n_arms),
        np.zeros((n_arms, n_arms)),
        np.zeros((n_arms, n_arms)),
        np.zeros(n_arms),
    )


@compiled
def choose_shared(memory: SharedMemory, number: Any, key: np.uint64) -> int:
    """Return the arm of choice `number` + 1, as `SharedEvidence.pick` chooses it."""
    n_arms = len(memory.counts)
    unchanged = memory.unchanged
    for arm in range(n_arms):
        if memory.counts[arm] == 0.0 and unchanged[arm] == 0:
            return arm
    finalist = _best_sample(memory, key)
    best = -math.inf
    chosen = 0
    for arm in range(n_arms):
        if arm == finalist or unchanged[arm] != 0:
            index = _optimistic(memory.fitted[arm], memory.covariance[arm, arm], number)
            if index > best:
                best = index
                chosen = arm
    return chosen


@compiled
def _best_sample(memory: SharedMemory, key: np.uint64) -> int:
    """Return the changed arm with the largest sample, or -1 if no arm changed.

    Nothing is drawn if a single arm changed.
    """
    n_arms = len(memory.counts)
    changed = 0
    chosen = -1
    for arm in range(n_arms):
        if memory.unchanged[arm] == 0:
            changed = changed + 1
            chosen = arm
    if changed <= 1:
        return chosen
    normals = memory.samples
    first = memory.whole[2]
    memory.whole[2] += n_arms
    for arm in range(n_arms):
        normals[arm] = normal(key, 2 * (first + arm))
    best = -math.inf
    for arm in range(n_arms):
        if memory.unchanged[arm] == 0:
            sample = memory.fitted[arm]
            for j in range(arm + 1):
                sample += memory.factor[arm, j] * normals[j]
            if sample > best:
                best = sample
                chosen = arm
    return chosen


@compiled
def observe_shared(
    memory: SharedMemory, arm: int | np.int64, value: float, log_probs: Floats
) -> None:
    """Add a trajectory of `arm` with this value.

    `log_probs`, (K,), are the log-probabilities of its actions under the policies of all arms.
    """
    t = memory.whole[0]
    largest = log_probs.max()
    for k in range(len(log_probs)):
        memory.ratios[k, t] = math.exp(log_probs[k] - largest)
    memory.values[t] = value
    memory.counts[arm] += 1.0
    _add(memory.current, 1.0, value, 0.0)
    memory.whole[0] = t + 1
    if t + 1 >= _following_fit(memory.whole[1]) or memory.counts[arm] == 1.0:
        _fit(memory)


@compiled
def _fit(memory: SharedMemory) -> None:
    """Fit V, C and its factor to this epoch and to what is known about unchanged arms."""
    memory.whole[1] = memory.whole[0]
    _fit_epoch(memory)
    for k in range(len(memory.counts)):
        if memory.unchanged[k] != 0 and memory.carried[2, k] > 0.0:
            mean = memory.carried[0, k]
            precision = _limited_precision(memory.carried[1, k], memory.s2[0], memory.carried[2, k])
            _condition(memory.fitted, memory.covariance, k, mean, 1.0 / precision)
    memory.factor[:] = _factor(memory.covariance)


@compiled
def _add(sums: Floats, count: float, mean: float, squares: float) -> None:
    sums[0], sums[1], sums[2] = _merged(sums[0], sums[1], sums[2], count, mean, squares)


@compiled
def _fit_epoch(memory: SharedMemory) -> None:
    """Fit V and C to the trajectories of this epoch alone."""
    n_arms = memory.ratios.shape[0]
    t = memory.whole[0]
    values = memory.values
    covariance = memory.covariance
    weights = memory.weights
    counts = memory.counts
    current = memory.current
    older = memory.older
    count, mean, squares = _merged(older[0], older[1], older[2], current[0], current[1], current[2])
    s2 = _value_variance(count, mean, squares)
    memory.s2[0] = s2

    # t / Σ_j n_j p_ij, up to the factor max_j p_ij, which the ratios have as well. It is stored in
    # the row of the last arm, because that row is overwritten last.
    mixture = weights[n_arms - 1]
    for i in range(t):
        mixture[i] = 0.0
    for k in range(n_arms):
        ratios = memory.ratios[k]
        count = max(counts[k], 1.0)
        for i in range(t):
            mixture[i] += count * ratios[i]
    for i in range(t):
        mixture[i] = t / mixture[i]

    # V_k, and in `weights` the products w_ik (R_i - V_k) for C.
    scale = memory.samples  # (K,): max(S_k, 1)
    for k in range(n_arms):
        ratios = memory.ratios[k]
        own = weights[k]
        sum_w = 0.0
        sum_wr = 0.0
        for i in range(t):
            w = ratios[i] * mixture[i]
            own[i] = w
            sum_w += w
            sum_wr += w * values[i]
        v = sum_wr / sum_w if sum_w > 0.0 else mean
        for i in range(t):
            own[i] *= values[i] - v
        memory.fitted[k] = v
        scale[k] = max(sum_w, 1.0)

    for k in range(n_arms):
        one = weights[k]
        for j in range(k + 1):
            other = weights[j]
            product = 0.0
            for i in range(t):
                product += one[i] * other[i]
            covariance[k, j] = product / (scale[k] * scale[j])
            covariance[j, k] = covariance[k, j]
        covariance[k, k] += _few_pulls_variance(s2, max(counts[k], 1.0))


@compiled
def start_shared(memory: SharedMemory, unchanged: Any) -> None:
    """Start an epoch.

    `unchanged`, (K,), marks the policies that are those of the previous epoch.
    """
    _fit_epoch(memory)
    carried = memory.carried
    for k in range(len(memory.counts)):
        if memory.unchanged[k] == 0:
            carried[:, k] = 0.0
        if memory.counts[k] > 0.0:
            precision = _limited_precision(carried[1, k], memory.s2[0], carried[2, k])
            new_precision = 1.0 / memory.covariance[k, k]
            mean, total = _accumulated(carried[0, k], precision, memory.fitted[k], new_precision)
            carried[0, k] = mean
            carried[1, k] = total
            carried[2, k] += memory.counts[k]
        memory.unchanged[k] = unchanged[k]
    _add(memory.older, memory.current[0], memory.current[1], memory.current[2])
    memory.older[0] /= 2.0
    memory.older[2] /= 2.0
    memory.counts[:] = 0.0
    memory.current[:] = 0.0
    memory.whole[0] = 0
    _fit(memory)
