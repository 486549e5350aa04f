"""DQNs of one shape on one replay memory: their weights are stacked, and one batched call trains them all.

Each learns what it would learn alone: it has its own weights, target, rate, discount, batches and generator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.learners._torch import torch
from esbas.learners.networks import Network
from esbas.learners.replay import SharedReplay

Tensor = torch.Tensor
LONGEST_GRADIENT = 10.0


def adam(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, count: Tensor, rate: Tensor) -> None:
    """Kingma and Ba (2015), with their β and ε; one row per network, `count` (K, 1) updates including this one."""
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
class Own:
    """What each network has for itself."""

    rate: float
    gamma: float
    double: bool
    n_step: int
    sync_every: int
    rng: np.random.Generator


class Group:
    """Networks that are trained in one call. An update that a network owes is made when all owe one, or when anybody looks."""

    def __init__(self, replay: SharedReplay, network: Network, *, batch: int, optimizer: str) -> None:
        self.replay, self.network, self._batch, self._optimize = replay, network, batch, OPTIMIZERS[optimizer]
        self._own: list[Own] = []
        empty = torch.empty(0, network.size)
        self._stacks = dict.fromkeys(("weights", "target", "first", "second"), empty)  # (K, size) each
        self._counts, self._owed = np.zeros(0, np.int64), np.zeros(0, np.int64)  # (K,): updates made, updates to make
        self._diverged: set[int] = set()
        replay.before_change.append(self.settle)

    def join(self, own: Own, weights: Array) -> int:
        """One network more; returns its place."""
        self.settle()
        row = torch.from_numpy(weights)[None]
        rows = {"weights": row, "target": row, "first": torch.zeros_like(row), "second": torch.zeros_like(row)}
        self._stacks = {name: torch.cat([stack, rows[name]]) for name, stack in self._stacks.items()}
        self._counts, self._owed = np.append(self._counts, 0), np.append(self._owed, 0)
        self._own.append(own)
        return len(self._own) - 1

    def owe(self, place: int, updates: int) -> None:
        """The network is to be updated so many times, with the memory as it is now."""
        self._owed[place] += updates
        if self._owed.all():
            self.settle()

    def settle(self) -> None:
        """Make the updates that are owed."""
        while len(who := np.flatnonzero(self._owed)):
            self._owed[who] -= 1
            self._update(who)

    def diverged(self, place: int) -> bool:
        """Whether an update of this network was infinite or undefined, and so not made, since this was asked last."""
        found = place in self._diverged
        self._diverged.discard(place)
        return found

    def values(self, place: int, observation: Any) -> Array:
        """The values of all actions, (A,)."""
        self.settle()
        with torch.no_grad():
            weights = self._stacks["weights"][place : place + 1]
            return np.asarray(self.network(weights, np.asarray(observation)[None, None])[0, 0].numpy())

    def _update(self, who: Array) -> None:
        own, count = [self._own[k] for k in who], self._counts[who] + 1
        part: Any = slice(None) if len(who) == len(self._own) else torch.from_numpy(who)
        weights, target, first, second = stacks = [stack[part] for stack in self._stacks.values()]
        rate, gamma, steps = (_column([getattr(each, name) for each in own]) for name in ("rate", "gamma", "n_step"))
        rows = np.stack([self.replay.draw(each.rng, self._batch) for each in own])  # (n, B)
        seen, actions, returns, discounts, following, terminated = self.replay.batch(rows, steps=steps, gamma=gamma)
        with torch.no_grad():
            ahead = self.network(target, following)  # (n, B, A)
            choosers = ahead
            if any(each.double for each in own):  # van Hasselt et al. (2016): the network itself chooses, its target values
                double = torch.tensor([each.double for each in own])[:, None, None]
                choosers = torch.where(double, self.network(weights, following), ahead)
            best = ahead.gather(2, choosers.argmax(2, keepdim=True)).squeeze(2)
            goals = torch.from_numpy(returns) + torch.from_numpy(discounts * ~terminated) * best  # (n, B)
        leaf = weights.detach().requires_grad_()
        values = self.network(leaf, seen).gather(2, torch.from_numpy(actions)[..., None]).squeeze(2)
        losses = torch.nn.functional.smooth_l1_loss(values, goals, reduction="none").mean(1)  # (n,)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        with torch.no_grad():
            norm = gradient.norm(dim=1)
            finite = torch.isfinite(norm + losses)
            if not finite.all():
                gradient[~finite] = 0.0
                rate = rate * finite.numpy()[:, None]
                self._diverged.update(who[~finite.numpy()].tolist())
            gradient *= (LONGEST_GRADIENT / norm.clamp(min=LONGEST_GRADIENT)).nan_to_num()[:, None]
            self._optimize(weights, gradient, first, second, torch.from_numpy(_column(count)), torch.from_numpy(rate))
            for k, each in enumerate(own):
                if count[k] % each.sync_every == 0:
                    target[k] = weights[k]
        self._counts[who] = count
        if not isinstance(part, slice):  # they were copies
            for stack, changed in zip(self._stacks.values(), stacks, strict=True):
                stack[part] = changed

    def state_dict(self, place: int) -> dict[str, Any]:
        """What there is of one network, as arrays and plain data."""
        self.settle()
        arrays = {name: stack[place].numpy().copy() for name, stack in self._stacks.items()}
        return arrays | {"updates": int(self._counts[place]), "diverged": place in self._diverged}

    def load_state_dict(self, place: int, state: dict[str, Any]) -> None:
        """From what `state_dict` told."""
        for name, stack in self._stacks.items():
            stack[place] = torch.from_numpy(np.asarray(state[name]))
        self._counts[place], self._owed[place] = state["updates"], 0
        self._diverged -= {place}
        self._diverged |= {place} if state["diverged"] else set()


def _column(values: Any) -> Array:
    """(K,) numbers as a (K, 1) column of floats."""
    return np.asarray(values, np.float32)[:, None]
