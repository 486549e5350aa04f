"""Imports PyTorch with one thread.

More threads do not speed up small networks, and they slow down parallel runs.
"""

from esbas.errors import InvalidValueError

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Convolutions and devices other than the CPU need PyTorch, but it is not installed: "
        "pip install 'esbas[deep]'."
    ) from error

torch.set_num_threads(1)

__all__ = ["find_device", "torch"]


def find_device(name: str) -> torch.device:
    """Return the device with this name, such as "cpu", "cuda", "cuda:1" or "mps".

    "auto" is "cuda" if there is one, otherwise "cpu".
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    counts = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    if kind not in counts or not (number == "" or number.isdecimal()):
        raise InvalidValueError(
            f"`device` must be cpu, cuda, cuda:N, mps or auto, but got {name!r}: use cpu or auto."
        )
    if int(number or 0) >= counts[kind]:
        raise InvalidValueError(
            f"`device` must be available, but PyTorch finds no {name!r} on this machine: "
            "use cpu or auto."
        )
    return torch.device(name)
