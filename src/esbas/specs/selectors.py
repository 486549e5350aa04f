"""Selectors and objectives from text such as "ssbas(xi=1)", and from objects.

Options are those of the selector, or of the bandit that it is made of; those of an objective are
the arguments of the function that creates it.
"""

import inspect
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from esbas._internal import values
from esbas._internal.registry import import_object
from esbas._internal.schema import short
from esbas.bandits import BANDITS, Bandit, make_bandit
from esbas.errors import InvalidValueError
from esbas.objective import OBJECTIVES, Objective, create_objective
from esbas.selectors import (
    SELECTORS,
    BanditSelector,
    ScaleSpec,
    Selector,
    as_selector,
    find_selector,
    make_selector,
)
from esbas.selectors.recommended import RECOMMENDED
from esbas.specs.options import (
    checked,
    error_context,
    join_options,
    parameters_of,
    split_options,
)
from esbas.specs.sources import Unnamed, importable_name, label_of

OF_BANDITS = "n_arms", "rng", "memory", "spread"
"""Arguments of bandits that the selector sets."""
_OF_SELECTORS = "self", "arms", "seed", "stationary"  # set by the training
_HINTS = {"scale": str | tuple[float, float], "bandit": str}


def given_selector(given: Any) -> Any:
    """Return a selector as text where it has a name, and as it is otherwise.

    Args:
        given: text, a class of selectors or bandits, a function that makes a selector, or a
            selector.
    """
    if given is None:
        return RECOMMENDED
    if isinstance(given, type) and issubclass(given, Selector | Bandit):
        return _registered_name(given) or importable_name(given) or given
    if isinstance(given, str | Selector | Unnamed):
        return given
    if callable(given) and not isinstance(given, type):
        return importable_name(given) or given
    what = "the name of a selector, a selector, or a class or function that makes one"
    raise InvalidValueError(f"`selector` must be {what}, but got {short(given)}.")


def given_objective(given: Any) -> Any:
    """Return an objective as text where it has a name, and as it is otherwise.

    Args:
        given: text, an `Objective`, a function of a trajectory, or a function that makes an
            objective.
    """
    if isinstance(given, str):
        return join_options(*split_options(given))  # the same text however it is spaced
    if isinstance(given, Objective | Unnamed):
        return given
    if not callable(given):
        what = "the name of an objective, an Objective, or a function of a trajectory"
        raise InvalidValueError(f"`objective` must be {what}, but got {short(given)}.")
    for name in OBJECTIVES:
        if OBJECTIVES.find(name) is given:
            return name
    return importable_name(given) or given


def read_objective(text: str) -> Objective:
    """Create an objective.

    Args:
        text: a name of `esbas.objective.make_objective`, with options in parentheses, as in
            "constrained_return(cost='cost', limit=25, penalty=10)".
    """
    name, given = split_options(text)
    context: AbstractContextManager[None] = nullcontext()
    if ":" in name:  # a function of the user can raise anything
        context = error_context(f"Objective {text!r}", rule="must be created", remedy="fix it")
    with context:
        return create_objective(name, _objective_options(name, given))


def _objective_options(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options, converted to the types of the function that creates the objective."""
    found: Any = OBJECTIVES.find(name)
    if isinstance(found, Objective) or not callable(found):
        return given  # refused when the objective is created
    if isinstance(found, partial):
        return checked(found.func, given, kind=name, reserved=found.keywords)
    return checked(found, given, kind=name)


def given_scale(given: Any) -> str:
    """Return a scale as text: "auto", "raw", or "LOW,HIGH".

    Args:
        given: such a text, None for "raw", or two numbers such as (0, 500).
    """
    if given is None:
        return "raw"
    if isinstance(given, str):
        read_scale(given)
        return given
    limits = values.items("scale", given)
    if len(limits) != 2:
        raise InvalidValueError(
            f"`scale` must be 'auto', 'raw', or two numbers, but got {short(given)}."
        )
    low, high = (values.number("scale", each) for each in limits)
    read_scale((low, high))
    return f"{low!r},{high!r}"


def _registered_name(given: type[Any]) -> str | None:
    """Return the name under which a class of selectors or bandits is registered."""
    for registry in (SELECTORS, BANDITS):
        for name in registry:
            if registry.find(name) is given:
                return name
    return None


def make_given_selector(
    given: Any,
    arms: Sequence[str],
    *,
    stationary: Collection[str],
    scale: str,
    xi: float | None,
    epochs: Sequence[int],
    seed: int,
) -> Selector:
    """Create a selector from what `given_selector` returned; other arguments as `read_selector`."""
    if isinstance(given, str) and not _names_function(given):
        return read_selector(
            given, arms, stationary=stationary, scale=scale, xi=xi, epochs=epochs, seed=seed
        )
    for name in _given_options(scale=scale, xi=xi, epochs=epochs):
        remedy = "set it where the selector is made"
        raise InvalidValueError(
            f"`{name}` must not be given with a selector that is an object: {remedy}."
        )
    maker = import_object(given) if isinstance(given, str) else given
    if isinstance(maker, Selector | Unnamed):
        return as_selector(maker, arms, stationary=stationary, seed=seed)
    label = label_of(given)
    with error_context(f"Selector {label!r}", rule="must be created", remedy="fix it"):
        return as_selector(maker, arms, stationary=stationary, seed=seed)


def _given_options(*, scale: str, xi: float | None, epochs: Sequence[int]) -> list[str]:
    """Return the names of those options that do not have their default."""
    is_given = {"scale": scale != "auto", "xi": xi is not None, "epochs": bool(epochs)}
    return [name for name in is_given if is_given[name]]


def _names_function(text: str) -> bool:
    """Return whether the text names a function that makes a selector, as "module:function"."""
    if ":" not in text or "(" in text or text.lower().startswith("fixed:"):
        return False
    return inspect.isfunction(import_object(text))


def read_selector(
    text: str,
    arms: Sequence[str],
    *,
    stationary: Collection[str],
    scale: str,
    xi: float | None,
    epochs: Sequence[int],
    seed: int,
) -> Selector:
    """Create a selector.

    Args:
        text: a name of `esbas.selectors.make_selector`, with options in parentheses. `fixed:NAME`
            has none: NAME may be any text.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        scale: "auto", "raw" or "LOW,HIGH".
        xi: the parameter of UCB1; None: the default of the selector.
        epochs: the lengths of the epochs; none: the default of the selector.
        seed: of the selector's random stream.
    """
    is_fixed = text.partition(":")[0].lower() == "fixed"
    name, given = (text, {}) if is_fixed else split_options(text)
    for key in _given_options(scale=scale, xi=xi, epochs=epochs):
        if key in given:
            raise InvalidValueError(
                f"`{key}` is given twice, in {text!r} and as --{key}: remove one."
            )
    options = _checked(name, given) if given else {}
    lengths = options.pop("epochs", None) or epochs or None
    chosen_scale = read_scale(options.pop("scale", scale))
    context: AbstractContextManager[None] = nullcontext()
    if ":" in name:  # a class of the user can raise anything
        context = error_context(f"Selector {text!r}", rule="must be created", remedy="fix it")
    with context:
        return make_selector(
            name,
            arms,
            stationary=stationary,
            scale=chosen_scale,
            xi=xi,
            epochs=lengths,
            seed=seed,
            options=options,
        )


def _checked(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options, converted to the types of the selector and its bandit."""
    found = find_selector(name)
    if not issubclass(found, Bandit):
        options = checked(found, given, kind=name, reserved=_OF_SELECTORS, hints=_HINTS)
        if "bandit" in options:
            options["bandit"] = make_bandit(options["bandit"])
        return options
    # A bandit becomes a `BanditSelector`, which has options, too.
    set_elsewhere = (*_OF_SELECTORS, "bandit")
    of_selector = [key for key in parameters_of(BanditSelector) if key not in set_elsewhere]
    for_bandit: dict[str, Any] = {}
    for_selector: dict[str, Any] = {}
    for key, value in given.items():
        if key in of_selector:
            for_selector[key] = value
        else:
            for_bandit[key] = value
    options = checked(found, for_bandit, kind=name, reserved=OF_BANDITS, also=of_selector)
    return options | checked(
        BanditSelector,
        for_selector,
        kind=name,
        reserved=_OF_SELECTORS,
        optional=("bandit",),
        hints=_HINTS,
    )


def read_scale(value: str | tuple[float, float]) -> ScaleSpec:
    """Return the scale that an option describes: "auto", "raw", or "LOW,HIGH".

    >>> read_scale("0,500")
    (0.0, 500.0)
    """
    if value == "auto":
        return "auto"
    if value == "raw":
        return None
    limits = value.split(",") if isinstance(value, str) else value
    try:
        low, high = map(float, limits)
    except ValueError:
        low = high = 0.0
    if not low < high:
        rule = "`scale` must be auto, raw, or LOW,HIGH with LOW < HIGH"
        raise InvalidValueError(f"{rule} such as 0,500, but got {value!r}.")
    return low, high
