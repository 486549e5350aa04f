"""Package versions and CPU type, which can change the last digits of a result."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "esbas",
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "gymnasium",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
    "ale-py",
)
# The names of those CPU features that change the order of sums begin like this.
_VECTOR_UNITS = "sse4_2", "avx", "fma"


@cache
def describe_machine() -> dict[str, str]:
    """Return versions, a digest of the source of esbas, and the CPU type of this machine."""
    found = {"Python": platform.python_version(), "CPU": _cpu(), "source of esbas": _digest()}
    for package in PACKAGES:
        found[package] = _version(package)
    return found


def differences(other: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return what is different on another machine, in words.

    >>> differences({"Python": "3.11.2"}, {"Python": "3.12.1"})
    ['Python 3.11.2 (here 3.12.1)']
    """
    found: list[str] = []
    for name, own in here.items():
        if other.get(name) != own:
            found.append(f"{name} {other.get(name)} (here {own})")
    return found


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
    about: dict[str, str] = {}
    first_core = text.partition("\n\n")[0]
    for line in first_core.splitlines():
        name, _, value = line.partition(":")
        about[name.strip()] = value.strip()
    flags = about.get("flags", "").split()
    units = sorted(flag for flag in flags if flag.startswith(_VECTOR_UNITS))
    return " ".join([about.get("model name", platform.machine()), *units])


def _digest() -> str:
    """Return a digest of the sources, which can differ under the same version number."""
    folder = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]
