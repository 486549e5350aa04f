"""Networks on PyTorch."""
