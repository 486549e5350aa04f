"""The spaces of an environment and of its wrappers, saved with a training.

With them, policies can act without the environment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import wrappers

from esbas._internal import schema
from esbas._internal.files import read_file
from esbas.errors import InvalidValueError, SaveFileError
from esbas.reporting.files import write_json
from esbas.specs import atari_defaults
from esbas.specs.envs import wrap
from esbas.specs.options import read_call
from esbas.specs.sources import label_of
from esbas.training.policies.space_data import from_data, to_data
from esbas.training.runs.plan import Plan

SPACES = "spaces.json"
_SHAPE = {"layers": [{"wrapper": str, "observation": dict, "action": dict}]}
_PASSING = (
    wrappers.TimeLimit,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
)
# The observations of these depend on more than the observation below.
_IMPURE = ("NormalizeObservation", "AddRenderObservation")


@dataclass(frozen=True)
class Layer:
    """The spaces above one wrapper; those of the environment itself if `wrapper` is empty."""

    wrapper: str
    observation_space: Any
    action_space: Any


def layers_of(env: gymnasium.Env[Any, Any], texts: Sequence[Any]) -> list[Layer]:
    """Return the layers of an environment with these wrappers, the innermost first.

    They start above a text that added several wrappers.
    """
    found: list[Layer] = []
    for text in reversed(texts):
        if not isinstance(text, str):
            break  # an object, which a folder cannot name
        name = read_call(text)[0].rpartition(":")[2].rpartition(".")[2]
        if not isinstance(env, gymnasium.Wrapper) or type(env).__name__ != name:
            break
        found.append(Layer(text, env.observation_space, env.action_space))
        env = env.env
    return [Layer("", env.observation_space, env.action_space), *reversed(found)]


def write_layers(folder: Path, layers: Sequence[Layer]) -> None:
    """Write the layers of a training's environment to spaces.json."""
    rows = []
    for layer in layers:
        row = {
            "wrapper": layer.wrapper,
            "observation": to_data(layer.observation_space),
            "action": to_data(layer.action_space),
        }
        rows.append(row)
    write_json(folder / SPACES, {"layers": rows})


def read_layers(folder: Path, plan: Plan) -> list[Layer]:
    """Read what `write_layers` wrote."""
    path = folder / SPACES
    where = repr(str(path))
    if not path.exists():
        message = f"A policy needs the spaces of its environment, but there is no {where}"
        raise SaveFileError(f"{message}: restore an earlier copy of the folder.")
    data = schema.read_json(read_file(path), where)
    schema.check(data, _SHAPE, where)
    layers = []
    for each in data["layers"]:
        observation_space = from_data(each["observation"], where)
        action_space = from_data(each["action"], where)
        layers.append(Layer(each["wrapper"], observation_space, action_space))
    _check_wrappers(layers, plan, where)
    return layers


def _check_wrappers(layers: Sequence[Layer], plan: Plan, where: str) -> None:
    """Raise an error unless the layers have the last wrappers of the training.

    Without this check, spaces.json could name modules, which would then be imported although the
    user does not trust the folder.
    """
    texts = [layer.wrapper for layer in layers]
    wrappers = texts[1:]
    expected = [each if isinstance(each, str) else label_of(each) for each in plan.config.wrappers]
    if not expected:
        expected = [text for text in wrappers if read_call(text)[0] in atari_defaults.NAMES]
    if plan.normalization is None:
        expected += _added(layers, plan)
    else:
        expected += [*_added(layers[:-1], plan), plan.normalization.wrapper]
    starts_with_env = bool(texts) and not texts[0]
    if not starts_with_env or wrappers != expected[len(expected) - len(wrappers) :]:
        found = f"{schema.short(wrappers)} instead of the last ones of {schema.short(expected)}"
        raise InvalidValueError(f"The wrappers in {where} are {found}: {schema.REMEDY}.")


def _added(layers: Sequence[Layer], plan: Plan) -> list[str]:
    """Return the last wrappers, as far as `Plan.fitted` added them."""
    for number, below in enumerate(layers):
        above = [layer.wrapper for layer in layers[number + 1 :]]
        added = plan.portfolio.conversions(below.observation_space, below.action_space)
        if above and above == list(added):
            return above
    return []


def applied_layers(layers: Sequence[Layer]) -> tuple[Layer, list[gymnasium.Env[Any, Any]]]:
    """Return the layer whose observations a policy takes, and the wrappers to apply above it.

    Wrappers are applied, from the outermost inwards, as long as they have no state. They stand on
    an environment that only has spaces, so the true one is not needed. Wrappers that change neither
    observations nor actions are left out.
    """
    applied: list[gymnasium.Env[Any, Any]] = []  # the outermost first
    for number in range(len(layers) - 1, 0, -1):
        above = layers[number]
        wrapped = _wrapped_spaces(layers[number - 1], above)
        if wrapped is None or not _is_stateless(wrapped):
            return above, applied[::-1]
        if isinstance(wrapped, gymnasium.ObservationWrapper | gymnasium.ActionWrapper):
            applied.append(wrapped)
    return layers[0], applied[::-1]


def _wrapped_spaces(below: Layer, above: Layer) -> gymnasium.Env[Any, Any] | None:
    """Return the wrapper of a layer without an environment.

    None if the wrapper needs more of the environment than its spaces.
    """
    try:
        wrapped: gymnasium.Env[Any, Any] = wrap(_SpacesOnly(below), above.wrapper)
        has_same_observations = wrapped.observation_space == above.observation_space
        has_same_actions = wrapped.action_space == above.action_space
    except Exception:
        return None
    return wrapped if has_same_observations and has_same_actions else None


def _is_stateless(wrapper: gymnasium.Env[Any, Any]) -> bool:
    kind: Any = type(wrapper)
    if kind in _PASSING:
        return True
    for base in (gymnasium.ObservationWrapper, gymnasium.ActionWrapper, gymnasium.RewardWrapper):
        if isinstance(wrapper, base):
            # One that overrides `step` or `reset` remembers something.
            overrides = kind.step is not base.step or kind.reset is not base.reset
            return not overrides and kind.__name__ not in _IMPURE
    return False


class _SpacesOnly(gymnasium.Env[Any, Any]):
    """An environment that has spaces and nothing else."""

    def __init__(self, layer: Layer) -> None:
        self.observation_space = layer.observation_space
        self.action_space = layer.action_space
