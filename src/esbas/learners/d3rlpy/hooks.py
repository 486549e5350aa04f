"""All calls to d3rlpy that rely on its internals."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, SpaceError, require, unknown
from esbas.learners.d3rlpy.names import CONTINUOUS, DISCRETE

try:
    import d3rlpy

    from esbas.learners.dqn.on_pytorch.tensors import (  # needs PyTorch, as d3rlpy does
        plain,
        require_names,
        require_numbers,
        tensors,
    )
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Learners of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'."
    ) from error

_SCALERS = "observation_scaler", "action_scaler", "reward_scaler"
_RESERVED = "batch_size", *_SCALERS, "compile_graph"


def configuration(
    given: Any,
    *,
    discrete: bool,
    options: Mapping[str, Any] | None,
    hidden: Sequence[int] | None,
    owner: str,
) -> Any:
    """Return a copy of the given configuration, or that of the algorithm with this name."""
    if not isinstance(given, str):
        require(
            options is None and hidden is None,
            "`options` and `hidden` are for algorithms that are given by name, "
            f"but got {options!r} and {hidden!r}: pass them to the configuration itself.",
        )
        return _checked(given, discrete=discrete, owner=owner)
    usable = DISCRETE if discrete else CONTINUOUS
    if given not in usable:
        every = DISCRETE | CONTINUOUS
        if given in every:
            raise _unfit(given, usable, owner)
        raise unknown("algorithm of d3rlpy", given, every)
    kind = getattr(d3rlpy.algos, usable[given])
    fields = [field.name for field in dataclasses.fields(kind)]
    own = dict(options or {})
    _check_options(own, fields, given)
    arguments: dict[str, Any] = {}
    if hidden is not None:
        for field in fields:
            if field.endswith("encoder_factory"):
                arguments[field] = d3rlpy.models.VectorEncoderFactory(hidden_units=list(hidden))
    return kind(**arguments | own)


def _check_options(options: Mapping[str, Any], fields: Sequence[str], algorithm: str) -> None:
    for option in options:
        require(
            option not in _RESERVED,
            f"`options` must not contain {', '.join(_RESERVED)}, but got {option}: "
            "the learner sets them.",
        )
        if option not in fields:
            known = [field for field in fields if field not in _RESERVED]
            raise unknown(f"option of d3rlpy's {algorithm}", option, known)


def _checked(config: Any, *, discrete: bool, owner: str) -> Any:
    usable = DISCRETE if discrete else CONTINUOUS
    kind = type(config).__name__
    if kind not in usable.values():
        if kind in (DISCRETE | CONTINUOUS).values():
            raise _unfit(kind, usable, owner)
        raise InvalidValueError(
            "`algorithm` must be one of d3rlpy's that learn from single transitions, by name or as "
            f"a configuration, but got {config!r}: choose one of {', '.join(usable)}."
        )
    scaled = [scaler for scaler in _SCALERS if getattr(config, scaler) is not None]
    require(
        not scaled,
        f"Scalers are not supported, but got {', '.join(scaled)}: wrap the environment instead.",
    )
    return copy.deepcopy(config)


def _unfit(given: str, usable: Mapping[str, str], owner: str) -> SpaceError:
    kind = "continuous" if usable is DISCRETE else "discrete"
    return SpaceError(
        f"The algorithm of {owner} must fit the environment, but d3rlpy's {given} is for {kind} "
        f"actions: leave it out, or choose one of {', '.join(usable)}."
    )


def build(config: Any, *, inputs: int, actions: int) -> Any:
    """Return the algorithm with initial networks, drawn from the global generators."""
    try:
        model = config.create(device=False)
        model.create_impl((inputs,), actions)
    except (AssertionError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"d3rlpy must be able to build {config}, but reports: {error}"
        ) from error
    return model


def update(model: Any, batch: Mapping[str, Array]) -> dict[str, float]:
    """Make one gradient step on transitions and return the losses.

    The transitions may include the last ones of truncated episodes.
    """
    count = len(batch["rewards"])
    actions = batch["actions"].astype(np.float32)
    transitions = d3rlpy.dataset.TransitionMiniBatch(
        observations=batch["observations"],
        actions=actions,
        rewards=batch["rewards"].astype(np.float32).reshape(count, 1),
        next_observations=batch["following"],
        next_actions=np.zeros_like(actions),  # none of the supported algorithms uses them
        terminals=batch["terminated"].astype(np.float32).reshape(count, 1),
        intervals=np.ones((count, 1), np.float32),
        transitions=[],
    )
    losses: dict[str, float] = model.update(transitions)
    return losses


def best_actions(model: Any, rows: Array) -> Array:
    """Return the best actions for vectors (N, d).

    They are integers, (N,), or numbers within [-1, 1], (N, n).
    """
    actions: Array = model.predict(rows)
    return actions


def state_of(model: Any) -> dict[str, Any]:
    """Return the state of networks, targets and optimizers, and the number of gradient steps.

    It consists of arrays and plain data.
    """
    parts = {name: plain(dict(part.state_dict())) for name, part in _parts(model).items()}
    return {"parts": parts, "gradient_steps": model._grad_step}


def restore(model: Any, state: Mapping[str, Any]) -> None:
    """Load a state that `state_of` returned. Its names and types are checked first."""
    parts = _parts(model)
    require_names("parts", state["parts"], parts)
    require_numbers("parts", state["parts"])
    require_numbers("gradient_steps", state["gradient_steps"])
    for name, part in parts.items():
        part.load_state_dict(tensors(state["parts"][name]))
    model._grad_step = state["gradient_steps"]


def _parts(model: Any) -> dict[str, Any]:
    parts: dict[str, Any] = model.impl.modules.create_checkpointer(model.impl.device).modules
    return parts
