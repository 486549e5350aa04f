"""One update of one network on an excerpt of the replay memory.

The acting process and workers call the same function.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from esbas._internal.columns import Array
from esbas.learners.dqn.formulas import losses
from esbas.learners.dqn.on_pytorch.networks import evaluate
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.optimizers import MAX_GRADIENT_NORM, adam, norm_of, rmsprop
from esbas.learners.dqn.overlapped.excerpts import following_at
from esbas.learners.dqn.overlapped.network_memory import NetworkMemory
from esbas.learners.dqn.targets import targets_of


class UpdateResult(NamedTuple):
    """Means over the batch of an update, and whether it was finite. If not, it changed nothing."""

    loss: float
    value: float
    error: float
    finite: bool


def update(network: NetworkMemory, source: int, count: int) -> UpdateResult:
    """Make the `count`-th update of the network, on its excerpt.

    It reads version `source` of the arrays and writes the other one.
    """
    spec = network.spec
    options = spec.options
    excerpt = network.excerpt
    weights = network.weights[source]
    targets = _targets(network, source)
    leaf = torch.from_numpy(weights).requires_grad_()
    first_actions = torch.from_numpy(excerpt.steps.actions[:: options.n_steps])[:, None]  # (B, 1)
    all_values = evaluate(spec.layout, leaf[None], excerpt.observations[None])[0]  # (B, A)
    values = all_values.gather(1, first_actions).squeeze(1)  # (B,)
    slopes = np.empty_like(targets)
    loss, value, error = losses(values.detach().numpy(), targets, slopes)
    (by_leaf,) = torch.autograd.grad(values, leaf, grad_outputs=torch.from_numpy(slopes))
    gradient = by_leaf.numpy()
    norm = norm_of(gradient)
    finite = math.isfinite(norm + loss)
    if finite:
        rate = options.rate
        shrink = MAX_GRADIENT_NORM / max(norm, MAX_GRADIENT_NORM)
    else:
        rate = 0.0
        shrink = 0.0
        gradient = np.zeros_like(gradient)
    new = network.weights[1 - source]
    new[:] = weights
    second = network.second[1 - source]
    second[:] = network.second[source]
    if spec.optimizer == "adam":
        first = network.first[1 - source]
        first[:] = network.first[source]
        adam(new, gradient, first, second, count, rate, shrink)
    else:
        rmsprop(new, gradient, second, rate, shrink)
    return UpdateResult(loss, value, error, finite)


def _targets(network: NetworkMemory, source: int) -> Array:
    """Return the targets of the values in the batch, (B,)."""
    options = network.spec.options
    excerpt = network.excerpt
    weights = {"target": network.target, "weights": network.weights[source]}

    def evaluate_one(name: str, observations: Array) -> Array:
        return values_of(network, weights[name], observations[0])[None]

    rows = np.arange(network.spec.batch_size)[None] * options.n_steps
    found = targets_of(excerpt.steps, rows, [options], partial(following_at, excerpt), evaluate_one)
    return np.asarray(found[0])


def values_of(network: NetworkMemory, weights: Array, observations: Array) -> Array:
    """Return the values of all actions, (N, A), for observations (N, ...), with these weights."""
    with torch.no_grad():
        stacked = torch.from_numpy(weights)[None]
        values = evaluate(network.spec.layout, stacked, observations[None])[0]
        return np.asarray(values.numpy())
