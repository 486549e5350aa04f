"""Separate random generators for libraries that draw from the global ones of NumPy and PyTorch."""

import copy
from types import TracebackType
from typing import Any

import numpy as np

from esbas.errors import SaveFileError
from esbas.learners.dqn.on_pytorch.pytorch import torch


class PrivateGenerators:
    """Replaces the global generators of NumPy and PyTorch within a `with` block.

    They are replaced by those of one learner, which start as copies of the global ones.
    """

    def __init__(self) -> None:
        (bits, state), self._torch = _global_generators()
        self._numpy = (copy.deepcopy(bits), state)

    def __enter__(self) -> None:
        self._numpy, self._torch = _exchange(self._numpy, self._torch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._numpy, self._torch = _exchange(self._numpy, self._torch)

    def state_dict(self) -> dict[str, Any]:
        bits, state = self._numpy
        normal = {"has_gauss": state["has_gauss"], "gauss": state["gauss"]}
        return {"numpy": bits.state | normal, "torch": self._torch.numpy().copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        current = self._torch.numpy()
        given = state["torch"]
        if not (
            isinstance(given, np.ndarray)
            and given.dtype == current.dtype
            and given.shape == current.shape
        ):
            raise SaveFileError(
                f"A saved state of PyTorch's generator must have {current.size} bytes, "
                "but does not: use the version of PyTorch that saved it."
            )
        bits, _ = self._numpy
        bits.state = state["numpy"]
        self._numpy = (bits, dict(state["numpy"]))
        self._torch = torch.from_numpy(np.array(state["torch"]))


def _global_generators() -> tuple[tuple[Any, dict[str, Any]], torch.Tensor]:
    """Return NumPy's bit generator with the state of its legacy interface, and PyTorch's state."""
    # `get_bit_generator` is documented, but missing in NumPy's types.
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    return (bits, state), torch.get_rng_state()


def _exchange(
    numpy: tuple[Any, dict[str, Any]], torch_state: torch.Tensor
) -> tuple[tuple[Any, dict[str, Any]], torch.Tensor]:
    """Install generators and return the previous ones.

    For NumPy, replacing the generator is faster than copying its state.
    """
    former = _global_generators()
    bits, state = numpy
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined]
    if state["has_gauss"]:  # a cached normal number, which `set_bit_generator` drops
        with_gauss = bits.state | {"has_gauss": 1, "gauss": state["gauss"]}
        np.random.set_state(with_gauss)  # noqa: NPY002
    torch.set_rng_state(torch_state)
    return former
