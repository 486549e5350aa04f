"""New selectors as plain data, from which every process builds an equal one."""

from functools import partial
from typing import Any

from esbas.bandits import BANDITS
from esbas.errors import InvalidValueError, require
from esbas.registry import Registry
from esbas.selectors import SELECTORS, BanditSelector, Fixed, Selector


def describe_object(selector: Selector) -> dict[str, Any]:
    """`name`, `arms`, `stationary`, `seed` and `options` of a selector that has made no choice yet."""
    require(selector.number == 0, "the selector of a study is new", "pass one that has made no choice", choices=selector.number)
    given = selector.arguments()
    about: dict[str, Any] = {"arms": list(selector.arms), "stationary": sorted(selector.stationary), "seed": given.pop("seed", 0)}
    options = {key: value for key, value in given.items() if key not in ("arms", "stationary")}
    if options.get("scale") == "auto":
        del options["scale"]  # the default
    name = _name_of(type(selector), SELECTORS)
    if isinstance(selector, Fixed):
        name = f"fixed:{selector.arm}"
        options.pop("arm", None)
    elif options.get("bandit") is not None:
        bandit = options.pop("bandit")
        parameters = dict(bandit.keywords) if isinstance(bandit, partial) and not bandit.args else {}
        known = _name_of(bandit.func if parameters else bandit, BANDITS)
        if type(selector) is BanditSelector:
            name, options = known, options | parameters
        else:
            _require_none(parameters, known)
            options["bandit"] = known
    return about | {
        "name": name,
        "options": {key: value for key, value in options.items() if value is not None or key == "scale"},
    }


def _name_of(kind: Any, registry: Registry[Any]) -> str:
    """The registered name of a class, or module:Class."""
    for name in registry:
        if registry.find(name) is kind:
            return name
    if not isinstance(kind, type) or "." in kind.__qualname__:
        what = "a study's selector and its bandit must be classes that other processes can import"
        raise InvalidValueError(f'{what}, but got {kind!r}: write selector="esbas", arms=[...], options={{...}}')
    return f"{kind.__module__}:{kind.__qualname__}"


def _require_none(parameters: dict[str, Any], name: str) -> None:
    rule = "the bandit of a study's ESBAS or SSBAS has its default parameters"
    require(not parameters, rule, "use a bandit of your own, or BanditSelector", bandit=name, parameters=parameters)
