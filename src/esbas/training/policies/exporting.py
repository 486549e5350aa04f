"""Policies for other programs: Stable-Baselines3's zip, or arrays with a description."""

import io
import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
from esbas._internal.files import write_atomically
from esbas._internal.links import page
from esbas.envs.normalizing import LIMIT, NormalizedObservations
from esbas.envs.wrappers import parts_of
from esbas.errors import InvalidValueError
from esbas.learner import Learner
from esbas.learners import EpsilonGreedy, LinearFQI
from esbas.specs.options import read_call
from esbas.training.folder import TrainingFolder
from esbas.training.normalization import NORMALIZATION
from esbas.training.policies.layers import Layer, applied_layers, read_layers
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.space_data import to_data


@dataclass(frozen=True)
class ExportedPolicy:
    """A policy as the bytes of a file, and how to use it."""

    suffix: str  # of the file
    content: bytes
    usage: str


@dataclass(frozen=True)
class ExportedFile:
    """A policy in a file for use without esbas, and how to use it."""

    path: Path
    usage: str


def export_policy(
    training: TrainingFolder, stored: StoredPolicy, path: Path | None
) -> ExportedFile:
    """Write a policy of a training for use without esbas.

    Args:
        training: where the policy comes from.
        stored: the policy.
        path: of the file; without a suffix, it gets the right one. None: into the folder of the
            training.
    """
    layers = read_layers(training.folder, training.plan)
    learner = stored.build(
        training.plan,
        observation_space=layers[-1].observation_space,
        action_space=layers[-1].action_space,
        isolate=False,
    )
    exported = export(learner, stored, layers)
    wanted = training.folder / "policy" if path is None else path
    target = wanted if wanted.suffix else wanted.with_suffix(exported.suffix)
    is_known = target.suffix in (exported.suffix, ".zip")  # an .npz file is a zip archive
    if not is_known or not target.parent.is_dir():
        message = f"This policy must be written to a {exported.suffix} file in a folder that exists"
        raise InvalidValueError(f"{message}, but got {str(target)!r}.")
    write_atomically(target, exported.content)
    return ExportedFile(target, exported.usage.replace("FILE", repr(str(target))))


def export(learner: Learner, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    """Return the greedy policy of a learner for use without esbas.

    Args:
        learner: with the policy.
        stored: where the policy comes from.
        layers: the spaces of the environment of the training.
    """
    for kind, convert in _CONVERTERS.items():
        if isinstance(learner, _loaded_class(kind)):
            return convert(learner, stored, layers)
    has_states = spaces.is_discrete(layers[-1].observation_space)
    if has_states and isinstance(_greedy(learner), EpsilonGreedy):
        return _table(learner, stored, layers)
    able = "DQNs, Stable-Baselines3 models, tables and linear values can be exported"
    other = f"{stored.learner!r} is another learner ({stored.algorithm})"
    raise InvalidValueError(f"{able}, but {other}: in Python, esbas.load_policy(folder) plays it.")


def _sb3(learner: Any, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    del stored
    buffer = io.BytesIO()
    name = type(learner.model).__name__
    learner.model.save(buffer)
    package = type(learner.model).__module__.partition(".")[0]
    predict = f"{name}.load(FILE).predict(observation, deterministic=True)"
    usage = f"from {package} import {name}; {predict}"
    numbered = _numbered_actions(layers)
    if numbered is not None:
        usage += f" is a number; the actions are {numbered.tolist()}"
    constants = _normalization(layers)
    if constants:
        with zipfile.ZipFile(buffer, "a") as archive:  # other files in it are ignored by `load`
            archive.writestr(NORMALIZATION, json.dumps(constants))
        usage += (
            ", with observation = numpy.clip((observation - mean) / scale, -limit, limit), whose "
            f"constants are in {NORMALIZATION} of this archive"
        )
    return ExportedPolicy(".zip", buffer.getvalue(), usage)


def _dqn(learner: Any, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    (group,) = learner.replay.groups.values()  # the learner was built alone
    parts = group.network.parts(group.state_dict(0)["weights"])  # weight, bias, weight, bias, ...
    arrays = {}
    for index, part in enumerate(parts):
        layer, is_bias = divmod(index, 2)
        name = "bias" if is_bias else "weight"
        arrays[f"{name}{layer}"] = part
    return _arrays({"kind": "network"} | group.network.describe(), arrays, stored, layers)


def _linear(learner: Any, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    if learner.weights is None:
        message = f"{stored.learner!r} cannot be exported, because it has not learnt yet"
        raise InvalidValueError(f"{message}: train it longer.")
    kind = type(learner.features)
    name = getattr(learner.features, "__qualname__", kind.__name__)
    about = {"kind": "linear", "features": f"{kind.__module__}:{name}"}
    return _arrays(about, {"weights": learner.weights}, stored, layers)


def _table(learner: Learner, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    space = layers[-1].observation_space
    policy = _greedy(learner)
    first = int(space.start)
    states = range(first, first + int(space.n))
    table = np.array([policy.values(state) for state in states])  # (states, actions)
    return _arrays({"kind": "table", "first": first}, {"table": table}, stored, layers)


def _arrays(
    about: dict[str, Any], arrays: dict[str, Array], stored: StoredPolicy, layers: list[Layer]
) -> ExportedPolicy:
    description = about | {
        "learner": stored.learner,
        "algorithm": stored.algorithm,
        "seed": stored.seed,
        "steps": stored.steps,
        "observation_space": to_data(layers[-1].observation_space),
        "action_space": to_data(layers[-1].action_space),
        "wrappers": [layer.wrapper for layer in layers[1:]],
    }
    numbered = _numbered_actions(layers)
    if numbered is not None:
        arrays = arrays | {"actions": numbered}
    for name, value in _normalization(layers).items():
        arrays = arrays | {f"observation_{name}": np.array(value)}
    text = np.array(json.dumps(description))
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, description=text, **arrays)
    usage = f"{page('policies')} has a player of a few lines, with NumPy alone"
    return ExportedPolicy(".npz", buffer.getvalue(), usage)


def _numbered_actions(layers: list[Layer]) -> Array | None:
    """Return the environment's action for each number, if wrappers number them; None otherwise.

    A Tuple or Dict becomes a row with the numbers of all its parts, in the order of the space.
    """
    numbers = layers[-1].action_space
    below, applied = applied_layers(layers)
    returning = [each for each in reversed(applied) if isinstance(each, gymnasium.ActionWrapper)]
    if not returning or not spaces.is_discrete(numbers):
        return None
    actions = []
    for number in range(int(numbers.n)):
        action: Any = number
        for wrapper in returning:
            action = wrapper.action(action)
        actions.append(action)
    space = below.action_space
    if isinstance(space, gymnasium.spaces.Tuple | gymnasium.spaces.Dict):
        return np.array([_row(space, action) for action in actions])
    return np.array(actions, space.dtype)


def _row(space: Any, action: Any) -> list[int]:
    """Return the numbers of all parts of an action."""
    if not isinstance(space, gymnasium.spaces.Tuple | gymnasium.spaces.Dict):
        return [int(each) for each in np.ravel(action)]
    numbers: list[int] = []
    for key, part in parts_of(space):
        numbers += _row(part, action[key])
    return numbers


def _normalization(layers: list[Layer]) -> dict[str, Any]:
    """Return the constants by which observations are normalized; empty if they are not.

    Mean and scale have the shape of an observation.
    """
    if read_call(layers[-1].wrapper or "none")[0] != NormalizedObservations.__name__:
        return {}
    wrapper: Any = applied_layers(layers)[1][-1]
    return {"mean": wrapper.mean.tolist(), "scale": wrapper.scale.tolist(), "limit": LIMIT}


def _greedy(learner: Any) -> Any:
    return learner.greedy_policy() if hasattr(learner, "greedy_policy") else None


def _loaded_class(name: str) -> Any:
    """Return the class `module:Class`, if its module is imported.

    Otherwise, no learner is an instance of it, and the result matches nothing.
    """
    module, _, attribute = name.partition(":")
    return getattr(sys.modules.get(module), attribute, ())


_CONVERTERS: dict[str, Callable[[Any, StoredPolicy, list[Layer]], ExportedPolicy]] = {
    "esbas.learners.sb3.learner:SB3Learner": _sb3,
    "esbas.learners.dqn.learner:DQN": _dqn,
    f"{LinearFQI.__module__}:LinearFQI": _linear,
}
