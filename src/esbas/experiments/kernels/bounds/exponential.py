"""Exp3, Exp3.S and Rexp3 on learning arms."""

import math

import numpy as np

from esbas._internal.compiling import compiled
from esbas.bandits.exp3 import exp3_gain, mixed
from esbas.experiments.kernels.bounds.play import Floats, Integers, Keys, draw, play, record

gain = compiled(exp3_gain)
mix = compiled(mixed)


@compiled
def exp3_regrets(
    expectations: Floats, keys: Keys, checkpoints: Integers, gamma: float, alpha: float, batch: int
) -> Floats:
    """Run Exp3.

    With `alpha` > 0, weights are shared (Exp3.S). With `batch` > 0, it restarts after every `batch`
    rounds (Rexp3).
    """
    shape = (expectations.shape[1], len(keys))
    runs = len(keys)
    logs = np.zeros(shape)
    chances = np.zeros(shape)
    arms = np.zeros(runs, np.int64)
    rewards = np.zeros(runs)
    regrets = np.zeros(runs)
    recorded = np.zeros((runs, len(checkpoints)))
    passed = 0
    for tau in range(1, len(expectations) + 1):
        if batch > 0 and tau > 1 and (tau - 1) % batch == 0:
            logs[:] = 0.0
            chances[:] = 1.0 / len(logs)
        else:
            _fill_chances(gamma, logs, chances)
        draw(tau, keys, chances, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        _learn(gamma, alpha, arms, rewards, chances, logs)
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded


@compiled
def _fill_chances(gamma: float, logs: Floats, chances: Floats) -> None:
    """Write (1 - γ) w_k / Σ w + γ / K. The largest logarithm of the weights is 0."""
    arms, runs = logs.shape
    for run in range(runs):
        total = 0.0
        for arm in range(arms):
            chances[arm, run] = math.exp(logs[arm, run])
            total += chances[arm, run]
        for arm in range(arms):
            chances[arm, run] = mix(gamma, arms, chances[arm, run] / total)


@compiled
def _learn(
    gamma: float, alpha: float, arms: Integers, rewards: Floats, chances: Floats, logs: Floats
) -> None:
    n_arms, runs = logs.shape
    for run in range(runs):
        arm = arms[run]
        shared = 0.0  # the logarithm of e α / K · Σ w, before the step
        if alpha > 0.0:
            total = 0.0
            for k in range(n_arms):
                total += math.exp(logs[k, run])
            shared = math.log(total / n_arms) + 1.0 + math.log(alpha)
        logs[arm, run] += gain(gamma, n_arms, rewards[run], chances[arm, run])
        largest = -math.inf
        for k in range(n_arms):
            if alpha > 0.0:
                log = logs[k, run]
                logs[k, run] = max(log, shared) + math.log1p(math.exp(-abs(log - shared)))
            largest = max(largest, logs[k, run])
        for k in range(n_arms):
            logs[k, run] -= largest
