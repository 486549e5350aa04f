"""Conversion of PyTorch states to arrays and plain data, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from esbas.errors import SaveFileError
from esbas.learners.dqn.on_pytorch.pytorch import torch

NUMBER = int | float | np.number | np.bool_


def plain(value: Any) -> Any:
    """Convert tensors to arrays and keys to strings."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().copy()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def require_names(part: str, state: Any, expected: Mapping[str, Any]) -> None:
    """Raise a SaveFileError unless the state is a dictionary with the expected keys."""
    if not isinstance(state, dict) or set(state) != set(expected):
        found = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise SaveFileError(
            f"The {part} of a saved learner must be {sorted(expected)}, but are {found}: "
            "build the learner as it was."
        )


def require_numbers(part: str, state: Any) -> None:
    """Raise a SaveFileError unless the state consists of numbers and arrays of numbers.

    They may be in dictionaries and lists.
    """
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, list):
        for item in state:
            require_numbers(part, item)
        return
    if state is None or isinstance(state, NUMBER):
        return
    if isinstance(state, np.ndarray) and state.dtype.kind in "biuf":
        return
    raise SaveFileError(
        f"The {part} of a saved learner must be numbers, but contain the {type(state).__name__} "
        f"{str(state)[:80]!r}: go back to an earlier copy."
    )


def tensors(value: Any) -> Any:
    """Undo `plain`. The keys of an optimizer's state are integers."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: tensors(item) for key, item in value.items()}
    if isinstance(value, list):
        return [tensors(item) for item in value]
    return value
