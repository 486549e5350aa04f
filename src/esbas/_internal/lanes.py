"""Vectors of float32 for compiled functions, which stay in the registers of the processor.

numba vectorizes loops, but it stores the sums of an inner loop to memory and loads them again in
the next round of the outer loop. Functions that name their vectors avoid this.

`multiply_add` rounds once where the processor can do so, and that is the same for one number as for
each number of a vector. So results depend on the type of the processor, and not on LANES.
"""

from collections.abc import Callable
from typing import Any

from esbas._internal import compiling  # noqa: F401 - sets what numba reads when it is imported

# isort: split
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import make_array

# These have no types, or not those of all arguments.
_intrinsic: Any = intrinsic
_Model: Any = models.PrimitiveModel
_tools: Any = cgutils
_make_array: Any = make_array

# A vector is two registers of the processor. With AVX-512, there are 32 registers, otherwise 16.
MANY_REGISTERS = bool(binding.get_host_cpu_features().get("avx512f", False))
LANES = 32 if MANY_REGISTERS else 16
TILE = 8  # rows and columns that `transpose_tile` transposes

_NUMBER = ir.FloatType()
_VECTOR = ir.VectorType(_NUMBER, LANES)
_INDEX = ir.IntType(32)
_TILE_ROW = ir.VectorType(_NUMBER, TILE)
_ORDER = ir.VectorType(_INDEX, TILE)
# These interleave the first halves of two vectors, or the second ones.
_LOWER_HALVES = ir.Constant(_ORDER, [0, 8, 1, 9, 2, 10, 3, 11])
_UPPER_HALVES = ir.Constant(_ORDER, [4, 12, 5, 13, 6, 14, 7, 15])
_BYTES = 4  # of a number: arrays are aligned to this, and not to vectors


class _Lanes(types.Type):
    """The type of a vector of LANES numbers."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({LANES})")


@register_model(_Lanes)
class _LanesModel(_Model):  # type: ignore[misc]
    """How numba stores such a vector."""

    def __init__(self, manager: Any, lanes: Any) -> None:
        super().__init__(manager, lanes, _VECTOR)


_lanes = _Lanes()


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for compiled functions, given one that returns its types and its code."""
    made: Callable[..., Any] = _intrinsic(function)
    return made


@_instruction
def load(_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Return array[row, column : column + LANES]. The rows of the array must be contiguous."""
    del row, column
    signature = _lanes(array, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=_BYTES)

    return signature, generate


@_instruction
def store(_context: Any, lanes: Any, array: Any, row: Any, column: Any) -> Any:
    """Assign a vector to array[row, column : column + LANES], see `load`."""
    del row, column
    signature = types.void(lanes, array, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, *place = arguments
        builder.store(vector, _pointer(context, builder, signature.args[1], *place), align=_BYTES)
        return context.get_dummy_value()

    return signature, generate


@_instruction
def multiply_add(_context: Any, factor: Any, term: Any, total: Any) -> Any:
    """Return factor * term + total. The factor is a number, and the others are both vectors or not.

    It is rounded once, or twice if the processor has no such instruction.
    """
    del factor, total
    signature = term(types.float32, term, term)
    is_vector = isinstance(term, _Lanes)
    kind = _VECTOR if is_vector else _NUMBER
    name = f"llvm.fmuladd.v{LANES}f32" if is_vector else "llvm.fmuladd.f32"

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        factor, term, total = arguments
        if is_vector:
            factor = _repeated(builder, factor)
        function_type = ir.FunctionType(kind, [kind, kind, kind])
        function = _tools.get_or_insert_function(builder.module, function_type, name)
        return builder.call(function, [factor, term, total])

    return signature, generate


@_instruction
def transpose_tile(_context: Any, source: Any, row: Any, column: Any, out: Any) -> Any:
    """Transpose TILE rows and columns: out[column + j, row + i] = source[row + i, column + j].

    The rows of both arrays must be contiguous.
    """
    del row, column
    signature = types.void(source, types.intp, types.intp, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, row, column, out = arguments
        vectors = []
        for i in range(TILE):
            place = source, builder.add(row, row.type(i)), column
            pointer = _pointer(context, builder, signature.args[0], *place, vector=_TILE_ROW)
            vectors.append(builder.load(pointer, align=_BYTES))
        half = TILE // 2
        for _ in range(TILE.bit_length() - 1):
            # Each round interleaves one more bit of the number of a row with those of a column.
            pairs = [(vectors[i], vectors[i + half]) for i in range(half)]
            vectors = [
                builder.shuffle_vector(*pair, order)
                for pair in pairs
                for order in (_LOWER_HALVES, _UPPER_HALVES)
            ]
        for j in range(TILE):
            place = out, builder.add(column, column.type(j)), row
            pointer = _pointer(context, builder, signature.args[3], *place, vector=_TILE_ROW)
            builder.store(vectors[j], pointer, align=_BYTES)
        return context.get_dummy_value()

    return signature, generate


def _pointer(
    context: Any,
    builder: Any,
    array_type: Any,
    array: Any,
    row: Any,
    column: Any,
    *,
    vector: Any = _VECTOR,
) -> Any:
    """Return the address of the vector that begins at array[row, column]."""
    parts = _make_array(array_type)(context, builder, array)
    bytes_per_row, _ = _tools.unpack_tuple(builder, parts.strides)
    in_row = builder.mul(column, column.type(_BYTES))
    offset = builder.add(builder.mul(row, bytes_per_row), in_row)
    return _tools.pointer_add(builder, parts.data, offset, vector.as_pointer())


def _repeated(builder: Any, number: Any) -> Any:
    """Return a vector of equal numbers."""
    unknown = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(unknown, number, _INDEX(0))
    zeros = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(first, unknown, zeros)
