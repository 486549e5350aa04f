"""DQNs with equal networks on one replay memory, which are trained together."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.learners.deep.layout import NetworkLayout
from esbas.learners.deep.replay import SharedReplay
from esbas.schema import COUNT, ArrayOf

NONE_YET = -1.0  # a loss is never negative


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """The options of an update that may differ between the networks of a group; see `DQN`."""

    rate: float
    gamma: float
    double: bool
    n_step: int
    corrected: bool
    trace_decay: float


@dataclass(frozen=True, kw_only=True)
class Hyperparameters(UpdateOptions):
    """All options that may differ between the networks of a group."""

    sync_every: int
    rng: np.random.Generator


class Group(ABC):
    """Networks of equal shape on one replay memory. Each learns the same as it would alone."""

    def __init__(self, replay: SharedReplay, network: NetworkLayout, *, batch: int) -> None:
        self.replay, self.network, self.batch = replay, network, batch
        self.options: list[Hyperparameters] = []
        self.counts = np.zeros(0, np.int64)  # (K,): updates made
        self.means = np.zeros((0, 3))  # (K, 3): loss, value and absolute error in the last batch
        self._diverged: set[int] = set()
        self.sizes = dict.fromkeys(("weights", "target", "first", "second"), network.size)  # of the arrays of a saved network

    def add(self, options: Hyperparameters, weights: Array) -> int:
        """Add a network and return its index in the group."""
        self.flush()
        self.options.append(options)
        self.counts, self.means = np.append(self.counts, 0), np.append(self.means, np.full((1, 3), NONE_YET), axis=0)
        self._add(weights)
        return len(self.options) - 1

    def diverged(self, place: int) -> bool:
        """Whether an update of this network was not finite, and therefore skipped, since the last call."""
        if place not in self._diverged:
            return False
        self._diverged.discard(place)
        return True

    def drawn(self, places: Array) -> Array:
        """Uniformly sampled transitions, with replacement, for each of these networks, (n, B): numbers modulo the capacity."""
        rows = [self.replay.draw(self.options[place].rng, self.batch) for place in places]
        return np.array(rows, np.int64).reshape(len(places), self.batch)

    def state_dict(self, place: int) -> dict[str, Any]:
        """The state of one network."""
        self.flush()
        return self._arrays(place) | {"updates": int(self.counts[place]), "diverged": place in self._diverged}

    def load_state_dict(self, place: int, state: dict[str, Any]) -> None:
        shape = {name: ArrayOf("f", (size,)) for name, size in self.sizes.items()} | {"updates": COUNT, "diverged": bool}
        schema.check(state, shape, "a saved network", remedy="build the learner as it was")
        self._set_arrays(place, {name: state[name] for name in self.sizes})
        self.counts[place] = state["updates"]
        self._diverged -= {place}
        self._diverged |= {place} if state["diverged"] else set()

    def metrics(self, place: int) -> dict[str, float]:
        """Means over the batch of the last update of this network; empty before it."""
        names = "loss", "mean Q", "TD error"
        return dict(zip(names, self.means[place].tolist(), strict=True)) if self.means[place, 0] != NONE_YET else {}

    def weights(self, place: int) -> Array:
        """The weights of one network, (size,)."""
        self.flush()
        return self._arrays(place)["weights"]

    def restart(self, place: int, weights: Array) -> None:
        """Give one network other weights, also as its target, and a new optimiser."""
        self.flush()
        moments = {name: np.zeros(size, np.float32) for name, size in self.sizes.items()}
        arrays = moments | {name: weights for name in self.sizes if name not in ("first", "second")}
        self.load_state_dict(place, arrays | {"updates": 0, "diverged": False})

    def flush(self) -> None:
        """Make all updates that were requested but not started."""

    def close(self) -> None:
        """Release what does not end by itself, such as processes."""

    @abstractmethod
    def request(self, place: int, updates: int) -> None:
        """Request updates of one network on the current contents of the replay memory."""

    @abstractmethod
    def values(self, place: int, observation: Any) -> Array:
        """The values of all actions, (A,), by one network for one observation."""

    @abstractmethod
    def batch_values(self, place: int, observations: Array) -> Array:
        """The values of all actions, (N, A), by one network for observations (N, ...)."""

    @abstractmethod
    def _add(self, weights: Array) -> None:
        """Add arrays for the newest network."""

    @abstractmethod
    def _arrays(self, place: int) -> dict[str, Array]:
        """Copies of the arrays in `sizes` of one network: weights, target, the optimiser's first and second moments, ..."""

    @abstractmethod
    def _set_arrays(self, place: int, arrays: dict[str, Array]) -> None:
        """Undo `_arrays`."""


class JointGroup(Group):
    """Networks that are trained in one call, as soon as each has an update to make, or when a result is needed."""

    def __init__(self, replay: SharedReplay, network: NetworkLayout, *, batch: int) -> None:
        super().__init__(replay, network, batch=batch)
        self._pending: list[int] = []  # by network: updates to make
        self._idle = 0  # networks without pending updates
        replay.before_change.append(self.flush)

    def add(self, options: Hyperparameters, weights: Array) -> int:
        place = super().add(options, weights)
        self._pending.append(0)
        self._idle += 1
        return place

    def request(self, place: int, updates: int) -> None:
        self._idle -= self._pending[place] == 0
        self._pending[place] += updates
        if not self._idle:
            self.flush()

    def flush(self) -> None:
        while self._idle < len(self._pending):
            places = [place for place, updates in enumerate(self._pending) if updates]
            for place in places:
                self._pending[place] -= 1
            self._idle = self._pending.count(0)
            self._diverged.update(self._update(np.array(places)))

    def load_state_dict(self, place: int, state: dict[str, Any]) -> None:
        super().load_state_dict(place, state)
        self._idle += self._pending[place] > 0
        self._pending[place] = 0

    @abstractmethod
    def _update(self, places: Array) -> list[int]:
        """Make one update of each of these networks; returns those whose update was not finite."""
