"""What the last digits of a result depend on besides the seed: versions, and the type of the CPU."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = "esbas", "numpy", "scipy", "numba", "llvmlite", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "ale-py"
_VECTOR_UNITS = "sse4_2", "avx", "fma"  # how the names of those CPU features begin that change the order of sums


@cache
def describe_machine() -> dict[str, str]:
    """Versions, a digest of the source of esbas, and the type of the CPU, of the machine that runs this process."""
    found = {"Python": platform.python_version(), "CPU": _cpu(), "source of esbas": _digest()}
    return found | {package: _version(package) for package in PACKAGES}


def differences(other: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """What is different there, in words.

    >>> differences({"Python": "3.11.2"}, {"Python": "3.12.1"})
    ['Python 3.11.2 (here 3.12.1)']
    """
    return [f"{name} {other.get(name)} (here {own})" for name, own in here.items() if other.get(name) != own]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:  # not Linux
        return f"{platform.machine()} {platform.processor()}".strip()
    lines = [line.partition(":") for line in text.partition("\n\n")[0].splitlines()]
    about = {name.strip(): value.strip() for name, _, value in lines}
    units = sorted(each for each in about.get("flags", "").split() if each.startswith(_VECTOR_UNITS))
    return " ".join([about.get("model name", platform.machine()), *units])


def _digest() -> str:
    """The same version number may stand for different sources while somebody works on them."""
    folder, digest = Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]
