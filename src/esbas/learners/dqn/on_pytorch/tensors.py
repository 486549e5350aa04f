"""Conversion of PyTorch states to arrays and plain data, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from esbas.errors import SaveFileError
from esbas.learners.deep.pytorch import torch


def plain(value: Any) -> Any:
    """Convert tensors to arrays and keys to strings."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().copy()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


NUMBER = int | float | np.number | np.bool_


def require_names(part: str, state: Any, expected: Mapping[str, Any]) -> None:
    """Raise a SaveFileError unless the state is a dictionary with the expected keys."""
    if not isinstance(state, dict) or set(state) != set(expected):
        found = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise SaveFileError(
            f"the {part} of a saved learner must be {sorted(expected)}, but are {found}: build the learner as it was"
        )


def require_numbers(part: str, state: Any) -> None:
    """Raise a SaveFileError unless the state consists of numbers and arrays of numbers, in dictionaries and lists."""
    if isinstance(state, dict | list):
        for item in state.values() if isinstance(state, dict) else state:
            require_numbers(part, item)
    elif not (state is None or isinstance(state, NUMBER) or (isinstance(state, np.ndarray) and state.dtype.kind in "biuf")):
        found = f"{type(state).__name__} {str(state)[:80]!r}"
        raise SaveFileError(f"the {part} of a saved learner must be numbers, but contain the {found}: go back to an earlier copy")


def tensors(value: Any) -> Any:
    """Undo `plain`. The keys of an optimizer's state are integers."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: tensors(item) for key, item in value.items()}
    return [tensors(item) for item in value] if isinstance(value, list) else value
