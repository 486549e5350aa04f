"""DQNs with equal networks on one replay memory, which are trained together."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import COUNT, ArrayOf
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.replay.memory import SharedReplay

NONE_YET = -1.0  # a loss is never negative


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """The options of an update that may differ between the networks of a group; see `DQN`."""

    rate: float
    gamma: float
    double: bool
    n_steps: int
    corrected: bool
    trace_decay: float
    bonus: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Hyperparameters(UpdateOptions):
    """All options that may differ between the networks of a group."""

    sync_every: int
    rng: np.random.Generator


class Group(ABC):
    """Networks of equal shape on one replay memory. Each learns the same as it would alone."""

    def __init__(self, replay: SharedReplay, network: NetworkLayout, *, batch_size: int) -> None:
        self.replay = replay
        self.network = network
        self.batch_size = batch_size
        self.options: list[Hyperparameters] = []
        self.counts = np.zeros(0, np.int64)  # (K,): updates made
        self.means = np.zeros((0, 3))  # (K, 3): loss, value and absolute error in the last batch
        self._diverged: set[int] = set()
        self.sizes = {  # of the arrays of a saved network
            "weights": network.size,
            "target": network.size,
            "first": network.size,
            "second": network.size,
        }

    def add(self, options: Hyperparameters, weights: Array) -> int:
        """Add a network and return its index in the group."""
        self.flush()
        self.options.append(options)
        self.counts = np.append(self.counts, 0)
        self.means = np.append(self.means, np.full((1, 3), NONE_YET), axis=0)
        self._add(weights)
        return len(self.options) - 1

    def diverged(self, index: int) -> bool:
        """Return whether an update of this network was skipped since the last call.

        An update is skipped if it is not finite.
        """
        if index not in self._diverged:
            return False
        self._diverged.discard(index)
        return True

    def drawn(self, indices: Array) -> Array:
        """Sample transitions uniformly, with replacement, for each of these networks, (n, B).

        They are numbers modulo the capacity of the memory.
        """
        numbers = [self.replay.draw(self.options[index].rng, self.batch_size) for index in indices]
        return np.array(numbers, np.int64).reshape(len(indices), self.batch_size)

    def state_dict(self, index: int) -> dict[str, Any]:
        """Return the state of one network."""
        self.flush()
        state: dict[str, Any] = dict(self._arrays(index))
        state["updates"] = int(self.counts[index])
        state["diverged"] = index in self._diverged
        return state

    def load_state_dict(self, index: int, state: dict[str, Any]) -> None:
        shape: dict[str, Any] = {"updates": COUNT, "diverged": bool}
        for name, size in self.sizes.items():
            shape[name] = ArrayOf("f", (size,))
        schema.check(state, shape, "a saved network", remedy="build the learner as it was")
        self._set_arrays(index, {name: state[name] for name in self.sizes})
        self.counts[index] = state["updates"]
        if state["diverged"]:
            self._diverged.add(index)
        else:
            self._diverged.discard(index)

    def metrics(self, index: int) -> dict[str, float]:
        """Return means over the batch of the last update of this network; empty before it."""
        loss, value, error = self.means[index].tolist()
        if loss == NONE_YET:
            return {}
        return {"loss": loss, "mean Q": value, "TD error": error}

    def weights(self, index: int) -> Array:
        """Return the weights of one network, (size,)."""
        self.flush()
        return self._arrays(index)["weights"]

    def restart(self, index: int, weights: Array) -> None:
        """Give one network other weights, also as its target, and a new optimizer."""
        self.flush()
        state: dict[str, Any] = {"updates": 0, "diverged": False}
        for name, size in self.sizes.items():
            is_moment = name in ("first", "second")
            state[name] = np.zeros(size, np.float32) if is_moment else weights
        self.load_state_dict(index, state)

    def flush(self) -> None:
        """Make all updates that were requested but not started."""

    def close(self) -> None:
        """Release what does not end by itself, such as processes."""

    @abstractmethod
    def request(self, index: int, updates: int) -> None:
        """Request updates of one network on the current contents of the replay memory."""

    @abstractmethod
    def values(self, index: int, observation: Any) -> Array:
        """Return the values of all actions, (A,), by one network for one observation."""

    @abstractmethod
    def batch_values(self, index: int, observations: Array) -> Array:
        """Return the values of all actions, (N, A), by one network for observations (N, ...)."""

    @abstractmethod
    def _add(self, weights: Array) -> None:
        """Add arrays for the newest network."""

    @abstractmethod
    def _arrays(self, index: int) -> dict[str, Array]:
        """Return copies of the arrays of one network that `sizes` lists.

        These are weights, target, the first and second moments of the optimizer, ...
        """

    @abstractmethod
    def _set_arrays(self, index: int, arrays: dict[str, Array]) -> None:
        """Replace what `_arrays` returns."""


class JointGroup(Group):
    """Networks that are trained in one call.

    The call is made as soon as each network has an update to make, or when a result is needed.
    """

    def __init__(self, replay: SharedReplay, network: NetworkLayout, *, batch_size: int) -> None:
        super().__init__(replay, network, batch_size=batch_size)
        self._pending: list[int] = []  # by network: updates to make
        self._idle = 0  # networks without pending updates
        replay.before_change.append(self.flush)

    def add(self, options: Hyperparameters, weights: Array) -> int:
        index = super().add(options, weights)
        self._pending.append(0)
        self._idle += 1
        return index

    def request(self, index: int, updates: int) -> None:
        if self._pending[index] == 0:
            self._idle -= 1
        self._pending[index] += updates
        if self._idle == 0:
            self.flush()

    def flush(self) -> None:
        while self._idle < len(self._pending):
            indices = [index for index, updates in enumerate(self._pending) if updates > 0]
            for index in indices:
                self._pending[index] -= 1
            self._idle = self._pending.count(0)
            self._diverged.update(self._update(np.array(indices)))

    def load_state_dict(self, index: int, state: dict[str, Any]) -> None:
        super().load_state_dict(index, state)
        if self._pending[index] > 0:
            self._pending[index] = 0
            self._idle += 1

    @abstractmethod
    def _update(self, indices: Array) -> list[int]:
        """Update each of these networks once and return those whose update was not finite."""
