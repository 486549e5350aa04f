"""All calls to d3rlpy that rely on its internals."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.errors import InvalidValueError, SpaceError, require, unknown
from esbas.learners.d3.names import CONTINUOUS, DISCRETE

try:
    import d3rlpy

    from esbas.learners.deep.tensors import plain, require_names, require_numbers, tensors  # needs PyTorch, as d3rlpy does
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("members of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'") from error

_RESERVED = "batch_size", "observation_scaler", "action_scaler", "reward_scaler", "compile_graph"
_SCALERS = _RESERVED[1:4]


def configuration(
    given: Any, *, discrete: bool, options: Mapping[str, Any] | None, hidden: Sequence[int] | None, owner: str
) -> Any:
    """A copy of the given configuration, or that of the algorithm with this name."""
    if not isinstance(given, str):
        require(
            options is None and hidden is None,
            "options and hidden are for names",
            "pass them to the configuration itself",
            options=options,
            hidden=hidden,
        )
        return _checked(given, discrete=discrete, owner=owner)
    usable = DISCRETE if discrete else CONTINUOUS
    if given not in usable:
        every = DISCRETE | CONTINUOUS
        raise _unfit(given, usable, owner) if given in every else unknown("algorithm of d3rlpy", given, every)
    kind = getattr(d3rlpy.algos, usable[given])
    fields = [field.name for field in dataclasses.fields(kind)]
    for option in options or {}:
        require(
            option not in _RESERVED, f"options do not contain {', '.join(_RESERVED)}", "the learner sets them", options=option
        )
        if option not in fields:
            raise unknown(f"option of d3rlpy's {given}", option, [field for field in fields if field not in _RESERVED])
    encoders = [field for field in fields if field.endswith("encoder_factory")] if hidden is not None else []
    networks = {field: d3rlpy.models.VectorEncoderFactory(hidden_units=list(hidden or ())) for field in encoders}
    return kind(**networks | dict(options or {}))


def _checked(config: Any, *, discrete: bool, owner: str) -> Any:
    usable, kind = DISCRETE if discrete else CONTINUOUS, type(config).__name__
    if kind not in usable.values():
        if kind in (DISCRETE | CONTINUOUS).values():
            raise _unfit(kind, usable, owner)
        rule = "an algorithm is the configuration of one of d3rlpy's that learn from single transitions"
        require(False, rule, f"choose one of {', '.join(usable)}", algorithm=config)
    scaled = [scaler for scaler in _SCALERS if getattr(config, scaler) is not None]
    require(not scaled, "a member has no scalers", "wrap the environment instead", scalers=scaled)
    return copy.deepcopy(config)


def _unfit(given: str, usable: Mapping[str, str], owner: str) -> SpaceError:
    kind = "continuous" if usable is DISCRETE else "discrete"
    problem = f"{owner} must fit the task, but d3rlpy's {given} is for {kind} actions"
    return SpaceError(f"{problem}: leave it out, or choose one of {', '.join(usable)}")


def build(config: Any, *, inputs: int, actions: int) -> Any:
    """The algorithm with initial networks, drawn from the global generators."""
    try:
        model = config.create(device=False)
        model.create_impl((inputs,), actions)
    except (AssertionError, TypeError, ValueError) as error:
        raise InvalidValueError(f"d3rlpy must be able to build {config}, but says: {error}") from error
    return model


def update(model: Any, batch: Mapping[str, Array]) -> dict[str, float]:
    """Make one gradient step on transitions, including the last ones of truncated episodes, and return the losses."""
    count, actions = len(batch["rewards"]), batch["actions"].astype(np.float32)
    losses: dict[str, float] = model.update(
        d3rlpy.dataset.TransitionMiniBatch(
            observations=batch["observations"],
            actions=actions,
            rewards=batch["rewards"].astype(np.float32).reshape(count, 1),
            next_observations=batch["following"],
            next_actions=np.zeros_like(actions),  # none of the supported algorithms uses them
            terminals=batch["terminated"].astype(np.float32).reshape(count, 1),
            intervals=np.ones((count, 1), np.float32),
            transitions=[],
        )
    )
    return losses


def best_actions(model: Any, rows: Array) -> Array:
    """The best actions for vectors (N, d): integers, (N,), or numbers within [-1, 1], (N, n)."""
    actions: Array = model.predict(rows)
    return actions


def state_of(model: Any) -> dict[str, Any]:
    """The state of networks, targets, optimizers and the number of gradient steps as arrays and plain data."""
    parts = {name: plain(dict(part.state_dict())) for name, part in _parts(model).items()}
    return {"parts": parts, "gradient_steps": model._grad_step}


def restore(model: Any, state: Mapping[str, Any]) -> None:
    """Load a state that `state_of` returned. Its names and types are checked before anything is loaded."""
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
