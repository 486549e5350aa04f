"""Dense networks that are trained together without PyTorch.

One compiled call makes one update of each.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from esbas._internal.columns import Array
from esbas._internal.compiling import compiled, compiled_part, inlined
from esbas.errors import InvalidValueError, require
from esbas.learners.dqn.compiled.dense import (
    Inputs,
    backward,
    find_nonzeros,
    forward,
    values_of_one,
)
from esbas.learners.dqn.compiled.gathering import read_observations, rows_of
from esbas.learners.dqn.formulas import add_rewards, bootstrap, losses, rounds_of, start
from esbas.learners.dqn.group import JointGroup
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.optimizers import MAX_GRADIENT_NORM, adam, norm_of, rmsprop
from esbas.learners.dqn.replay.memory import SharedReplay

_start = compiled_part(start)
_rounds_of = compiled_part(rounds_of)
_add_rewards = compiled_part(add_rewards)
_bootstrap = compiled_part(bootstrap)
_losses = compiled_part(losses)
_norm_of = compiled_part(norm_of)
_adam = compiled_part(adam)
_rmsprop = compiled_part(rmsprop)
# numba would compile one version for a literal 0 and one for a literal 1.
_THIS = np.int64(0)
_NEXT = np.int64(1)


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
    n_steps: Array
    corrected: Array
    trace_decay: Array
    bonus: Array
    sync_every: Array


class InputFormat(NamedTuple):
    """The widths of all layers, and how observations become inputs.

    Inputs are one label, or numbers, as (x - first) / divisor.
    """

    widths: Array
    one_hot: bool
    first: int
    divisor: np.float32


class Workspace(NamedTuple):
    """Arrays for the update of one network, reused for the next one.

    So what is in use fits into the processor's cache.
    """

    inputs: Inputs
    layers: Array  # (rows of all layers after the inputs, B)
    others: Array  # the same for a second network
    slopes: Array  # the same for derivatives
    turned: Array  # (B * widest layer after the inputs,)
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
    indices: Array,
    drawn: Array,
    means: Array,
    finite: Array,
) -> None:
    """Update each of the networks once on its batch.

    Args:
        memory: the arrays of the replay memory.
        form: the inputs of the networks.
        use_adam: whether to use Adam, or RMSprop.
        stacks: the networks, which change.
        options: the options of the networks.
        work: overwritten.
        counts: (K,): the updates that were made so far, which increase.
        indices: (n,): the networks to update.
        drawn: (n, B): their batches, as numbers modulo the capacity.
        means: (K, 3): for the mean loss, value and absolute error of each batch.
        finite: (n,): for whether each update was finite. If not, the weights do not change.
    """
    for n in range(len(indices)):
        k = indices[n]
        rows_of(drawn[n], memory, work.rows)
        _fill_targets(memory, form, stacks, options, work, k)
        loss = _fill_gradient(memory, form, stacks.weights[k], work, means[k])
        norm = _norm_of(work.gradient)
        finite[n] = math.isfinite(norm + loss)
        rate = options.rate[k]
        shrink = MAX_GRADIENT_NORM / max(norm, MAX_GRADIENT_NORM)
        if not finite[n]:
            work.gradient[:] = 0
            rate = 0.0
            shrink = 0.0
        counts[k] += 1
        if use_adam:
            _adam(
                stacks.weights[k],
                work.gradient,
                stacks.first[k],
                stacks.second[k],
                counts[k],
                rate,
                shrink,
            )
        else:
            _rmsprop(stacks.weights[k], work.gradient, stacks.second[k], rate, shrink)
        if counts[k] % options.sync_every[k] == 0:
            # Assigning rows would take 4 s longer to compile.
            for i in range(stacks.weights.shape[1]):
                stacks.target[k, i] = stacks.weights[k, i]


@inlined
def _fill_targets(
    memory: Any, form: InputFormat, stacks: Stacks, options: NetworkOptions, work: Workspace, k: int
) -> None:
    """Fill in the targets of the values in the batch of network k, see `formulas.py`."""
    at = work.at
    who = work.who
    scales = work.scales
    targets = work.targets
    gamma = options.gamma[k]
    bonus = options.bonus[k]
    decay = options.trace_decay[k]
    count = _start(work.rows, at, who, scales, targets)
    rounds, length = _rounds_of(options.n_steps[k], options.corrected[k])
    for number in range(rounds):
        count = _add_rewards(memory, length, gamma, bonus, at, who, scales, targets, count)
        if count == 0:
            return
        read_observations(memory, _NEXT, at, count, form.first, form.divisor, work.inputs.values)
        sparse = find_nonzeros(work.inputs, count)
        values = _values(stacks.target[k], form, work, sparse, count, work.layers)
        choosers = values
        if options.double[k]:
            choosers = _values(stacks.weights[k], form, work, sparse, count, work.others)
        last = number == rounds - 1
        count = _bootstrap(memory, values, choosers, decay, last, at, who, scales, targets, count)


@inlined
def _fill_gradient(
    memory: Any, form: InputFormat, weights: Array, work: Workspace, means: Array
) -> float:
    """Fill in the gradient of the mean loss by the weights, and return this loss."""
    rows = work.rows
    actions = memory.actions
    predicted = work.predicted
    by_predicted = work.by_predicted
    read_observations(memory, _THIS, rows, len(rows), form.first, form.divisor, work.inputs.values)
    sparse = find_nonzeros(work.inputs, len(rows))
    values = _values(weights, form, work, sparse, len(rows), work.layers)
    for i in range(len(rows)):
        predicted[i] = values[actions[rows[i]], i]
    loss, value, error = _losses(predicted, work.targets, by_predicted)
    means[0] = loss
    means[1] = value
    means[2] = error
    by_values = work.slopes[len(work.slopes) - len(values) :]
    by_values[:] = 0
    for i in range(len(rows)):
        by_values[actions[rows[i]], i] = by_predicted[i]
    backward(
        weights, form.widths, form.one_hot, work.inputs, sparse, work.layers, work.slopes,
        work.turned, work.gradient,
    )  # fmt: skip
    return float(means[0])


@inlined
def _values(
    weights: Array, form: InputFormat, work: Workspace, sparse: bool, count: int, layers: Array
) -> Array:
    """Return the values of all actions, (A, B), for the first `count` inputs."""
    return forward(
        weights, form.widths, form.one_hot, work.inputs, sparse, count, layers, work.turned
    )


@compiled
def values_of_many(
    weights: Array, form: InputFormat, observations: Array, work: Workspace
) -> Array:
    """Return the values of all actions, (N, A), for inputs (N, ...).

    As many are computed at a time as a batch has.
    """
    total = len(observations)
    batch = len(work.inputs.values)
    result = np.empty((total, form.widths[-1]), np.float32)
    for done in range(0, total, batch):
        count = min(batch, total - done)
        for i in range(count):
            for j in range(observations.shape[1]):
                work.inputs.values[i, j] = observations[done + i, j]
        sparse = find_nonzeros(work.inputs, count)
        values = _values(weights, form, work, sparse, count, work.layers)
        for i in range(count):
            for j in range(len(values)):
                result[done + i, j] = values[j, i]
    return result


class DenseGroup(JointGroup):
    """Networks without convolutions."""

    def __init__(
        self, replay: SharedReplay, network: NetworkLayout, *, batch_size: int, optimizer: str
    ) -> None:
        super().__init__(replay, network, batch_size=batch_size)
        self._use_adam = optimizer == "adam"
        require(
            network.labels <= 2**24,  # larger ones are no float32
            f"A network must have at most 2^24 labels, but got {network.labels:,}.",
        )
        widths = [network.shapes[0][0]]
        widths += [shape[0] for shape in network.shapes[1::2]]
        one_hot = network.labels > 0
        self._inputs = 1 if one_hot else widths[0]
        self._actions = widths[-1]
        divisor = np.float32(255 if network.bytes else 1)
        self._form = InputFormat(np.array(widths), one_hot, network.first, divisor)
        layers_shape = (sum(widths[1:]), batch_size)
        self._work = Workspace(
            inputs=Inputs(
                values=np.zeros((batch_size, self._inputs), np.float32),
                nonzeros=np.zeros((batch_size, self._inputs), np.int32),
                counts=np.zeros(batch_size, np.int64),
            ),
            layers=np.zeros(layers_shape, np.float32),
            others=np.zeros(layers_shape, np.float32),
            slopes=np.zeros(layers_shape, np.float32),
            turned=np.zeros(batch_size * max(widths[1:]), np.float32),
            gradient=np.zeros(network.size, np.float32),
            rows=np.zeros(batch_size, np.int64),
            at=np.zeros(batch_size, np.int64),
            who=np.zeros(batch_size, np.int64),
            scales=np.zeros(batch_size, np.float32),
            targets=np.zeros(batch_size, np.float32),
            predicted=np.zeros(batch_size, np.float32),
            by_predicted=np.zeros(batch_size, np.float32),
        )
        self._stacks = Stacks(*(np.zeros((0, network.size), np.float32) for _ in Stacks._fields))
        self._columns = self._settings()
        self._observation = np.zeros(self._inputs, np.float32)

    def values(self, index: int, observation: Any) -> Array:
        self.flush()
        inputs = self._observation
        form = self._form
        plain = not form.one_hot and form.divisor == 1
        if not plain:
            observation = self._converted(np.asarray(observation))
        inputs[:] = np.ravel(observation)
        values = np.empty(self._actions, np.float32)
        values_of_one(self._stacks.weights[index], form.widths, form.one_hot, inputs, values)
        return values

    def batch_values(self, index: int, observations: Array) -> Array:
        self.flush()
        rows = np.asarray(observations).reshape(-1, self._inputs)
        inputs = self._converted(rows).astype(np.float32)
        return values_of_many(self._stacks.weights[index], self._form, inputs, self._work)

    def _converted(self, observations: Array) -> Array:
        """Return observations as inputs.

        Labels are checked, because compiled functions do not check indices.
        """
        if not self._form.one_hot:
            return observations.astype(np.float32) / self._form.divisor
        labels = observations - self._form.first
        if not ((labels >= 0) & (labels < self.network.labels)).all():
            raise InvalidValueError(
                f"Observations must be in {self.replay.observation_space}, "
                f"but got {observations}: fix the environment."
            )
        return labels

    def _add(self, weights: Array) -> None:
        zeros = np.zeros_like(weights)
        old = self._stacks
        self._stacks = Stacks(
            weights=np.concatenate([old.weights, [weights]]),
            target=np.concatenate([old.target, [weights]]),
            first=np.concatenate([old.first, [zeros]]),
            second=np.concatenate([old.second, [zeros]]),
        )
        self._columns = self._settings()
        if len(self.options) == 1:
            self._compile()

    def _compile(self) -> None:
        """Compile now, instead of within a learning call, whose time may be limited.

        Processes that are started afterwards load the result, instead of compiling the same.
        """
        self._update(np.zeros(0, np.int64))
        form = self._form
        inputs = np.zeros_like(self._observation)
        values = np.empty(self._actions, np.float32)
        values_of_one(self._stacks.weights[0], form.widths, form.one_hot, inputs, values)

    def _settings(self) -> NetworkOptions:
        columns = {}
        for name in NetworkOptions._fields:
            columns[name] = np.array([getattr(each, name) for each in self.options])
        return NetworkOptions(**columns)

    def _update(self, indices: Array) -> list[int]:
        finite = np.zeros(len(indices), bool)
        memory = self.replay.arrays()
        update(
            memory, self._form, self._use_adam, self._stacks, self._columns, self._work,
            self.counts, indices, self.drawn(indices), self.means, finite,
        )  # fmt: skip
        return [] if finite.all() else indices[~finite].tolist()

    def _arrays(self, index: int) -> dict[str, Array]:
        return {name: stack[index].copy() for name, stack in self._stacks._asdict().items()}

    def _set_arrays(self, index: int, arrays: dict[str, Array]) -> None:
        for name, array in arrays.items():
            getattr(self._stacks, name)[index] = array
