"""Trains convolutional networks with PyTorch, on the CPU or another device.

The weights of equal networks are stacked.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.learners.dqn.formulas import losses
from esbas.learners.dqn.group import JointGroup
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.on_pytorch.networks import evaluate
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.optimizers import MAX_GRADIENT_NORM
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.dqn.targets import targets_of

Tensor = torch.Tensor


def adam(
    weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, count: Tensor, rate: Tensor
) -> None:
    """Update by Adam (Kingma and Ba, 2015), with their β and ε.

    There is one row per network. `count` (K, 1) are the numbers of updates, including this one.
    """
    first.lerp_(gradient, 0.1)
    second.lerp_(gradient * gradient, 0.001)
    weights -= rate / (1 - 0.9**count) * first / ((second / (1 - 0.999**count)).sqrt_() + 1e-8)


def rmsprop(
    weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, count: Tensor, rate: Tensor
) -> None:
    """Update by RMSprop (Tieleman and Hinton, 2012) with ρ = 0.95."""
    del first, count
    second.lerp_(gradient * gradient, 0.05)
    weights -= rate * gradient / (second.sqrt() + 1e-7)


_OPTIMIZERS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], None]] = {
    "adam": adam,
    "rmsprop": rmsprop,
}
_CHANGING = "weights", "target", "first", "second"  # the stacks that an update changes


class TorchGroup(JointGroup):
    """Networks that PyTorch evaluates."""

    def __init__(
        self,
        replay: SharedReplay,
        network: NetworkLayout,
        *,
        batch_size: int,
        optimizer: str,
        device: torch.device,
        overlap: bool,
    ) -> None:
        super().__init__(replay, network, batch_size=batch_size)
        self._optimize = _OPTIMIZERS[optimizer]
        self._device = device
        empty = torch.empty(0, network.size, device=device)
        self._stacks = dict.fromkeys(_CHANGING, empty)  # (K, size) each
        self._behind = overlap
        if overlap:  # policies act with the weights before the newest update
            self._stacks["acting"] = empty
            self.sizes["acting"] = network.size

    def values(self, index: int, observation: Any) -> Array:
        values: Array = self.batch_values(index, np.asarray(observation)[None])[0]
        return values

    def batch_values(self, index: int, observations: Array) -> Array:
        self.flush()
        stack = "acting" if self._behind else "weights"
        one = np.array([index])
        return np.asarray(self._evaluated(stack, np.asarray(observations)[None], indices=one)[0])

    def _evaluated(self, stack: str, observations: Array, *, indices: Array) -> Array:
        """Return the values of all actions, (n, B, A), for observations (n, B, ...)."""
        with torch.no_grad():
            weights = self._stacks[stack]
            first = int(indices[0])
            end = first + len(indices)
            neighbors = indices[-1] == end - 1  # their weights need not be copied
            part = weights[first:end] if neighbors else weights[indices.tolist()]
            return np.asarray(evaluate(self.network, part, observations).cpu().numpy())

    def _update(self, indices: Array) -> list[int]:
        drawn = self.drawn(indices)
        memory = self.replay.arrays()
        rows = self.replay.rows(drawn)  # (n, B)
        options = [self.options[index] for index in indices]
        targets = targets_of(
            memory,
            rows,
            options,
            self.replay.next_observations,
            partial(self._evaluated, indices=indices),
        )
        all_networks = len(indices) == len(self.options)
        part: Any = slice(None) if all_networks else self._tensor(indices)
        if self._behind:
            self._stacks["acting"][part] = self._stacks["weights"][part]
        parts = [self._stacks[name][part] for name in _CHANGING]
        weights, target, first, second = parts
        leaf = weights.detach().requires_grad_()
        actions = self._tensor(memory.actions[rows])[..., None]  # (n, B, 1)
        all_values = evaluate(self.network, leaf, self.replay.observations(rows))  # (n, B, A)
        values = all_values.gather(2, actions).squeeze(2)  # (n, B)
        predicted = values.detach().cpu().numpy()
        slopes = np.empty_like(targets)
        for k, index in enumerate(indices):
            self.means[index] = losses(predicted[k], targets[k], slopes[k])
        (gradient,) = torch.autograd.grad(values, leaf, grad_outputs=self._tensor(slopes))
        count = self.counts[indices] + 1
        rate = np.array([each.rate for each in options])
        with torch.no_grad():
            norm = gradient.norm(dim=1)
            finite = np.isfinite(norm.cpu().numpy() + self.means[indices, 0])
            if not finite.all():
                gradient[self._tensor(~finite)] = 0.0
            shrink = (MAX_GRADIENT_NORM / norm.clamp(min=MAX_GRADIENT_NORM)).nan_to_num()
            gradient *= shrink[:, None]
            counts = self._tensor(count.astype(np.float32)[:, None])
            rates = self._tensor((rate * finite).astype(np.float32)[:, None])
            self._optimize(weights, gradient, first, second, counts, rates)
            for k, each in enumerate(options):
                if count[k] % each.sync_every == 0:
                    target[k] = weights[k]
        self.counts[indices] = count
        if not all_networks:  # indexing made copies
            for name, changed in zip(_CHANGING, parts, strict=True):
                self._stacks[name][part] = changed
        diverged: list[int] = indices[~finite].tolist()
        return diverged

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _add(self, weights: Array) -> None:
        row = self._tensor(weights)[None]
        rows = {
            "weights": row,
            "target": row,
            "first": torch.zeros_like(row),
            "second": torch.zeros_like(row),
            "acting": row,
        }
        for name, stack in self._stacks.items():
            self._stacks[name] = torch.cat([stack, rows[name]])

    def _arrays(self, index: int) -> dict[str, Array]:
        return {name: stack[index].cpu().numpy().copy() for name, stack in self._stacks.items()}

    def _set_arrays(self, index: int, arrays: dict[str, Array]) -> None:
        for name, array in arrays.items():
            self._stacks[name][index] = torch.from_numpy(array.copy())
