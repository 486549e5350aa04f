"""The spaces of a task and of its wrappers, saved with a training, so that its policies can act without the task."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import wrappers

from esbas import schema
from esbas.errors import SaveFileError
from esbas.files import read_file
from esbas.reporting.files import write_json
from esbas.training import atari_defaults
from esbas.training.options import read_call
from esbas.training.policies.space_data import from_data, to_data
from esbas.training.runs.plan import Plan
from esbas.training.tasks import wrap

SPACES = "spaces.json"
_SHAPE = {"layers": [{"wrapper": str, "observation": dict, "action": dict}]}
_PASSING = wrappers.TimeLimit, wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.RecordEpisodeStatistics
_IMPURE = "NormalizeObservation", "AddRenderObservation"  # their observations depend on more than the observation below


@dataclass(frozen=True)
class Layer:
    """The spaces of the task after one wrapper; of the task itself if `wrapper` is empty."""

    wrapper: str
    observation_space: Any
    action_space: Any


def layers_of(task: gymnasium.Env[Any, Any], texts: Sequence[str]) -> list[Layer]:
    """The layers of a task with these wrappers, the innermost first. It starts above a text that added several wrappers."""
    found: list[Layer] = []
    env: gymnasium.Env[Any, Any] = task
    for text in reversed(texts):
        name = read_call(text)[0].rpartition(":")[2].rpartition(".")[2]
        if not isinstance(env, gymnasium.Wrapper) or type(env).__name__ != name:
            break
        found.append(Layer(text, env.observation_space, env.action_space))
        env = env.env
    return [Layer("", env.observation_space, env.action_space), *reversed(found)]


def write_layers(folder: Path, plan: Plan) -> None:
    """Write the layers of the plan's task to spaces.json, unless it is there."""
    path = folder / SPACES
    if path.exists():
        return
    task, texts = plan.wrapped_task()
    try:
        layers = layers_of(task, texts)
    finally:
        task.close()
    rows = [
        {"wrapper": each.wrapper, "observation": to_data(each.observation_space), "action": to_data(each.action_space)}
        for each in layers
    ]
    write_json(path, {"layers": rows})


def read_layers(folder: Path, plan: Plan) -> list[Layer]:
    """Read what `write_layers` wrote."""
    path = folder / SPACES
    where = repr(str(path))
    if not path.exists():
        message = f"a folder must have the spaces of its task to load a policy, but there is no {where}"
        raise SaveFileError(f"{message}: `esbas resume {folder}` writes it")
    data = schema.read_json(read_file(path), where)
    schema.check(data, _SHAPE, where)
    layers = [
        Layer(each["wrapper"], from_data(each["observation"], where), from_data(each["action"], where)) for each in data["layers"]
    ]
    texts = [layer.wrapper for layer in layers]
    given = list(plan.wrappers) or [text for text in texts[1:] if read_call(text)[0] in atari_defaults.NAMES]
    if len(layers) > 1 and texts[-1] == plan.recipe.conversion(layers[-2].observation_space):
        given.append(texts[-1])  # `Plan.task` added it
    fits = bool(texts) and not texts[0] and texts[1:] == given[len(given) - len(texts) + 1 :]
    schema.require(fits, "the wrappers are the last ones of the training", where, wrappers=texts[1:], training=given)
    return layers


def applied_layers(layers: Sequence[Layer]) -> tuple[Layer, list[gymnasium.Env[Any, Any]]]:
    """The layer whose observations a policy takes, and the wrappers above it that change observations or actions.

    Wrappers are applied, from the outermost inwards, as long as they have no state. They stand on an environment that only has
    spaces, so the task is not needed.
    """
    applied: list[gymnasium.Env[Any, Any]] = []
    for number in range(len(layers) - 1, 0, -1):
        above, below = layers[number], layers[number - 1]
        wrapped: gymnasium.Env[Any, Any] | None = None
        with suppress(Exception):  # it needs more of the environment than its spaces
            wrapped = wrap(_SpacesOnly(below), above.wrapper)
        same = wrapped is not None and (wrapped.observation_space, wrapped.action_space) == (
            above.observation_space,
            above.action_space,
        )
        if wrapped is None or not same or not _is_stateless(wrapped):
            return above, applied[::-1]
        if isinstance(wrapped, gymnasium.ObservationWrapper | gymnasium.ActionWrapper):
            applied.append(wrapped)
    return layers[0], applied[::-1]


def _is_stateless(wrapper: gymnasium.Env[Any, Any]) -> bool:
    kind: Any = type(wrapper)
    if kind in _PASSING:
        return True
    for base in (gymnasium.ObservationWrapper, gymnasium.ActionWrapper, gymnasium.RewardWrapper):
        if isinstance(wrapper, base):  # one that overrides `step` or `reset` remembers something
            return kind.step is base.step and kind.reset is base.reset and kind.__name__ not in _IMPURE
    return False


class _SpacesOnly(gymnasium.Env[Any, Any]):
    """An environment that has spaces and nothing else."""

    def __init__(self, layer: Layer) -> None:
        self.observation_space, self.action_space = layer.observation_space, layer.action_space
