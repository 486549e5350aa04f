"""Policies in formats that other programs read: Stable-Baselines3's zip, or arrays with a description."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import spaces
from esbas.columns import Array
from esbas.errors import InvalidValueError
from esbas.learner import Learner
from esbas.learners import EpsilonGreedy, LinearFQI
from esbas.training.policies.layers import Layer
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.space_data import to_data


@dataclass(frozen=True)
class ExportedPolicy:
    """A policy as the bytes of a file, and how to use it."""

    suffix: str  # of the file
    content: bytes
    usage: str


def export(learner: Learner, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    """The greedy policy of a learner for use without esbas; `layers` are those of the training."""
    for kind, convert in _CONVERTERS.items():
        if isinstance(learner, _loaded_class(kind)):
            return convert(learner, stored, layers)
    if spaces.is_discrete(layers[-1].observation_space) and isinstance(_greedy(learner), EpsilonGreedy):
        return _table(learner, stored, layers)
    message = (
        f"DQNs, Stable-Baselines3 models, tables and linear values can be exported, but {stored.learner!r} is another learner"
    )
    raise InvalidValueError(f"{message} ({stored.algorithm}): in Python, esbas.load_policy(folder) plays it")


def _sb3(learner: Any, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    del stored, layers
    buffer, name = io.BytesIO(), type(learner.model).__name__
    learner.model.save(buffer)
    package = type(learner.model).__module__.partition(".")[0]
    return ExportedPolicy(
        ".zip", buffer.getvalue(), f"from {package} import {name}; {name}.load(FILE).predict(observation, deterministic=True)"
    )


def _dqn(learner: Any, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    (group,) = learner.replay.groups.values()  # the learner was built alone
    parts = group.network.parts(group.state_dict(0)["weights"])
    arrays = {f"{name}{k // 2}": part for k, part in enumerate(parts) for name in [("weight", "bias")[k % 2]]}
    return _arrays({"kind": "network"} | group.network.describe(), arrays, stored, layers)


def _linear(learner: Any, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    if learner.weights is None:
        raise InvalidValueError(f"a policy must have learnt to be exported, but {stored.learner!r} has not: train it longer")
    features = f"{type(learner.features).__module__}:{getattr(learner.features, '__qualname__', type(learner.features).__name__)}"
    return _arrays({"kind": "linear", "features": features}, {"weights": learner.weights}, stored, layers)


def _table(learner: Learner, stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    space, policy = layers[-1].observation_space, _greedy(learner)
    first = int(space.start)
    table = np.array([policy.values(state) for state in range(first, first + int(space.n))])  # (states, actions)
    return _arrays({"kind": "table", "first": first}, {"table": table}, stored, layers)


def _arrays(about: dict[str, Any], arrays: dict[str, Array], stored: StoredPolicy, layers: list[Layer]) -> ExportedPolicy:
    origin = {"learner": stored.learner, "algorithm": stored.algorithm, "seed": stored.seed, "steps": stored.steps}
    task = {
        "observation_space": to_data(layers[-1].observation_space),
        "action_space": to_data(layers[-1].action_space),
        "wrappers": [layer.wrapper for layer in layers[1:]],
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, description=np.array(json.dumps(about | origin | task)), **arrays)
    return ExportedPolicy(".npz", buffer.getvalue(), "docs/policies.md has a player of a few lines, with NumPy alone")


def _greedy(learner: Any) -> Any:
    return learner.greedy_policy() if hasattr(learner, "greedy_policy") else None


def _loaded_class(name: str) -> Any:
    """The class `module:Class`, if something has imported its module: otherwise no learner is an instance of it."""
    module, _, attribute = name.partition(":")
    return getattr(sys.modules.get(module), attribute, ())


_CONVERTERS: dict[str, Callable[[Any, StoredPolicy, list[Layer]], ExportedPolicy]] = {
    "esbas.learners.sb3.learner:SB3Learner": _sb3,
    "esbas.learners.deep.dqn:DQN": _dqn,
    f"{LinearFQI.__module__}:LinearFQI": _linear,
}
