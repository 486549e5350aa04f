"""Exp3, Exp3.S and Rexp3 on learning arms."""

import math

import numpy as np

from esbas.bandits.exp3 import exp3_gain, mixed
from esbas.compiling import compiled
from esbas.kernels.bounds.play import Floats, Integers, Keys, draw, play, record

gain, mix = compiled(exp3_gain), compiled(mixed)


@compiled
def exp3_regrets(expectations: Floats, keys: Keys, checkpoints: Integers, gamma: float, alpha: float, batch: int) -> Floats:
    """Exp3. With `alpha` > 0, weights are shared (Exp3.S); with `batch` > 0, it restarts after every `batch` rounds (Rexp3)."""
    shape, runs = (expectations.shape[1], len(keys)), len(keys)
    logs, chances = np.zeros(shape), np.zeros(shape)
    arms, rewards, regrets = np.zeros(runs, np.int64), np.zeros(runs), np.zeros(runs)
    recorded, passed = np.zeros((runs, len(checkpoints))), 0
    for tau in range(1, len(expectations) + 1):
        if batch > 0 and tau > 1 and (tau - 1) % batch == 0:
            logs[:], chances[:] = 0.0, 1.0 / len(logs)
        else:
            _chances(gamma, logs, chances)
        draw(tau, keys, chances, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        _learn(gamma, alpha, arms, rewards, chances, logs)
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded


@compiled
def _chances(gamma: float, logs: Floats, chances: Floats) -> None:
    """(1 - γ) w_k / Σ w + γ / K from the logarithms of the weights, the largest of which is 0."""
    arms, runs = logs.shape
    for run in range(runs):
        total = 0.0
        for arm in range(arms):
            chances[arm, run] = math.exp(logs[arm, run])
            total += chances[arm, run]
        for arm in range(arms):
            chances[arm, run] = mix(gamma, arms, chances[arm, run] / total)


@compiled
def _learn(gamma: float, alpha: float, arms: Integers, rewards: Floats, chances: Floats, logs: Floats) -> None:
    arms_n, runs = logs.shape
    for run in range(runs):
        arm = arms[run]
        shared = 0.0
        if alpha > 0.0:  # the logarithm of e α / K · Σ w, before the step
            for k in range(arms_n):
                shared += math.exp(logs[k, run])
            shared = math.log(shared / arms_n) + 1.0 + math.log(alpha)
        logs[arm, run] += gain(gamma, arms_n, rewards[run], chances[arm, run])
        largest = -math.inf
        for k in range(arms_n):
            if alpha > 0.0:
                log = logs[k, run]
                logs[k, run] = max(log, shared) + math.log1p(math.exp(-abs(log - shared)))
            largest = max(largest, logs[k, run])
        for k in range(arms_n):
            logs[k, run] -= largest
