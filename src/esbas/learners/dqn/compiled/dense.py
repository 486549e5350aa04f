"""Dense networks with ReLU as compiled functions of flat weights: values and their gradients.

`widths` are those of all layers, inputs and actions included. Inputs are (B, inputs), one row per
observation, as a replay memory has them. If `one_hot`, they are labels, (B, 1), and the first layer
looks up rows of its matrix. All other layers are stored one below the other in an array (rows, B),
one column per observation, so that loops run along the batch and vectorize, however narrow a layer
is.

Each sum is made in the order of its terms, by `multiply_add`, without a library. So results depend
neither on the number of threads, nor on the other observations of the batch, nor on whether terms
that are zero are left out.
"""

from typing import NamedTuple

import numpy as np

from esbas._internal.columns import Array
from esbas._internal.compiling import compiled, compiled_part, inlined
from esbas._internal.lanes import (
    LANES,
    MANY_REGISTERS,
    TILE,
    load,
    multiply_add,
    store,
    transpose_tile,
)

ZERO = np.float32(0)


class Inputs(NamedTuple):
    """The inputs of a network for B observations, see `find_nonzeros`."""

    values: Array  # (B, inputs); labels: (B, 1)
    nonzeros: Array  # (B, inputs), int32: where the values of a row are not zero
    counts: Array  # (B,): how many of `nonzeros` are in use


@compiled_part
def find_nonzeros(inputs: Inputs, count: int) -> bool:
    """Return whether the first `count` observations have so many zeros that skipping them pays.

    If so, fill in where the others are.
    """
    values = inputs.values
    nonzeros = inputs.nonzeros
    width = values.shape[1]
    found = 0
    for i in range(count):
        for j in range(width):
            found += values[i, j] != ZERO
    if found * 8 > count * width:
        return False
    for i in range(count):
        found = 0
        for j in range(width):
            nonzeros[i, found] = j
            found += values[i, j] != ZERO  # without a branch, which nothing could predict
        inputs.counts[i] = found
    return True


@compiled_part
def _add_eight_rows(left: Array, right: Array, out: Array, row: int, column: int) -> None:
    """Add left @ right to eight rows and LANES columns of `out`, whose sums stay in registers."""
    sum0 = load(out, row, column)
    sum1 = load(out, row + 1, column)
    sum2 = load(out, row + 2, column)
    sum3 = load(out, row + 3, column)
    sum4 = load(out, row + 4, column)
    sum5 = load(out, row + 5, column)
    sum6 = load(out, row + 6, column)
    sum7 = load(out, row + 7, column)
    for k in range(left.shape[1]):
        term = load(right, k, column)
        sum0 = multiply_add(left[row, k], term, sum0)
        sum1 = multiply_add(left[row + 1, k], term, sum1)
        sum2 = multiply_add(left[row + 2, k], term, sum2)
        sum3 = multiply_add(left[row + 3, k], term, sum3)
        sum4 = multiply_add(left[row + 4, k], term, sum4)
        sum5 = multiply_add(left[row + 5, k], term, sum5)
        sum6 = multiply_add(left[row + 6, k], term, sum6)
        sum7 = multiply_add(left[row + 7, k], term, sum7)
    store(sum0, out, row, column)
    store(sum1, out, row + 1, column)
    store(sum2, out, row + 2, column)
    store(sum3, out, row + 3, column)
    store(sum4, out, row + 4, column)
    store(sum5, out, row + 5, column)
    store(sum6, out, row + 6, column)
    store(sum7, out, row + 7, column)


@compiled_part
def _add_four_rows(left: Array, right: Array, out: Array, row: int, column: int) -> None:
    """Do the same for four rows."""
    sum0 = load(out, row, column)
    sum1 = load(out, row + 1, column)
    sum2 = load(out, row + 2, column)
    sum3 = load(out, row + 3, column)
    for k in range(left.shape[1]):
        term = load(right, k, column)
        sum0 = multiply_add(left[row, k], term, sum0)
        sum1 = multiply_add(left[row + 1, k], term, sum1)
        sum2 = multiply_add(left[row + 2, k], term, sum2)
        sum3 = multiply_add(left[row + 3, k], term, sum3)
    store(sum0, out, row, column)
    store(sum1, out, row + 1, column)
    store(sum2, out, row + 2, column)
    store(sum3, out, row + 3, column)


# As many sums as registers hold. The other function is not compiled.
_ROWS = 8 if MANY_REGISTERS else 4
_add_rows = _add_eight_rows if MANY_REGISTERS else _add_four_rows


@compiled_part
def _add_strip(left: Array, right: Array, out: Array, column: int) -> None:
    """Add left @ right to LANES columns of `out`."""
    rows, inner = left.shape
    whole = rows // _ROWS * _ROWS
    for row in range(0, whole, _ROWS):
        _add_rows(left, right, out, row, column)
    for row in range(whole, rows):
        total = load(out, row, column)
        for k in range(inner):
            total = multiply_add(left[row, k], load(right, k, column), total)
        store(total, out, row, column)


@compiled_part
def add_product(left: Array, right: Array, out: Array, count: int) -> None:
    """Add left @ right to `out`, for the first `count` columns."""
    whole = count // LANES * LANES
    for column in range(0, whole, LANES):
        _add_strip(left, right, out, column)
    if whole < count:
        # Vectors would reach beyond the last column, so the remaining columns are copied.
        right_strip = np.zeros((len(right), LANES), np.float32)
        out_strip = np.zeros((len(out), LANES), np.float32)
        _copy(right, whole, right_strip, 0, count - whole)
        _copy(out, whole, out_strip, 0, count - whole)
        _add_strip(left, right_strip, out_strip, 0)
        _copy(out_strip, 0, out, whole, count - whole)


@compiled_part
def _copy(source: Array, column: int, out: Array, to: int, count: int) -> None:
    """Copy `count` columns."""
    for i in range(len(source)):
        for j in range(count):
            out[i, to + j] = source[i, column + j]


@inlined
def _add_row(left: Array, right: Array, out: Array) -> None:
    """Add left @ right to `out` for one row, as `add_product` does."""
    whole = len(left) // 4 * 4
    for k in range(0, whole, 4):
        for j in range(len(out)):
            total = multiply_add(left[k], right[k, j], out[j])
            total = multiply_add(left[k + 1], right[k + 1, j], total)
            total = multiply_add(left[k + 2], right[k + 2, j], total)
            out[j] = multiply_add(left[k + 3], right[k + 3, j], total)
    for k in range(whole, len(left)):
        _add_multiple(left[k], right[k], out)


@inlined
def _add_multiple(factor: np.float32, row: Array, out: Array) -> None:
    """Add factor * row to `out`."""
    for j in range(len(out)):
        out[j] = multiply_add(factor, row[j], out[j])


@compiled
def values_of_one(
    weights: Array, widths: Array, one_hot: bool, observation: Array, values: Array
) -> None:
    """Fill in the values of all actions, (A,), for one observation.

    They are bit-identical to those in a batch.
    """
    x = observation
    offset = 0
    for layer in range(len(widths) - 1):
        inputs = widths[layer]
        outputs = widths[layer + 1]
        bias = offset + inputs * outputs
        matrix = weights[offset:bias].reshape((inputs, outputs))
        out = values if layer == len(widths) - 2 else np.empty(outputs, np.float32)
        for j in range(outputs):
            out[j] = weights[bias + j]
            if layer == 0 and one_hot:
                out[j] += matrix[int(x[0]), j]
        if layer > 0 or not one_hot:
            _add_row(x, matrix, out)
        offset = bias + outputs
        if layer < len(widths) - 2:
            for j in range(outputs):
                out[j] = ZERO if out[j] < ZERO else out[j]  # keeps NaN
        x = out


@compiled_part
def forward(
    weights: Array,
    widths: Array,
    one_hot: bool,
    inputs: Inputs,
    sparse: bool,
    count: int,
    layers: Array,
    turned: Array,
) -> Array:
    """Fill in all layers after the inputs and return the last layer, (A, B).

    This is done for the first `count` observations, or a few more.

    Args:
        weights: (size,).
        widths: of the layers.
        one_hot: whether the inputs are labels.
        inputs: of all observations.
        sparse: whether to skip inputs that are zero.
        count: how many observations matter.
        layers: (rows, B): the results.
        turned: (B * widest layer after the inputs,): room for a layer.
    """
    count = min((count + LANES - 1) // LANES * LANES, layers.shape[1])  # whole vectors are faster
    start = 0
    end = 0
    offset = 0
    for layer in range(len(widths) - 1):
        rows = widths[layer]
        outputs = widths[layer + 1]
        bias = offset + rows * outputs
        matrix = weights[offset:bias].reshape((rows, outputs))
        biases = weights[bias : bias + outputs]
        out = layers[end : end + outputs]
        if layer == 0:
            first = turned[: count * outputs].reshape((count, outputs))
            _fill_first(matrix, biases, one_hot, inputs, sparse, first)
            transpose(first, out)
        else:
            for j in range(outputs):
                for i in range(count):
                    out[j, i] = biases[j]
            add_product(matrix.T[::1], layers[start:end], out, count)
        if layer < len(widths) - 2:
            for j in range(outputs):
                for i in range(count):
                    out[j, i] = ZERO if out[j, i] < ZERO else out[j, i]  # keeps NaN
        start = end
        end = end + outputs
        offset = bias + outputs
    return layers[start:end]


@compiled_part
def _fill_first(
    matrix: Array, biases: Array, one_hot: bool, inputs: Inputs, sparse: bool, out: Array
) -> None:
    """Fill in the first layer after the inputs, with a row per observation."""
    count, outputs = out.shape
    values = inputs.values
    for i in range(count):
        for j in range(outputs):
            out[i, j] = biases[j]
    if one_hot:
        for i in range(count):
            label = int(values[i, 0])
            for j in range(outputs):
                out[i, j] += matrix[label, j]
    elif sparse:
        for i in range(count):
            for n in range(inputs.counts[i]):
                k = inputs.nonzeros[i, n]
                _add_multiple(values[i, k], matrix[k], out[i])
    else:
        add_product(values[:count][::1], matrix, out, outputs)


@compiled_part
def transpose(source: Array, out: Array) -> None:
    """Write an array to the first columns of `out`, transposed."""
    rows, columns = source.shape
    for row in range(0, rows, TILE):
        for column in range(0, columns, TILE):
            if row + TILE <= rows and column + TILE <= columns:
                transpose_tile(source, row, column, out)
                continue
            for i in range(row, min(row + TILE, rows)):
                for j in range(column, min(column + TILE, columns)):
                    out[j, i] = source[i, j]


@compiled_part
def backward(
    weights: Array,
    widths: Array,
    one_hot: bool,
    inputs: Inputs,
    sparse: bool,
    layers: Array,
    slopes: Array,
    turned: Array,
    gradient: Array,
) -> None:
    """Compute the gradient by all weights, (size,), after `forward` of all columns.

    Args:
        weights: (size,).
        widths: of the layers.
        one_hot: whether the inputs are labels.
        inputs: as `forward` used them.
        sparse: whether to skip inputs that are zero.
        layers: as `forward` left them.
        slopes: (rows, B): the derivatives by all layers. Those by the last layer are given.
        turned: (B * widest layer after the inputs,): room for the transposed derivatives by one
            layer.
        gradient: the result.
    """
    batch = layers.shape[1]
    end = len(layers)
    offset = len(weights)
    gradient[:] = 0
    for layer in range(len(widths) - 2, -1, -1):
        rows = widths[layer]
        outputs = widths[layer + 1]
        start = end - outputs
        bias = offset - outputs
        offset = bias - rows * outputs
        by_outputs = slopes[start:end]
        transposed = turned[: batch * outputs].reshape((batch, outputs))
        transpose(by_outputs, transposed)
        by_matrix = gradient[offset:bias].reshape((rows, outputs))
        by_bias = gradient[bias : bias + outputs]
        for i in range(batch):
            for j in range(outputs):
                by_bias[j] += transposed[i, j]
        if layer == 0:
            _add_by_first(one_hot, inputs, sparse, transposed, by_matrix)
            return
        x = layers[start - rows : start]
        add_product(x[::1], transposed, by_matrix, outputs)
        by_x = slopes[start - rows : start]
        by_x[:] = 0
        matrix = weights[offset:bias].reshape((rows, outputs))
        add_product(matrix[::1], by_outputs, by_x, batch)
        for j in range(rows):
            for i in range(batch):
                by_x[j, i] = by_x[j, i] if x[j, i] > ZERO else ZERO
        end = start


@compiled_part
def _add_by_first(
    one_hot: bool, inputs: Inputs, sparse: bool, by_outputs: Array, by_matrix: Array
) -> None:
    """Add the derivatives by the first matrix, given those by its outputs, (B, outputs)."""
    batch, outputs = by_outputs.shape
    values = inputs.values
    if one_hot:
        for i in range(batch):
            label = int(values[i, 0])
            for j in range(outputs):
                by_matrix[label, j] += by_outputs[i, j]
    elif sparse:
        for i in range(batch):
            for n in range(inputs.counts[i]):
                k = inputs.nonzeros[i, n]
                _add_multiple(values[i, k], by_outputs[i], by_matrix[k])
    else:
        add_product(values.T[::1], by_outputs, by_matrix, outputs)
