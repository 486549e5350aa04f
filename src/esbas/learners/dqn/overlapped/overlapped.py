"""Networks that are trained while the policies act.

A policy is one update behind, so it never waits for more than one update.
"""

from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.learners.dqn.group import Group, UpdateOptions
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.overlapped.excerpts import fill
from esbas.learners.dqn.overlapped.network_memory import NetworkMemory, NetworkSpec
from esbas.learners.dqn.overlapped.updating import values_of
from esbas.learners.dqn.overlapped.workers import Trainer, trainer_for
from esbas.learners.dqn.replay.memory import SharedReplay

_TRAINER = "trainer"  # in `replay.groups`: networks of all shapes share the processes


class OverlappedGroup(Group):
    """Networks on the CPU, each trained by itself.

    A policy acts with the weights before the newest update, whether that one is finished or not, so
    results depend neither on the number of processes nor on their speed.
    """

    def __init__(
        self, replay: SharedReplay, network: NetworkLayout, *, batch_size: int, optimizer: str
    ) -> None:
        super().__init__(replay, network, batch_size=batch_size)
        self._optimizer = optimizer
        self.sizes["acting"] = network.size
        if optimizer != "adam":
            self.sizes["first"] = 0
        self._trainer: Trainer = replay.groups.setdefault(_TRAINER, trainer_for(replay.processes))
        self._networks: list[NetworkMemory] = []
        self._acting: list[int] = []  # by network: the version of its arrays that acts
        self._newest: list[int] = []  # by network: the version after all finished updates
        self._running: set[int] = set()  # networks with an update that has not been waited for

    def request(self, index: int, updates: int) -> None:
        """Start updates at once: an update in progress no longer depends on the replay memory."""
        for _ in range(updates):
            self._finish(index)
            rows = self.replay.rows(self.drawn(np.array([index])))[0]
            network = self._networks[index]
            newest = self._newest[index]
            fill(network.excerpt, self.replay, rows, self.options[index].n_steps)
            self._acting[index] = newest
            self._running.add(index)
            self._trainer.start(network, newest, int(self.counts[index]) + 1)

    def close(self) -> None:
        self._trainer.close()

    def values(self, index: int, observation: Any) -> Array:
        return np.asarray(self.batch_values(index, np.asarray(observation)[None])[0])

    def batch_values(self, index: int, observations: Array) -> Array:
        network = self._networks[index]
        return values_of(network, network.weights[self._acting[index]], np.asarray(observations))

    def weights(self, index: int) -> Array:
        return np.asarray(self._networks[index].weights[self._acting[index]].copy())

    def _finish(self, index: int) -> None:
        """Wait for the update in progress, if there is one."""
        if index not in self._running:
            return
        self._running.discard(index)  # also if it fails: then the arrays are as before
        network = self._networks[index]
        options = self.options[index]
        result = self._trainer.wait(network)
        self.means[index] = result.loss, result.value, result.error
        newest = 1 - self._newest[index]
        self._newest[index] = newest
        self.counts[index] += 1
        if self.counts[index] % options.sync_every == 0:
            network.target[:] = network.weights[newest]
        if not result.finite:
            self._diverged.add(index)

    def _add(self, weights: Array) -> None:
        own = self.options[-1]
        options = UpdateOptions(
            rate=own.rate,
            gamma=own.gamma,
            double=own.double,
            n_steps=own.n_steps,
            corrected=own.corrected,
            trace_decay=own.trace_decay,
            bonus=own.bonus,
        )
        space = self.replay.observation_space
        spec = NetworkSpec(
            layout=self.network,
            shape=tuple(space.shape),
            dtype=space.dtype,
            optimizer=self._optimizer,
            batch_size=self.batch_size,
            options=options,
        )
        network = NetworkMemory(spec)
        network.weights[:] = weights
        network.target[:] = weights
        self._trainer.add(network)
        self._networks.append(network)
        self._acting.append(0)
        self._newest.append(0)

    def _arrays(self, index: int) -> dict[str, Array]:
        self._finish(index)
        network = self._networks[index]
        newest = self._newest[index]
        return {
            "weights": network.weights[newest].copy(),
            "acting": network.weights[self._acting[index]].copy(),
            "target": network.target.copy(),
            "first": network.first[newest].copy(),
            "second": network.second[newest].copy(),
        }

    def _set_arrays(self, index: int, arrays: dict[str, Array]) -> None:
        self._finish(index)
        network = self._networks[index]
        self._acting[index] = 0
        self._newest[index] = 1
        network.weights[0] = arrays["acting"]
        network.weights[1] = arrays["weights"]
        network.target[:] = arrays["target"]
        network.first[1] = arrays["first"]
        network.second[1] = arrays["second"]
