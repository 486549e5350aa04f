"""Separate random generators for libraries that draw from the global ones of NumPy and PyTorch."""

import copy
from types import TracebackType
from typing import Any

import numpy as np

from esbas.errors import SaveFileError
from esbas.learners.deep.pytorch import torch


class PrivateGenerators:
    """Replaces the global generators of NumPy and PyTorch by those of one member within a `with` block.

    A member's generators start as copies of the global ones.
    """

    def __init__(self) -> None:
        (bits, state), self._torch = _global_generators()
        self._numpy = copy.deepcopy(bits), state

    def __enter__(self) -> None:
        self._numpy, self._torch = _exchange(self._numpy, self._torch)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._numpy, self._torch = _exchange(self._numpy, self._torch)

    def state_dict(self) -> dict[str, Any]:
        bits, state = self._numpy
        normal = {"has_gauss": state["has_gauss"], "gauss": state["gauss"]}
        return {"numpy": bits.state | normal, "torch": self._torch.numpy().copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        current, given = self._torch.numpy(), state["torch"]
        alike = isinstance(given, np.ndarray) and (given.dtype, given.shape) == (current.dtype, current.shape)
        if not alike:
            raise SaveFileError(
                f"a saved state of PyTorch's generator must be {current.size} bytes, but is another: use the same PyTorch"
            )
        bits, _ = self._numpy
        bits.state = state["numpy"]
        self._numpy, self._torch = (bits, dict(state["numpy"])), torch.from_numpy(np.array(state["torch"]))


def _global_generators() -> tuple[tuple[Any, dict[str, Any]], torch.Tensor]:
    """NumPy's bit generator with the state of its legacy interface, and PyTorch's state."""
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]  # documented, but missing in NumPy's types
    return (bits, np.random.get_state(legacy=False)), torch.get_rng_state()  # noqa: NPY002  # the global generator


def _exchange(numpy: tuple[Any, dict[str, Any]], torch_state: torch.Tensor) -> tuple[tuple[Any, dict[str, Any]], torch.Tensor]:
    """Install generators and return the previous ones. For NumPy, replacing the generator is faster than copying its state."""
    former, (bits, state) = _global_generators(), numpy
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined]  # as above
    if state["has_gauss"]:  # a cached normal number, which set_bit_generator drops
        np.random.set_state(bits.state | {"has_gauss": 1, "gauss": state["gauss"]})  # noqa: NPY002  # the global generator
    torch.set_rng_state(torch_state)
    return former
