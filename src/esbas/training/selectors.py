"""Selectors from text such as "ssbas(xi=1)": options are those of the selector, or of the bandit that it is made of."""

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

from esbas.bandits import Bandit, make_bandit
from esbas.errors import InvalidValueError, require
from esbas.selectors import BanditSelector, ScaleSpec, Selector, find_selector, make_selector
from esbas.training.options import checked, error_context, parameters_of, split_options

_OF_SELECTORS = "self", "arms", "seed", "stationary"  # set by the training
OF_BANDITS = "n_arms", "rng", "memory", "spread"
_HINTS = {"scale": str | tuple[float, float], "bandit": str}


def read_selector(
    text: str, arms: Sequence[str], *, stationary: Collection[str], scale: str, xi: float | None, epochs: Sequence[int], seed: int
) -> Selector:
    """Create a selector.

    Args:
        text: a name of `esbas.selectors.make_selector`, with options in parentheses. `fixed:NAME` has none: NAME may be any text.
        arms: the names of the learners.
        stationary: the arms whose learners never learn.
        scale: "auto", "raw" or "LOW,HIGH".
        xi: the parameter of UCB1; None: the default of the selector.
        epochs: the lengths of the epochs; none: the default of the selector.
        seed: of the selector's random stream.
    """
    fixed = text.partition(":")[0].lower() == "fixed"
    name, given = (text, {}) if fixed else split_options(text)
    outside = {"scale": scale != "auto", "xi": xi is not None, "epochs": bool(epochs)}
    for key in given:
        if outside.get(key):
            raise InvalidValueError(
                f"an option of the selector must be given once, but {text!r} and --{key} are given: remove one"
            )
    options = _checked(name, given) if given else {}
    lengths = options.pop("epochs", None) or epochs or None
    values = read_scale(options.pop("scale", scale))
    own = error_context(f"selector {text!r}", rule="must be created", remedy="fix it") if ":" in name else nullcontext()
    with own:  # a class of your own can raise anything
        return make_selector(name, arms, stationary=stationary, scale=values, xi=xi, epochs=lengths, seed=seed, options=options)


def _checked(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options, converted to the types of the selector and its bandit."""
    found = find_selector(name)
    if not issubclass(found, Bandit):
        options = checked(found, given, kind=name, reserved=_OF_SELECTORS, hints=_HINTS)
        return options | ({"bandit": make_bandit(options["bandit"])} if "bandit" in options else {})
    shared = [key for key in parameters_of(BanditSelector) if key not in (*_OF_SELECTORS, "bandit")]
    own = {key: value for key, value in given.items() if key not in shared}
    options = checked(found, own, kind=name, reserved=OF_BANDITS, also=shared)
    rest = {key: value for key, value in given.items() if key in shared}
    return options | checked(BanditSelector, rest, kind=name, reserved=_OF_SELECTORS, optional=("bandit",), hints=_HINTS)


def read_scale(value: str | tuple[float, float]) -> ScaleSpec:
    """The scale that an option describes: "auto", "raw", or "LOW,HIGH".

    >>> read_scale("0,500")
    (0.0, 500.0)
    """
    if value in ("auto", "raw"):
        return "auto" if value == "auto" else None
    try:
        low, high = map(float, value.split(",") if isinstance(value, str) else value)
    except ValueError:
        low = high = 0.0
    require(low < high, "scale is auto, raw, or LOW,HIGH with LOW < HIGH", "such as 0,500", scale=value)
    return low, high
