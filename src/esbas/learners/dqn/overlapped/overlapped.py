"""Networks that are trained while the policies act: a policy is one update behind, and nobody waits for more than one update."""

from dataclasses import fields
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.learners.deep.excerpts import fill
from esbas.learners.deep.group import Group, UpdateOptions
from esbas.learners.deep.layout import NetworkLayout
from esbas.learners.deep.network_memory import NetworkMemory, NetworkSpec
from esbas.learners.deep.replay import SharedReplay
from esbas.learners.deep.updating import values_of
from esbas.learners.deep.workers import Trainer, trainer_for

_TRAINER = "trainer"  # in `replay.groups`: networks of all shapes share the processes


class OverlappedGroup(Group):
    """Networks on the CPU, each trained by itself.

    A policy acts with the weights before the newest update, whether that one is finished or not, so results depend neither on
    the number of processes nor on their speed.
    """

    def __init__(self, replay: SharedReplay, network: NetworkLayout, *, batch: int, optimizer: str) -> None:
        super().__init__(replay, network, batch=batch)
        self._optimizer = optimizer
        self.sizes |= {"acting": network.size} | ({} if optimizer == "adam" else {"first": 0})
        self._trainer: Trainer = replay.groups.setdefault(_TRAINER, trainer_for(replay.processes))
        self._networks: list[NetworkMemory] = []
        self._acting: list[int] = []  # by network: the version of its arrays that acts
        self._newest: list[int] = []  # by network: the version after all finished updates
        self._running: set[int] = set()  # networks with an update that has not been waited for

    def request(self, place: int, updates: int) -> None:
        """Start them at once: an update in progress does not depend on the replay memory any more."""
        for _ in range(updates):
            self._finish(place)
            rows = self.replay.rows(self.drawn(np.array([place])))[0]
            network, newest = self._networks[place], self._newest[place]
            fill(network.excerpt, self.replay, rows, self.options[place].n_step)
            self._acting[place] = newest
            self._running.add(place)
            self._trainer.start(network, newest, int(self.counts[place]) + 1)

    def close(self) -> None:
        self._trainer.close()

    def values(self, place: int, observation: Any) -> Array:
        return np.asarray(self.batch_values(place, np.asarray(observation)[None])[0])

    def batch_values(self, place: int, observations: Array) -> Array:
        network = self._networks[place]
        return values_of(network, network.weights[self._acting[place]], np.asarray(observations))

    def weights(self, place: int) -> Array:
        return np.asarray(self._networks[place].weights[self._acting[place]].copy())

    def _finish(self, place: int) -> None:
        """Wait for the update in progress, if there is one."""
        if place not in self._running:
            return
        self._running.discard(place)  # also if it fails: then the arrays are as before
        network, options = self._networks[place], self.options[place]
        *means, finite = self._trainer.wait(network)
        self.means[place] = means
        self._newest[place] = newest = 1 - self._newest[place]
        self.counts[place] += 1
        if self.counts[place] % options.sync_every == 0:
            network.target[:] = network.weights[newest]
        if not finite:
            self._diverged.add(place)

    def _add(self, weights: Array) -> None:
        options = UpdateOptions(**{each.name: getattr(self.options[-1], each.name) for each in fields(UpdateOptions)})
        space = self.replay.observation_space
        spec = NetworkSpec(
            layout=self.network,
            shape=tuple(space.shape),
            dtype=space.dtype,
            optimizer=self._optimizer,
            batch=self.batch,
            options=options,
        )
        network = NetworkMemory(spec)
        network.weights[:] = network.target[:] = weights
        self._trainer.add(network)
        self._networks.append(network)
        self._acting.append(0)
        self._newest.append(0)

    def _arrays(self, place: int) -> dict[str, Array]:
        self._finish(place)
        network, newest = self._networks[place], self._newest[place]
        moments = {"first": network.first[newest].copy(), "second": network.second[newest].copy()}
        both = {"weights": network.weights[newest].copy(), "acting": network.weights[self._acting[place]].copy()}
        return both | {"target": network.target.copy()} | moments

    def _set_arrays(self, place: int, arrays: dict[str, Array]) -> None:
        self._finish(place)
        network = self._networks[place]
        self._acting[place], self._newest[place] = 0, 1
        network.weights[0], network.weights[1], network.target[:] = arrays["acting"], arrays["weights"], arrays["target"]
        network.first[1], network.second[1] = arrays["first"], arrays["second"]
