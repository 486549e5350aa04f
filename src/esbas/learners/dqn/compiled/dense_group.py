"""Dense networks that are trained together without PyTorch: one compiled call makes one update of each."""

import math
from typing import Any, NamedTuple

import numpy as np

from esbas.columns import Array
from esbas.compiling import compiled
from esbas.errors import InvalidValueError, require
from esbas.learners.deep.dense import backward, forward, values_of_one
from esbas.learners.deep.formulas import add_rewards, bootstrap, losses, rounds_of, start
from esbas.learners.deep.gathering import read_observations, rows_of
from esbas.learners.deep.group import JointGroup
from esbas.learners.deep.layout import NetworkLayout
from esbas.learners.deep.optimizers import MAX_GRADIENT_NORM, adam, norm_of, rmsprop
from esbas.learners.deep.replay import SharedReplay


class Stacks(NamedTuple):
    """The networks of a group, (K, size) each."""

    weights: Array
    target: Array
    first: Array
    second: Array


class NetworkOptions(NamedTuple):
    """The options of the networks of a group, (K,) each."""

    rate: Array
    gamma: Array
    double: Array
    n_step: Array
    corrected: Array
    trace_decay: Array
    sync_every: Array


class InputFormat(NamedTuple):
    """The widths of all layers, and how observations become inputs: one label, or numbers, as (x - first) / divisor."""

    widths: Array
    one_hot: bool
    first: int
    divisor: np.float32


class Workspace(NamedTuple):
    """Arrays for the update of one network, reused for the next one: what is in use fits into the processor's cache."""

    layers: Array  # (rows of all layers, B)
    others: Array  # the same for a second network
    slopes: Array  # the same for derivatives
    turned: Array  # (B * widest layer,)
    gradient: Array  # (size,)
    rows: Array  # (B,), as all that follow
    at: Array
    who: Array
    scales: Array
    targets: Array
    predicted: Array
    by_predicted: Array


@compiled
def update(
    memory: Any,
    form: InputFormat,
    use_adam: bool,
    stacks: Stacks,
    options: NetworkOptions,
    work: Workspace,
    counts: Array,
    places: Array,
    drawn: Array,
    means: Array,
    finite: Array,
) -> None:
    """One update of each network in `places`, (n,), on its batch, given as numbers modulo the capacity in `drawn`, (n, B).

    Args:
        memory: the arrays of the replay memory.
        form: the inputs of the networks.
        use_adam: whether to use Adam, or RMSprop.
        stacks: the networks, which change.
        options: the options of the networks.
        work: overwritten.
        counts: (K,): the updates that were made so far, which increase.
        places: the networks to update.
        drawn: their batches.
        means: (K, 3): for the mean loss, value and absolute error of each batch.
        finite: (n,): for whether each update was finite. If not, the weights do not change.
    """
    for n in range(len(places)):
        k = places[n]
        rows_of(drawn[n], memory, work.rows)
        _fill_targets(memory, form, stacks, options, work, k)
        loss = _fill_gradient(memory, form, stacks.weights[k], work, means[k])
        norm = norm_of(work.gradient)
        finite[n] = math.isfinite(norm + loss)
        rate, shrink = options.rate[k], MAX_GRADIENT_NORM / max(norm, MAX_GRADIENT_NORM)
        if not finite[n]:
            work.gradient[:] = 0
            rate, shrink = 0.0, 0.0
        counts[k] += 1
        if use_adam:
            adam(stacks.weights[k], work.gradient, stacks.first[k], stacks.second[k], counts[k], rate, shrink)
        else:
            rmsprop(stacks.weights[k], work.gradient, stacks.second[k], rate, shrink)
        if counts[k] % options.sync_every[k] == 0:
            for i in range(stacks.weights.shape[1]):  # assigning rows would take 4 s longer to compile
                stacks.target[k, i] = stacks.weights[k, i]


@compiled
def _fill_targets(memory: Any, form: InputFormat, stacks: Stacks, options: NetworkOptions, work: Workspace, k: int) -> None:
    """The targets of the values in the batch of network k, see `formulas.py`."""
    at, who, scales, targets, decay = work.at, work.who, work.scales, work.targets, options.trace_decay[k]
    count = start(work.rows, at, who, scales, targets)
    rounds, length = rounds_of(options.n_step[k], options.corrected[k])
    for number in range(rounds):
        count = add_rewards(memory, length, options.gamma[k], at, who, scales, targets, count)
        if count == 0:
            return
        read_observations(memory, 1, at, count, form.first, form.divisor, work.layers)
        values = choosers = forward(stacks.target[k], form.widths, form.one_hot, work.layers, count)
        if options.double[k]:
            read_observations(memory, 1, at, count, form.first, form.divisor, work.others)
            choosers = forward(stacks.weights[k], form.widths, form.one_hot, work.others, count)
        last = number == rounds - 1
        count = bootstrap(memory, values, choosers, decay, last, at, who, scales, targets, count)


@compiled
def _fill_gradient(memory: Any, form: InputFormat, weights: Array, work: Workspace, means: Array) -> float:
    """The gradient of the mean loss by the weights; returns this loss."""
    rows, actions, predicted, by_predicted = work.rows, memory.actions, work.predicted, work.by_predicted
    read_observations(memory, 0, rows, len(rows), form.first, form.divisor, work.layers)
    values = forward(weights, form.widths, form.one_hot, work.layers, len(rows))
    for i in range(len(rows)):
        predicted[i] = values[actions[rows[i]], i]
    means[0], means[1], means[2] = losses(predicted, work.targets, by_predicted)
    by_values = work.slopes[len(work.slopes) - len(values) :]
    by_values[:] = 0
    for i in range(len(rows)):
        by_values[actions[rows[i]], i] = by_predicted[i]
    backward(weights, form.widths, form.one_hot, work.layers, work.slopes, work.turned, work.gradient)
    return float(means[0])


@compiled
def values_of_many(weights: Array, form: InputFormat, observations: Array, layers: Array) -> Array:
    """The values of all actions, (N, A), for inputs (N, ...), as many at a time as `layers` has columns."""
    total, batch = len(observations), layers.shape[1]
    result = np.empty((total, form.widths[-1]), np.float32)
    for done in range(0, total, batch):
        count = min(batch, total - done)
        for i in range(count):
            for j in range(observations.shape[1]):
                layers[j, i] = observations[done + i, j]
        values = forward(weights, form.widths, form.one_hot, layers, count)
        for i in range(count):
            for j in range(len(values)):
                result[done + i, j] = values[j, i]
    return result


class DenseGroup(JointGroup):
    """Networks without convolutions."""

    def __init__(self, replay: SharedReplay, network: NetworkLayout, *, batch: int, optimizer: str) -> None:
        super().__init__(replay, network, batch=batch)
        self._use_adam = optimizer == "adam"
        require(network.labels <= 2**24, "a network has at most 2^24 labels, which floats represent", labels=network.labels)
        widths = [network.shapes[0][0], *(shape[0] for shape in network.shapes[1::2])]
        self._inputs, one_hot = (1, True) if network.labels else (widths[0], False)
        self._actions, divisor = widths[-1], np.float32(255 if network.bytes else 1)
        self._form = InputFormat(np.array(widths), one_hot, network.first, divisor)
        rows = self._inputs + sum(widths[1:])
        layers = [np.zeros((rows, batch), np.float32) for _ in range(3)]
        flat = [np.zeros(size, np.float32) for size in (batch * max(widths), network.size)]
        integers = [np.zeros(batch, np.int64) for _ in range(3)]
        self._work = Workspace(*layers, *flat, *integers, *(np.zeros(batch, np.float32) for _ in range(4)))
        self._stacks = Stacks(*(np.zeros((0, network.size), np.float32) for _ in Stacks._fields))
        self._columns = self._settings()
        self._observation = np.zeros(self._inputs, np.float32)

    def values(self, place: int, observation: Any) -> Array:
        self.flush()
        inputs, form = self._observation, self._form
        plain = not form.one_hot and form.divisor == 1
        inputs[:] = np.ravel(observation if plain else self._converted(np.asarray(observation)))
        values = np.empty(self._actions, np.float32)
        values_of_one(self._stacks.weights[place], form.widths, form.one_hot, inputs, values)
        return values

    def batch_values(self, place: int, observations: Array) -> Array:
        self.flush()
        inputs = self._converted(np.asarray(observations).reshape(-1, self._inputs)).astype(np.float32)
        return values_of_many(self._stacks.weights[place], self._form, inputs, self._work.layers)

    def _converted(self, observations: Array) -> Array:
        """Observations as inputs. Labels are checked, because compiled functions do not check indices."""
        if not self._form.one_hot:
            return observations.astype(np.float32) / self._form.divisor
        labels = observations - self._form.first
        if not ((labels >= 0) & (labels < self.network.labels)).all():
            space = self.replay.observation_space
            raise InvalidValueError(f"observations must be in {space}, but got {observations}: fix the environment")
        return labels

    def _add(self, weights: Array) -> None:
        zeros = np.zeros_like(weights)
        rows = Stacks(weights, weights, zeros, zeros)
        self._stacks = Stacks(*(np.concatenate([old, [new]]) for old, new in zip(self._stacks, rows, strict=True)))
        self._columns = self._settings()
        if len(self.options) == 1:  # compile now, instead of within a learning call, whose time may be limited
            self._update(np.zeros(0, np.int64))

    def _settings(self) -> NetworkOptions:
        return NetworkOptions(*(np.array([getattr(each, name) for each in self.options]) for name in NetworkOptions._fields))

    def _update(self, places: Array) -> list[int]:
        finite, memory = np.zeros(len(places), bool), self.replay.arrays()
        update(
            memory, self._form, self._use_adam, self._stacks, self._columns, self._work,
            self.counts, places, self.drawn(places), self.means, finite,
        )  # fmt: skip
        return [] if finite.all() else places[~finite].tolist()

    def _arrays(self, place: int) -> dict[str, Array]:
        return {name: stack[place].copy() for name, stack in self._stacks._asdict().items()}

    def _set_arrays(self, place: int, arrays: dict[str, Array]) -> None:
        for name, array in arrays.items():
            getattr(self._stacks, name)[place] = array
