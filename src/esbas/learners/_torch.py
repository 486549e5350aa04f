"""PyTorch for the learners that need it, with one thread: small networks gain nothing from more, and runs side by side lose."""

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("deep learners need PyTorch, but it is not installed: pip install 'esbas[deep]'") from error

torch.set_num_threads(1)

__all__ = ["torch"]
