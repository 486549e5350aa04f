"""What a portfolio member needs of d3rlpy, all in one place: some of it is not public."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.errors import InvalidValueError, SpaceError, require, unknown
from esbas.learners._d3_names import CONTINUOUS, DISCRETE
from esbas.learners._tensors import plain, tensors

try:
    import d3rlpy
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("members of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'") from error

_OURS = "batch_size", "observation_scaler", "action_scaler", "reward_scaler", "compile_graph"
_SCALERS = _OURS[1:4]


def configuration(
    given: Any, *, discrete: bool, options: Mapping[str, Any] | None, hidden: Sequence[int] | None, owner: str
) -> Any:
    """The configuration itself, or that of the algorithm with this name."""
    if not isinstance(given, str):
        require(
            options is None and hidden is None,
            "options and hidden are for names",
            "give them to the configuration itself",
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
        require(option not in _OURS, f"options do not contain {', '.join(_OURS)}", "the learner has them", options=option)
        if option not in fields:
            raise unknown(f"option of d3rlpy's {given}", option, [field for field in fields if field not in _OURS])
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
    told = f"{owner} must fit the task, but d3rlpy's {given} is for {kind} actions"
    return SpaceError(f"{told}: leave it out, or choose one of {', '.join(usable)}")


def build(config: Any, *, inputs: int, actions: int) -> Any:
    """The algorithm with fresh networks, drawn from the global generators."""
    try:
        model = config.create(device=False)
        model.create_impl((inputs,), actions)
    except (AssertionError, TypeError, ValueError) as error:
        raise InvalidValueError(f"d3rlpy must be able to build {config}, but says: {error}") from error
    return model


def update(model: Any, batch: Mapping[str, Array]) -> dict[str, float]:
    """One gradient step on transitions as they are, those that were cut off included; returns the losses."""
    count, actions = len(batch["rewards"]), batch["actions"].astype(np.float32)
    losses: dict[str, float] = model.update(
        d3rlpy.dataset.TransitionMiniBatch(
            observations=batch["observations"],
            actions=actions,
            rewards=batch["rewards"].astype(np.float32).reshape(count, 1),
            next_observations=batch["following"],
            next_actions=np.zeros_like(actions),  # none of our algorithms looks at them
            terminals=batch["terminated"].astype(np.float32).reshape(count, 1),
            intervals=np.ones((count, 1), np.float32),
            transitions=[],
        )
    )
    return losses


def best_action(model: Any, row: Array) -> Array:
    """What it takes for the best action for one vector (1, d): a number, or (n,) numbers within [-1, 1]."""
    action: Array = model.predict(row)[0]
    return action


def state_of(model: Any) -> dict[str, Any]:
    """Networks, targets, optimizers and the count of gradient steps as arrays and plain data."""
    parts = {name: plain(dict(part.state_dict())) for name, part in _parts(model).items()}
    return {"parts": parts, "gradient_steps": model._grad_step}


def restore(model: Any, state: Mapping[str, Any]) -> None:
    """Bring the algorithm to a state told by `state_of`."""
    for name, part in _parts(model).items():
        part.load_state_dict(tensors(state["parts"][name]))
    model._grad_step = state["gradient_steps"]


def _parts(model: Any) -> dict[str, Any]:
    parts: dict[str, Any] = model.impl.modules.create_checkpointer(model.impl.device).modules
    return parts
