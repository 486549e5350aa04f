"""Decides which modules the folder of a training may import.

A module can run any code when it is imported. A folder of unknown origin may therefore name parts
of esbas, Gymnasium, ale-py and a few installed packages of environments only
(`known_packages`), unless the caller trusts it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esbas._internal.registry import split_path
from esbas.errors import TrustError
from esbas.specs import known_packages
from esbas.specs.options import read_call, split_options

if TYPE_CHECKING:
    from esbas.training.config import TrainingConfig

# Packages whose import does not run code from elsewhere.
_TRUSTED = "esbas", "gymnasium", "ale_py"


def check_modules(
    config: "TrainingConfig", portfolio: Mapping[str, Any], folder: Path, *, needs_env: bool = True
) -> None:
    """Raise a TrustError if the folder of a training names a module. Nothing is imported.

    Args:
        config: the options of the training.
        portfolio: the tables of portfolio.toml.
        folder: the folder of the training, for the error.
        needs_env: whether the environment will be created.
    """
    refused: list[str] = []
    for part, name in _names(config, portfolio, needs_env=needs_env):
        shown = f"{split_path(name)[0]!r} ({part} {name!r})"
        if _imports_module(part, name) and shown not in refused:
            refused.append(shown)
    if refused:
        problem = f"The folder {str(folder)!r} would import {', '.join(refused)}"
        reason = "and an imported module can run any code"
        remedy = "if you know where the folder comes from, add --trust (in Python: trust=True)"
        raise TrustError(f"{problem}, {reason}: {remedy}.")


def _imports_module(part: str, name: str) -> bool:
    """Return whether a part with this name imports a module that has to be trusted.

    A registered environment of a trusted package is allowed, because its module is imported and
    nothing else. Classes and functions are refused even in trusted packages, because they are also
    called with options from the folder.
    """
    if part != "env":
        return ":" in name
    module, own_name = split_path(name)
    if not module:
        return False
    is_file = module.endswith(".py")
    is_known = module.partition(".")[0] in _TRUSTED or known_packages.is_installed(module)
    is_trusted = is_known and not is_file and ":" not in own_name
    # Ids of environments have dashes, names of classes and functions have none.
    is_called = all(word.isidentifier() for word in own_name.split("."))
    return is_called or not is_trusted


def _names(
    config: "TrainingConfig", portfolio: Mapping[str, Any], *, needs_env: bool
) -> Iterator[tuple[str, str]]:
    """Yield each kind of part and each name that the folder has for it."""
    if needs_env and isinstance(config.env, str):
        name, options = split_options(config.env)
        yield "env", name
        for text in _texts(options):  # some environments import what an option names
            yield "env option", text
    if isinstance(config.selector, str) and not config.selector.lower().startswith("fixed:"):
        name, options = split_options(config.selector)
        yield "selector", name
        for text in _texts(options):
            yield "selector option", text
    if isinstance(config.objective, str):
        yield "objective", split_options(config.objective)[0]
    for wrapper in config.wrappers:
        if isinstance(wrapper, str):
            yield "wrapper", read_call(wrapper)[0]
    for learner in config.learners or ():
        if isinstance(learner, str):
            yield "learner", read_call(learner)[0]
    tables = portfolio.get("learner")
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, dict):
            yield "learner", str(table.get("algorithm", ""))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple | set):
        for each in value:
            yield from _texts(each)
