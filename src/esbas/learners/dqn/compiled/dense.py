"""Dense networks with ReLU as compiled functions of flat weights: values and their gradients.

`widths` are those of all layers, inputs and actions included. Layers are stored one below the other
in an array (rows, B), one column per observation, so that all loops run along the batch and
vectorize, however narrow a layer is. If `one_hot`, the input is a single row of labels, and the
first layer looks up rows of its matrix. Sums are made in a fixed order, without a
library: results do not depend on the number of threads or on the other columns.
"""

import numpy as np

from esbas._internal.columns import Array
from esbas._internal.compiling import compiled, compiled_part, inlined

ZERO = np.float32(0)


@compiled_part
def add_product(left: Array, right: Array, out: Array, count: int) -> None:
    """Add left @ right to `out`, for the first `count` columns.

    Four rows of `out` and four of `right` are processed at a time.
    """
    rows, inner = left.shape
    full = rows // 4 * 4
    whole = inner // 4 * 4
    for row in range(0, full, 4):
        for k in range(0, whole, 4):
            a0 = left[row, k]
            a1 = left[row, k + 1]
            a2 = left[row, k + 2]
            a3 = left[row, k + 3]
            b0 = left[row + 1, k]
            b1 = left[row + 1, k + 1]
            b2 = left[row + 1, k + 2]
            b3 = left[row + 1, k + 3]
            c0 = left[row + 2, k]
            c1 = left[row + 2, k + 1]
            c2 = left[row + 2, k + 2]
            c3 = left[row + 2, k + 3]
            d0 = left[row + 3, k]
            d1 = left[row + 3, k + 1]
            d2 = left[row + 3, k + 2]
            d3 = left[row + 3, k + 3]
            for j in range(count):
                w0 = right[k, j]
                w1 = right[k + 1, j]
                w2 = right[k + 2, j]
                w3 = right[k + 3, j]
                out[row, j] += a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
                out[row + 1, j] += b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
                out[row + 2, j] += c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3
                out[row + 3, j] += d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
        for k in range(whole, inner):
            for i in range(row, row + 4):
                factor = left[i, k]
                for j in range(count):
                    out[i, j] += factor * right[k, j]
    for row in range(full, rows):
        _add_row(left[row], right, out[row], count)


@inlined
def _add_row(left: Array, right: Array, out: Array, count: int) -> None:
    """Do the same for one row, with the same order of additions."""
    whole = len(left) // 4 * 4
    for k in range(0, whole, 4):
        a0 = left[k]
        a1 = left[k + 1]
        a2 = left[k + 2]
        a3 = left[k + 3]
        for j in range(count):
            out[j] += (
                a0 * right[k, j]
                + a1 * right[k + 1, j]
                + a2 * right[k + 2, j]
                + a3 * right[k + 3, j]
            )
    for k in range(whole, len(left)):
        a0 = left[k]
        for j in range(count):
            out[j] += a0 * right[k, j]


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
            _add_row(x, matrix, out, outputs)
        offset = bias + outputs
        if layer < len(widths) - 2:
            for j in range(outputs):
                out[j] = ZERO if out[j] < ZERO else out[j]  # keeps NaN
        x = out


@compiled_part
def forward(weights: Array, widths: Array, one_hot: bool, layers: Array, count: int) -> Array:
    """Fill in all layers after the inputs and return the last layer, (A, B).

    This is done for the first `count` columns, or a few more.
    """
    start = 0
    end = 1 if one_hot else widths[0]
    offset = 0
    count = min((count + 7) // 8 * 8, layers.shape[1])  # whole vectors are faster
    for layer in range(len(widths) - 1):
        inputs = widths[layer]
        outputs = widths[layer + 1]
        bias = offset + inputs * outputs
        matrix = weights[offset:bias].reshape((inputs, outputs))
        x = layers[start:end]
        out = layers[end : end + outputs]
        for j in range(outputs):
            for i in range(count):
                out[j, i] = weights[bias + j]
        if layer == 0 and one_hot:
            for i in range(count):
                label = int(x[0, i])
                for j in range(outputs):
                    out[j, i] += matrix[label, j]
        else:
            add_product(matrix.T[::1], x, out, count)
        if layer < len(widths) - 2:
            for j in range(outputs):
                for i in range(count):
                    out[j, i] = ZERO if out[j, i] < ZERO else out[j, i]  # keeps NaN
        start = end
        end = end + outputs
        offset = bias + outputs
    return layers[start:end]


@compiled_part
def backward(
    weights: Array,
    widths: Array,
    one_hot: bool,
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
        layers: as `forward` left them.
        slopes: (rows, B): the derivatives by all layers. Those by the last layer are given.
        turned: (B * widest layer,): room for the transposed derivatives by one layer.
        gradient: the result.
    """
    batch = layers.shape[1]
    end = len(layers)
    offset = len(weights)
    for layer in range(len(widths) - 2, -1, -1):
        inputs = widths[layer]
        outputs = widths[layer + 1]
        start = end - outputs
        bias = offset - outputs
        offset = bias - inputs * outputs
        by_outputs = slopes[start:end]
        transposed = turned[: batch * outputs].reshape((batch, outputs))
        for j in range(outputs):
            for i in range(batch):
                transposed[i, j] = by_outputs[j, i]
        by_matrix = gradient[offset:bias].reshape((inputs, outputs))
        by_bias = gradient[bias : bias + outputs]
        gradient[offset : bias + outputs] = 0
        for i in range(batch):
            for j in range(outputs):
                by_bias[j] += transposed[i, j]
        if layer == 0 and one_hot:
            for i in range(batch):
                label = int(layers[0, i])
                for j in range(outputs):
                    by_matrix[label, j] += transposed[i, j]
            return
        x = layers[start - inputs : start]
        by_x = slopes[start - inputs : start]
        add_product(x[::1], transposed, by_matrix, outputs)
        if layer > 0:
            by_x[:] = 0
            matrix = weights[offset:bias].reshape((inputs, outputs))
            add_product(matrix[::1], by_outputs, by_x, batch)
            for j in range(inputs):
                for i in range(batch):
                    by_x[j, i] = by_x[j, i] if x[j, i] > 0 else ZERO
        end = start
