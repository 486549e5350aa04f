"""Packages of well-known environments, which are imported if the id of an environment needs one.

The list is short on purpose: a folder of unknown origin can name an id, and so import a package.
"""

import importlib
import importlib.util
import site
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import gymnasium

from esbas._internal.registry import split_path


@dataclass(frozen=True)
class KnownPackage:
    """A package that registers environments.

    Attributes:
        name: of the package, also for pip.
        beginnings: of the ids of its environments.
        module: the one to import.
        registers: functions, of which one is called if importing the module registers nothing.
    """

    name: str
    beginnings: tuple[str, ...]
    module: str
    registers: tuple[str, ...]

    def is_registered(self) -> bool:
        """Return whether environments with such ids are registered."""
        return any(known.startswith(self.beginnings) for known in gymnasium.registry)


# ale-py is known to `atari_defaults`.
_PACKAGES = (
    KnownPackage("minigrid", ("MiniGrid-", "BabyAI-"), "minigrid", ("register_minigrid_envs",)),
    KnownPackage("minatar", ("MinAtar/",), "minatar.gym", ("register_envs",)),
    KnownPackage(
        "highway_env",
        (
            "exit-",
            "highway-",
            "intersection-",
            "lane-keeping-",
            "merge-",
            "parking-",
            "racetrack-",
            "roundabout-",
            "two-way-",
            "u-turn-",
        ),
        "highway_env",
        ("register_highway_envs", "_register_highway_envs"),
    ),
    KnownPackage(
        "gymnasium_robotics",
        ("AdroitHand", "AntMaze", "Fetch", "FrankaKitchen-", "Hand", "PointMaze"),
        "gymnasium_robotics",
        ("register_robotics_envs",),
    ),
)


def package_of(env_id: str) -> KnownPackage | None:
    """Return the package that registers environments with such ids; None if none is known."""
    for package in _PACKAGES:
        if env_id.startswith(package.beginnings):
            return package
    return None


def register(name: str) -> None:
    """Import the package of an environment that is named by its id alone, if it is installed."""
    module, env_id = split_path(name)
    package = package_of(env_id)
    if module or package is None or package.is_registered() or not is_installed(package.name):
        return
    imported = importlib.import_module(package.module)
    for function in package.registers:
        if not package.is_registered() and hasattr(imported, function):
            getattr(imported, function)()


def is_installed(module: str) -> bool:
    """Return whether this is a known package, and installed where packages are installed.

    A module of the same name elsewhere, such as in the current folder, may be anything.
    """
    if module not in [package.name for package in _PACKAGES]:
        return False
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    if found is None or found.origin is None:
        return False
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    origin = Path(found.origin).resolve()
    return any(origin.is_relative_to(Path(folder).resolve()) for folder in folders)
