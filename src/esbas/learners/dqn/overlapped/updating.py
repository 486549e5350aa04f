"""One update of one network on an excerpt of the replay memory: the same function in the acting process and in workers."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from esbas.columns import Array
from esbas.learners.deep.excerpts import following_at
from esbas.learners.deep.formulas import losses
from esbas.learners.deep.network_memory import NetworkMemory
from esbas.learners.deep.networks import evaluate
from esbas.learners.deep.optimizers import MAX_GRADIENT_NORM, adam, norm_of, rmsprop
from esbas.learners.deep.pytorch import torch
from esbas.learners.deep.targets import targets_of


class Outcome(NamedTuple):
    """The result of an update: means over the batch, and whether it was finite. Otherwise the weights did not change."""

    loss: float
    value: float
    error: float
    finite: bool


def update(network: NetworkMemory, source: int, count: int) -> Outcome:
    """Update the network on its excerpt: read version `source` of its arrays and write the other one; the `count`-th update."""
    spec, options, (steps, observations, _) = network.spec, network.spec.options, network.excerpt
    weights, new = network.weights[source], network.weights[1 - source]
    targets = _targets(network, source)
    leaf = torch.from_numpy(weights).requires_grad_()
    first_steps = torch.from_numpy(steps.actions[:: options.n_step])[:, None]
    values = evaluate(spec.layout, leaf[None], observations[None])[0].gather(1, first_steps).squeeze(1)
    slopes = np.empty_like(targets)
    means = losses(values.detach().numpy(), targets, slopes)
    (gradient,) = (each.numpy() for each in torch.autograd.grad(values, leaf, grad_outputs=torch.from_numpy(slopes)))
    norm = norm_of(gradient)
    finite = math.isfinite(norm + means[0])
    rate, shrink = (options.rate, MAX_GRADIENT_NORM / max(norm, MAX_GRADIENT_NORM)) if finite else (0.0, 0.0)
    if not finite:
        gradient = np.zeros_like(gradient)
    new[:] = weights
    network.second[1 - source] = network.second[source]
    if spec.optimizer == "adam":
        network.first[1 - source] = network.first[source]
        adam(new, gradient, network.first[1 - source], network.second[1 - source], count, rate, shrink)
    else:
        rmsprop(new, gradient, network.second[1 - source], rate, shrink)
    return Outcome(*means, finite)


def _targets(network: NetworkMemory, source: int) -> Array:
    """The targets of the values in the batch, (B,)."""
    options, excerpt = network.spec.options, network.excerpt
    weights = {"target": network.target, "weights": network.weights[source]}

    def evaluate_one(name: str, observations: Array) -> Array:
        return values_of(network, weights[name], observations[0])[None]

    rows = np.arange(network.spec.batch)[None] * options.n_step
    found = targets_of(excerpt.steps, rows, [options], partial(following_at, excerpt), evaluate_one)
    return np.asarray(found[0])


def values_of(network: NetworkMemory, weights: Array, observations: Array) -> Array:
    """The values of all actions, (N, A), for observations (N, ...), with these weights."""
    with torch.no_grad():
        return np.asarray(evaluate(network.spec.layout, torch.from_numpy(weights)[None], observations[None])[0].numpy())
