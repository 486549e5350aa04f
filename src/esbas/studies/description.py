"""The selector of a study as plain data, from which every process builds the same one."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from esbas._internal import schema
from esbas.bandits import make_bandit
from esbas.errors import InvalidValueError, StudyError, TrustError, require
from esbas.selectors import Selector, as_selector, make_selector
from esbas.studies.requests import check_arms
from esbas.studies.selector_objects import describe_object

_SHAPE = {
    "name": str,
    "arms": [str],
    "stationary": [str],
    "seed": schema.COUNT,
    "options": {str: Any},
}
_SETTINGS = {"selector": _SHAPE, "expire_after": schema.AnyOf(float, None), "claim_expires": float}
# Options that are parameters of `make_selector` itself; it passes the others on.
_OF_MAKING = ("scale", "xi", "epochs")


def describe_selector(
    selector: Any,
    *,
    arms: Iterable[str] | None = None,
    stationary: Collection[str] = (),
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a selector as plain data: `name`, `arms`, `stationary`, `seed`, `options`.

    Args:
        selector: a name of `esbas.selectors.make_selector`; a class such as `esbas.SSBAS`, or a
            function that makes a selector; a new selector; or plain data that this function
            returned.
        arms: the names of the arms. This and the following arguments belong to a selector that is
            given by its name or its class; the other two forms contain them.
        stationary: the arms that never learn.
        seed: of the selector's random stream.
        options: `scale`, `xi`, `epochs` and parameters of the selector or its bandit; `bandit` is
            the name of a bandit.
    """
    if callable(selector) and arms is not None and not options:
        names = check_arms(arms, "The arms of a selector")
        selector = as_selector(selector, names, stationary=stationary, seed=seed)
        arms = None
        stationary = ()
        seed = 0
    original = selector
    if isinstance(selector, Selector):
        selector = describe_object(selector)
    given: dict[str, Any]
    if isinstance(selector, Mapping):
        given = {"stationary": [], "seed": 0, "options": {}, **selector}
        given_twice = arms is not None or stationary or seed or options
        require(
            not given_twice,
            f"The selector {given.get('name')!r} already contains `arms`, `stationary`, `seed` "
            "and `options`: leave these arguments out.",
        )
    elif isinstance(selector, str):
        require(
            arms is not None, f"`arms` are missing for the selector {selector!r}: pass arms=[...]."
        )
        given = {
            "name": selector,
            "arms": arms,
            "stationary": stationary,
            "seed": seed,
            "options": dict(options or {}),
        }
    else:
        raise InvalidValueError(
            "A study's selector must be a name, a selector, its class with arms and without "
            f"options, or plain data, but got {schema.short(selector)}: "
            'write selector="esbas", arms=[...], options={...}.'
        )
    given["arms"] = check_arms(given.get("arms", ()), "The arms of a selector")
    if len(given["stationary"]) > 0:
        given["stationary"] = sorted(check_arms(given["stationary"], "Stationary arms"))
    else:
        given["stationary"] = []
    try:
        plain: dict[str, Any] = json.loads(json.dumps(given))
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"A study's selector must be plain data, but got {repr(given)[:300]}: "
            "use numbers, text and lists."
        ) from None
    schema.check(plain, _SHAPE, "the description of a selector", remedy="see esbas.open_study")
    if isinstance(original, Selector):
        _check_unchanged(original, plain)
    return plain


def check_no_settings(
    *,
    arms: Iterable[str] | None,
    stationary: Collection[str],
    seed: int,
    options: Mapping[str, Any] | None,
) -> None:
    """Raise an error for settings that are given without a selector."""
    are_given = arms is not None or bool(stationary) or seed or bool(options)
    require(
        not are_given,
        "`arms`, `stationary`, `seed` and `options` belong to a selector, but none was given: "
        "pass `selector`, or leave them out.",
    )


def _check_unchanged(selector: Selector, description: Mapping[str, Any]) -> None:
    """Raise an error unless the selector is in the state that it was built with."""
    if build_selector(description).state_dict() != selector.state_dict():
        raise InvalidValueError(
            "A study's selector must be as its arguments make it, so that every process can build "
            f"it, but this {type(selector).__name__} was changed: "
            'write selector="NAME", arms=[...].'
        )


def build_selector(description: Mapping[str, Any]) -> Selector:
    """Build the selector that the plain data describes, in its initial state."""
    options = dict(description["options"])
    making = {name: options.pop(name) for name in _OF_MAKING if name in options}
    if isinstance(making.get("scale"), list):
        making["scale"] = tuple(making["scale"])
    if isinstance(options.get("bandit"), str):
        options["bandit"] = make_bandit(options["bandit"])
    selector = make_selector(
        description["name"],
        description["arms"],
        stationary=description["stationary"],
        seed=description["seed"],
        options=options,
        **making,
    )
    if "trajectory" in selector.wants:
        raise StudyError(
            "The log of a study has values, contexts and log-probabilities only, but the selector "
            f"{description['name']!r} wants trajectories: use another one."
        )
    return selector


def read_description(text: str, name: str) -> dict[str, Any]:
    """Read the settings of a study as they are in the store."""
    where = f"the description of study {name!r}"
    settings = schema.read_json(text, where)
    schema.check(settings, _SETTINGS, where)
    check_arms(settings["selector"]["arms"], "The arms of a selector")
    return dict(settings)


def check_trust(selector: Mapping[str, Any], name: str) -> None:
    """Raise a TrustError if building the selector would import a module. Nothing is imported."""
    texts = list(_texts(selector["options"]))
    if not selector["name"].lower().startswith("fixed:"):  # what follows is the name of an arm
        texts.insert(0, selector["name"])
    modules = [schema.short(text) for text in texts if ":" in text]
    if modules:
        raise TrustError(
            f"Study {name!r} would import {', '.join(modules)}, and imported modules can run any "
            "code: if you know where this store comes from, add --trust (in Python: trust=True)."
        )


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
