"""Conversion of PyTorch states to arrays and plain data, and back."""

from typing import Any

import numpy as np

from esbas.learners.deep.pytorch import torch


def plain(value: Any) -> Any:
    """Convert tensors to arrays and keys to strings."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().copy()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def tensors(value: Any) -> Any:
    """Undo `plain`. The keys of an optimizer's state are integers."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: tensors(item) for key, item in value.items()}
    return [tensors(item) for item in value] if isinstance(value, list) else value
