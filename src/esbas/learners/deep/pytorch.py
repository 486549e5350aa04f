"""Imports PyTorch with one thread: more threads do not speed up small networks, and they slow down parallel runs."""

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("deep learners need PyTorch, but it is not installed: pip install 'esbas[deep]'") from error

torch.set_num_threads(1)

__all__ = ["torch"]
