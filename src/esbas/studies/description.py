"""The selector of a study as plain data, from which every process builds the same one."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from esbas import schema
from esbas.bandits import make_bandit
from esbas.errors import InvalidValueError, StudyError, TrustError, require
from esbas.selectors import Selector, make_selector
from esbas.store.requests import check_arms
from esbas.store.selector_objects import describe_object

_SHAPE = {"name": str, "arms": [str], "stationary": [str], "seed": schema.COUNT, "options": {str: Any}}
_SETTINGS = {"selector": _SHAPE, "expire_after": schema.AnyOf(float, None), "claim_expires": float}
_OF_MAKING = "scale", "xi", "epochs"  # parameters of `make_selector`; other options are passed on by it


def describe_selector(
    selector: Any,
    *,
    arms: Iterable[str] | None = None,
    stationary: Collection[str] = (),
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A selector as plain data: `name`, `arms`, `stationary`, `seed`, `options`.

    Args:
        selector: a name of `esbas.selectors.make_selector`, plain data that this function returned, or a new selector.
        arms: the names of the arms, unless `selector` contains them; so are the following.
        stationary: the arms that never learn.
        seed: of the selector's random stream.
        options: `scale`, `xi`, `epochs` and parameters of the selector or its bandit; `bandit` is the name of a bandit.
    """
    original = selector
    if isinstance(selector, Selector):
        selector = describe_object(selector)
    if isinstance(selector, Mapping):
        given: dict[str, Any] = {"stationary": [], "seed": 0, "options": {}} | dict(selector)
        apart = arms is None and not stationary and not seed and not options
        require(apart, "arms, stationary, seed and options are given once", "leave them out", selector=dict(selector), arms=arms)
    elif isinstance(selector, str):
        require(arms is not None, "a selector is given with its arms", "pass arms=[...]", selector=selector)
        given = {"name": selector, "arms": arms, "stationary": stationary, "seed": seed, "options": dict(options or {})}
    else:
        what = "a study's selector must be a name, plain data or a selector"
        raise InvalidValueError(
            f'{what}, but got a {type(selector).__name__}: write selector="esbas", arms=[...], options={{...}}'
        )
    given["arms"] = check_arms(given.get("arms") or (), "the arms of a selector")
    given["stationary"] = sorted(check_arms(given["stationary"], "stationary arms")) if given["stationary"] else []
    try:
        plain: dict[str, Any] = json.loads(json.dumps(given))
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"a study's selector must be plain data, but got {repr(given)[:300]}: use numbers, text and lists"
        ) from None
    schema.check(plain, _SHAPE, "the description of a selector", remedy="see esbas.open_study")
    if isinstance(original, Selector) and build_selector(plain).state_dict() != original.state_dict():
        what = "a study's selector must be made by its arguments alone, so that every process can build it"
        raise InvalidValueError(f'{what}, but this {type(original).__name__} was changed: write selector="NAME", arms=[...]')
    return plain


def build_selector(description: Mapping[str, Any]) -> Selector:
    """The selector that the plain data describes, in its initial state."""
    options = dict(description["options"])
    making = {name: options.pop(name) for name in _OF_MAKING if name in options}
    if isinstance(making.get("scale"), list):
        making["scale"] = tuple(making["scale"])
    if isinstance(options.get("bandit"), str):
        options["bandit"] = make_bandit(options["bandit"])
    arms, stationary, seed = description["arms"], description["stationary"], description["seed"]
    selector = make_selector(description["name"], arms, stationary=stationary, seed=seed, options=options, **making)
    if "trajectory" in selector.wants:
        what = "the selector of a study must do with values, contexts and log-probabilities, which the log contains"
        raise StudyError(f"{what}, but {description['name']!r} wants trajectories: use another one")
    return selector


def read_description(text: str, name: str) -> dict[str, Any]:
    """The settings of a study, as they are in the store."""
    where = f"the description of study {name!r}"
    settings = schema.read_json(text, where)
    schema.check(settings, _SETTINGS, where)
    check_arms(settings["selector"]["arms"], "the arms of a selector")
    return dict(settings)


def check_trust(selector: Mapping[str, Any], name: str) -> None:
    """Raise a TrustError if building the selector would import a module. Nothing is imported."""
    fixed = selector["name"].partition(":")[0].lower() == "fixed"
    texts = [*([] if fixed else [selector["name"]]), *_texts(selector["options"])]
    modules = [text for text in texts if ":" in text]
    if modules:
        message = f"modules run code and must be trusted, but study {name!r} would import {', '.join(map(schema.short, modules))}"
        raise TrustError(f"{message}: if you know where this store comes from, add --trust (in Python: trust=True)")


def _texts(value: Any) -> Iterator[str]:
    """All texts within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
