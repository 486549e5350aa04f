"""Trains DQNs with equal networks on one replay memory: their weights are stacked and updated in one batched call.

Each DQN learns the same as it would alone: weights, target, learning rate, discount factor, batches and generator are separate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.learners.deep.networks import Network
from esbas.learners.deep.pytorch import torch
from esbas.learners.deep.replay import SharedReplay

Tensor = torch.Tensor
MAX_GRADIENT_NORM = 10.0


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


OPTIMIZERS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], None]] = {"adam": adam, "rmsprop": rmsprop}


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """The options that may differ between the networks of a group."""

    rate: float
    gamma: float
    double: bool
    n_step: int
    sync_every: int
    rng: np.random.Generator


class Group:
    """Networks that are trained in one call.

    Requested updates are made as soon as every network has one to make, or when the result is needed.
    """

    def __init__(self, replay: SharedReplay, network: Network, *, batch: int, optimizer: str, device: torch.device) -> None:
        self.replay, self.network, self._batch, self._optimize = replay, network, batch, OPTIMIZERS[optimizer]
        self._device = device
        self._options: list[Hyperparameters] = []
        empty = torch.empty(0, network.size, device=device)
        self._stacks = dict.fromkeys(("weights", "target", "first", "second"), empty)  # (K, size) each
        self._counts, self._pending = np.zeros(0, np.int64), np.zeros(0, np.int64)  # (K,): updates made, updates to make
        self._diverged: set[int] = set()
        self._last: dict[int, tuple[int, Tensor, Tensor, Tensor]] = {}  # by network: its row, losses, values and goals
        replay.before_change.append(self.flush)

    def add(self, options: Hyperparameters, weights: Array) -> int:
        """Add a network and return its index in the group."""
        self.flush()
        row = self._tensor(weights)[None]
        rows = {"weights": row, "target": row, "first": torch.zeros_like(row), "second": torch.zeros_like(row)}
        self._stacks = {name: torch.cat([stack, rows[name]]) for name, stack in self._stacks.items()}
        self._counts, self._pending = np.append(self._counts, 0), np.append(self._pending, 0)
        self._options.append(options)
        return len(self._options) - 1

    def request(self, place: int, updates: int) -> None:
        """Request updates of one network on the current contents of the replay memory."""
        self._pending[place] += updates
        if self._pending.all():
            self.flush()

    def flush(self) -> None:
        """Make all pending updates."""
        while len(places := np.flatnonzero(self._pending)):
            self._pending[places] -= 1
            self._update(places)

    def diverged(self, place: int) -> bool:
        """Whether an update of this network was not finite, and therefore skipped, since the last call."""
        found = place in self._diverged
        self._diverged.discard(place)
        return found

    def values(self, place: int, observations: Array) -> Array:
        """The values of all actions, (N, A), by one network for observations (N, ...)."""
        self.flush()
        with torch.no_grad():
            weights = self._stacks["weights"][place : place + 1]
            return np.asarray(self.network(weights, np.asarray(observations)[None])[0].cpu().numpy())

    def metrics(self, place: int) -> dict[str, float]:
        """Means over the batch of the last update of this network; empty before it."""
        if place not in self._last:
            return {}
        row, losses, values, goals = self._last[place]
        errors = (goals[row] - values[row]).abs()
        return {"loss": float(losses[row]), "mean Q": float(values[row].mean()), "TD error": float(errors.mean())}

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _update(self, places: Array) -> None:
        options, count = [self._options[k] for k in places], self._counts[places] + 1
        part: Any = slice(None) if len(places) == len(self._options) else self._tensor(places)
        weights, target, first, second = stacks = [stack[part] for stack in self._stacks.values()]
        rate, gamma, steps = (_column([getattr(each, name) for each in options]) for name in ("rate", "gamma", "n_step"))
        rows = np.stack([self.replay.draw(each.rng, self._batch) for each in options])  # (n, B)
        seen, actions, returns, discounts, following, terminated = self.replay.batch(rows, steps=steps, gamma=gamma)
        with torch.no_grad():
            ahead = self.network(target, following)  # (n, B, A)
            choosers = ahead
            if any(each.double for each in options):  # van Hasselt et al. (2016)
                double = torch.tensor([each.double for each in options], device=self._device)[:, None, None]
                choosers = torch.where(double, self.network(weights, following), ahead)
            best = ahead.gather(2, choosers.argmax(2, keepdim=True)).squeeze(2)
            goals = self._tensor(returns) + self._tensor(discounts * ~terminated) * best  # (n, B)
        leaf = weights.detach().requires_grad_()
        values = self.network(leaf, seen).gather(2, self._tensor(actions)[..., None]).squeeze(2)
        losses = torch.nn.functional.smooth_l1_loss(values, goals, reduction="none").mean(1)  # (n,)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        with torch.no_grad():
            norm = gradient.norm(dim=1)
            finite = torch.isfinite(norm + losses)
            if not finite.all():
                gradient[~finite] = 0.0
                kept = finite.cpu().numpy()
                rate = rate * kept[:, None]
                self._diverged.update(places[~kept].tolist())
            gradient *= (MAX_GRADIENT_NORM / norm.clamp(min=MAX_GRADIENT_NORM)).nan_to_num()[:, None]
            self._optimize(weights, gradient, first, second, self._tensor(_column(count)), self._tensor(rate))
            for k, each in enumerate(options):
                if count[k] % each.sync_every == 0:
                    target[k] = weights[k]
        self._counts[places] = count
        self._last |= {int(place): (k, losses.detach(), values.detach(), goals) for k, place in enumerate(places)}
        if not isinstance(part, slice):  # indexing made copies
            for stack, changed in zip(self._stacks.values(), stacks, strict=True):
                stack[part] = changed

    def state_dict(self, place: int) -> dict[str, Any]:
        """The state of one network."""
        self.flush()
        arrays = {name: stack[place].cpu().numpy().copy() for name, stack in self._stacks.items()}
        return arrays | {"updates": int(self._counts[place]), "diverged": place in self._diverged}

    def load_state_dict(self, place: int, state: dict[str, Any]) -> None:
        for name, stack in self._stacks.items():
            stack[place] = torch.from_numpy(np.asarray(state[name]))
        self._counts[place], self._pending[place] = state["updates"], 0
        self._diverged -= {place}
        self._diverged |= {place} if state["diverged"] else set()

    def weights(self, place: int) -> Array:
        """The weights of one network, (size,)."""
        self.flush()
        return np.array(self._stacks["weights"][place].cpu().numpy())

    def restart(self, place: int, weights: Array) -> None:
        """Give one network other weights, also as its target, and a new optimiser."""
        self.flush()
        zeros = np.zeros_like(weights)
        arrays = {"weights": weights, "target": weights, "first": zeros, "second": zeros}
        self.load_state_dict(place, arrays | {"updates": 0, "diverged": False})


def _column(values: Any) -> Array:
    """(K,) numbers as a (K, 1) column of floats."""
    return np.asarray(values, np.float32)[:, None]
