"""Trains convolutional networks with PyTorch, on the CPU or another device. Weights of equal networks are stacked."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.learners.deep.formulas import losses
from esbas.learners.deep.group import JointGroup
from esbas.learners.deep.layout import NetworkLayout
from esbas.learners.deep.networks import evaluate
from esbas.learners.deep.optimizers import MAX_GRADIENT_NORM
from esbas.learners.deep.pytorch import torch
from esbas.learners.deep.replay import SharedReplay
from esbas.learners.deep.targets import targets_of

Tensor = torch.Tensor


def adam(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, count: Tensor, rate: Tensor) -> None:
    """Kingma and Ba (2015), with their β and ε. One row per network; `count` (K, 1) updates, including this one."""
    first.lerp_(gradient, 0.1)
    second.lerp_(gradient * gradient, 0.001)
    weights -= rate / (1 - 0.9**count) * first / ((second / (1 - 0.999**count)).sqrt_() + 1e-8)


def rmsprop(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, count: Tensor, rate: Tensor) -> None:
    """Tieleman and Hinton (2012) with ρ = 0.95."""
    del first, count
    second.lerp_(gradient * gradient, 0.05)
    weights -= rate * gradient / (second.sqrt() + 1e-7)


_OPTIMIZERS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], None]] = {"adam": adam, "rmsprop": rmsprop}


class TorchGroup(JointGroup):
    """Networks that PyTorch evaluates."""

    def __init__(
        self, replay: SharedReplay, network: NetworkLayout, *, batch: int, optimizer: str, device: torch.device, overlap: bool
    ) -> None:
        super().__init__(replay, network, batch=batch)
        self._optimize, self._device = _OPTIMIZERS[optimizer], device
        empty = torch.empty(0, network.size, device=device)
        self._stacks = dict.fromkeys(("weights", "target", "first", "second"), empty)  # (K, size) each
        self._behind = overlap
        if overlap:  # policies act with the weights before the newest update
            self._stacks["acting"] = empty
            self.sizes["acting"] = network.size

    def values(self, place: int, observation: Any) -> Array:
        values: Array = self.batch_values(place, np.asarray(observation)[None])[0]
        return values

    def batch_values(self, place: int, observations: Array) -> Array:
        self.flush()
        stack = "acting" if self._behind else "weights"
        return np.asarray(self._evaluated(stack, np.asarray(observations)[None], places=np.array([place]))[0])

    def _evaluated(self, stack: str, observations: Array, *, places: Array) -> Array:
        """The values of all actions, (n, B, A), by these networks for observations (n, B, ...)."""
        with torch.no_grad():
            weights, first = self._stacks[stack], int(places[0])
            neighbours = first + len(places) - 1 == places[-1]  # then no weights are copied
            part = weights[first : first + len(places)] if neighbours else weights[places.tolist()]
            return np.asarray(evaluate(self.network, part, observations).cpu().numpy())

    def _update(self, places: Array) -> list[int]:
        drawn, memory = self.drawn(places), self.replay.arrays()
        rows = self.replay.rows(drawn)  # (n, B)
        options = [self.options[place] for place in places]
        targets = targets_of(memory, rows, options, self.replay.next_observations, partial(self._evaluated, places=places))
        part: Any = slice(None) if len(places) == len(self.options) else self._tensor(places)
        if self._behind:
            self._stacks["acting"][part] = self._stacks["weights"][part]
        changing = "weights", "target", "first", "second"
        weights, target, first, second = stacks = [self._stacks[name][part] for name in changing]
        leaf = weights.detach().requires_grad_()
        actions = self._tensor(memory.actions[rows])[..., None]
        values = evaluate(self.network, leaf, self.replay.observations(rows)).gather(2, actions).squeeze(2)
        predicted, slopes = values.detach().cpu().numpy(), np.empty_like(targets)
        for k, place in enumerate(places):
            self.means[place] = losses(predicted[k], targets[k], slopes[k])
        (gradient,) = torch.autograd.grad(values, leaf, grad_outputs=self._tensor(slopes))
        count, rate = self.counts[places] + 1, np.array([self.options[k].rate for k in places])
        with torch.no_grad():
            norm = gradient.norm(dim=1)
            finite = np.isfinite(norm.cpu().numpy() + self.means[places, 0])
            if not finite.all():
                gradient[self._tensor(~finite)] = 0.0
            gradient *= (MAX_GRADIENT_NORM / norm.clamp(min=MAX_GRADIENT_NORM)).nan_to_num()[:, None]
            columns = (self._tensor(column.astype(np.float32)[:, None]) for column in (count, rate * finite))
            self._optimize(weights, gradient, first, second, *columns)
            for k, place in enumerate(places):
                if count[k] % self.options[place].sync_every == 0:
                    target[k] = weights[k]
        self.counts[places] = count
        if not isinstance(part, slice):  # indexing made copies
            for name, changed in zip(changing, stacks, strict=True):
                self._stacks[name][part] = changed
        return [] if finite.all() else places[~finite].tolist()

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _add(self, weights: Array) -> None:
        row = self._tensor(weights)[None]
        rows = {"weights": row, "target": row, "first": torch.zeros_like(row), "second": torch.zeros_like(row), "acting": row}
        self._stacks = {name: torch.cat([stack, rows[name]]) for name, stack in self._stacks.items()}

    def _arrays(self, place: int) -> dict[str, Array]:
        return {name: stack[place].cpu().numpy().copy() for name, stack in self._stacks.items()}

    def _set_arrays(self, place: int, arrays: dict[str, Array]) -> None:
        for name, array in arrays.items():
            self._stacks[name][place] = torch.from_numpy(array.copy())
