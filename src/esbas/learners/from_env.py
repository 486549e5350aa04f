"""What the `for_env` methods of learners share: spaces, options and names."""

import inspect
from collections.abc import Mapping
from typing import Any

from esbas._internal import schema, spaces
from esbas.errors import InvalidValueError, SpaceError, unknown
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.naming import derived_name, title_of

SEED = "seed"
"""The option that is not part of names, so that runs with different seeds have the same names."""


def spaces_of(env: Any) -> tuple[Any, Any]:
    """Return the observation space and the action space of a single environment."""
    if not (hasattr(env, "observation_space") and hasattr(env, "action_space")):
        raise InvalidValueError(
            "An environment must have `observation_space` and `action_space`, "
            f"but got {schema.short(env)}: pass for example gymnasium.make('CartPole-v1')."
        )
    if spaces.is_vector(env):
        raise InvalidValueError(
            f"Vector environments are not supported, but got {type(env).__name__}: "
            "pass a single environment."
        )
    return env.observation_space, env.action_space


def number_of_observations(space: Any, owner: str) -> int:
    """Return n if the observations are 0, ..., n - 1."""
    if _counts_from_0(space):
        return int(space.n)
    remedy = (
        "wrap the environment in esbas.envs.DiscreteObservations if it has discrete parts only."
    )
    if hasattr(space, "low") and not spaces.is_discrete(space):
        remedy = (
            "use a learner for vectors such as DQN, or number them with a wrapper such as "
            "gymnasium.wrappers.DiscretizeObservation."
        )
    raise SpaceError(
        f"{owner} needs the observations 0, ..., n - 1, "
        f"but the observation space is {shown(space)}: {remedy}"
    )


def number_of_actions(space: Any, owner: str) -> int:
    """Return n if the actions are 0, ..., n - 1."""
    if _counts_from_0(space):
        return int(space.n)
    remedy = "wrap the environment in esbas.envs.DiscreteActions if it has discrete parts only."
    if hasattr(space, "low") and not spaces.is_discrete(space):
        remedy = "use a learner for continuous actions, such as SB3Learner with 'sac'."
    raise SpaceError(
        f"{owner} needs the actions 0, ..., n - 1, but the action space is {shown(space)}: {remedy}"
    )


def require_arrays(space: Any, owner: str) -> None:
    """Raise an error unless observations are numbers or arrays."""
    if not (spaces.is_discrete(space) or getattr(space, "shape", None) is not None):
        raise SpaceError(
            f"{owner} needs observations that are numbers or arrays, "
            f"but the observation space is {shown(space)}: wrap the environment, "
            "for instance in gymnasium.wrappers.FlattenObservation."
        )


def replay_for(env: Any, replay: SharedReplay | None) -> SharedReplay:
    """Return the given memory, or a new one, for the spaces of the environment."""
    if replay is None:
        return SharedReplay(env)
    for kind in ("observation_space", "action_space"):
        own = getattr(replay, kind)
        given = getattr(env, kind)
        if not spaces.same(own, given):
            raise SpaceError(
                f"`replay` must have the {kind} of the environment, {shown(given)}, "
                f"but has {shown(own)}: pass SharedReplay(env)."
            )
    return replay


SET_BY_FOR_ENV = "states", "actions", "observation_space", "action_space", "replay"
"""The arguments of learners that `for_env` sets."""


def check_options(learner_class: type, options: Mapping[str, Any]) -> None:
    """Raise an error for an option that the class does not have, or that `for_env` sets."""
    known = []
    takes_any = False
    for parameter in inspect.signature(learner_class).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in SET_BY_FOR_ENV:
            known.append(parameter.name)
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
    for option in options:
        if option in SET_BY_FOR_ENV or not (option in known or takes_any):
            raise unknown(f"option of {learner_class.__name__}", option, known)


def name_for(
    learner_class: type, name: str | None, options: Mapping[str, Any], *, title: str | None = None
) -> str:
    """Return the given name, or the title of the class and the given options except the seed."""
    if name is not None:
        return name
    if title is None:
        title = title_of(learner_class)
    given = {option: value for option, value in options.items() if option != SEED}
    return derived_name(title, given)


def shown(space: Any) -> str:
    """Return a space for a message: on one line, and never long."""
    text = " ".join(str(space).split())
    return text if len(text) <= 150 else f"{text[:150]}..."


def _counts_from_0(space: Any) -> bool:
    return spaces.is_discrete(space) and int(space.start) == 0
