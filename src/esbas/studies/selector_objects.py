"""New selectors as plain data, from which every process builds an equal one."""

from functools import partial
from typing import Any

from esbas._internal.registry import Registry
from esbas.bandits import BANDITS
from esbas.errors import InvalidValueError, counted, require
from esbas.selectors import SELECTORS, BanditSelector, Fixed, Selector


def describe_object(selector: Selector) -> dict[str, Any]:
    """Return `name`, `arms`, `stationary`, `seed` and `options` of a new selector."""
    require(
        selector.number == 0,
        "The selector of a study must be new, but this one has made "
        f"{counted(selector.number, 'choice')}.",
    )
    given = selector.arguments()
    about: dict[str, Any] = {
        "arms": list(selector.arms),
        "stationary": sorted(selector.stationary),
        "seed": given.pop("seed", 0),
    }
    options = {key: value for key, value in given.items() if key not in ("arms", "stationary")}
    if options.get("scale") == "auto":
        del options["scale"]  # the default
    name = _name_of(type(selector), SELECTORS)
    if isinstance(selector, Fixed):
        name = f"fixed:{selector.arm}"
        options.pop("arm", None)
    elif options.get("bandit") is not None:
        bandit, parameters = _bandit(options.pop("bandit"))
        if type(selector) is BanditSelector:
            name = bandit
            options = options | parameters
        else:
            require(
                not parameters,
                f"The bandit of a study's {name} must have its default parameters, but "
                f"{bandit} has {parameters}: use BanditSelector, or a bandit class with other "
                "defaults.",
            )
            options["bandit"] = bandit
    # Options that are None have their defaults, but scale=None is not the default.
    options = {key: value for key, value in options.items() if value is not None or key == "scale"}
    return about | {"name": name, "options": options}


def _bandit(bandit: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a bandit and its parameters."""
    if isinstance(bandit, partial) and not bandit.args and bandit.keywords:
        return _name_of(bandit.func, BANDITS), dict(bandit.keywords)
    return _name_of(bandit, BANDITS), {}


def _name_of(kind: Any, registry: Registry[Any]) -> str:
    """Return the registered name of a class, or `module:Class`."""
    for name in registry:
        if registry.find(name) is kind:
            return name
    if not isinstance(kind, type) or "." in kind.__qualname__:
        raise InvalidValueError(
            "A study's selector and its bandit must be classes that other processes can import, "
            f'but got {kind!r}: write selector="esbas", arms=[...], options={{...}}.'
        )
    return f"{kind.__module__}:{kind.__qualname__}"
