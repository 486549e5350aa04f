"""Off-policy algorithms of Stable-Baselines3 and sb3-contrib as learners of a portfolio."""

from importlib import import_module

# Before the other modules, which also need PyTorch: its extra would not be enough.
try:
    import_module("stable_baselines3")
    import_module("sb3_contrib")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Learners of Stable-Baselines3 need it, but it is not installed: pip install 'esbas[sb3]'."
    ) from error
