"""Off-policy algorithms of Stable-Baselines3 and sb3-contrib as members of a portfolio."""

from importlib import import_module

try:  # before the other modules, which also need PyTorch: its extra would not be enough
    import_module("stable_baselines3")
    import_module("sb3_contrib")
except ModuleNotFoundError as error:
    problem = "members of Stable-Baselines3 need it, but it is not installed"
    raise ModuleNotFoundError(f"{problem}: pip install 'esbas[sb3]'") from error
