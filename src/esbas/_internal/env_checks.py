"""Checks of what an environment returns, so that its errors are not blamed on learners.

In the first episodes, everything is checked before a learner sees it, which takes several
microseconds per step. Later, the observations of an episode are checked after its end: one by one
if a learner failed in it, otherwise together, which takes a few microseconds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
from esbas.errors import BrokenEnvError

FULL_EPISODES = 3
"""Episodes in which every step is checked."""
FULL_STEPS = 1000
"""Steps that are checked at most in these episodes."""
_FIVE = "5 values (observation, reward, terminated, truncated, info)"
_OLD_STEP = "as in the old Gym API: return `terminated` and `truncated` instead of `done`"
_SHORT = 32  # numbers of an observation, up to which a loop in Python is faster than NumPy
_LONGEST_TEXT = 200  # characters of a value in a message


def broken(env: Any, problem: str) -> BrokenEnvError:
    """Return the error for an environment.

    Args:
        env: the environment.
        problem: what it does, and what to do about it, as the end of a sentence.
    """
    return BrokenEnvError(f"The environment {_name_of(env)!r} {problem}.")


def wrong_step(env: Any, result: Any) -> BrokenEnvError:
    """Return the error for what `step` returned, if it is not a tuple of five."""
    if not isinstance(result, tuple):
        found = f"{_short(result)}: return a tuple of them"
    elif len(result) == 4:
        found = f"4, {_OLD_STEP}"
    else:
        found = f"{len(result)}, {_short(result)}: return a tuple of 5"
    return broken(env, f"must return {_FIVE} in `step`, but returned {found}")


def wrong_reward(env: Any, reward: Any) -> BrokenEnvError:
    """Return the error for a reward that is not a number."""
    found = _short(reward)
    return broken(env, f"must return rewards that are numbers, but returned {found}: fix `step`")


class EnvChecks:
    """The checks of one run.

    Args:
        env: the environment.
    """

    def __init__(self, env: Any) -> None:
        observation_space: Any = getattr(env, "observation_space", None)
        self._env = env
        self._space = observation_space
        self._episodes = 0  # that have started
        self._steps = 0  # that were checked one by one
        self.is_full = True  # whether every step of this episode is checked
        self._shape: tuple[int, ...] | None = None  # of an observation, where all have the same
        self._kinds = ""  # of types of arrays that are allowed then
        self._is_state: Callable[[Any], bool] | None = None  # for discrete spaces
        if spaces.is_discrete(observation_space):
            self._is_state = spaces.membership(observation_space)
        if _is_array_space(observation_space):
            self._shape = tuple(observation_space.shape)
            self._kinds = _kinds_for(observation_space.dtype)

    def reset(self, env: Any, *, seed: int) -> Any:
        """Reset the environment and return the first observation."""
        try:
            result = env.reset(seed=seed)
        except TypeError as error:
            if "unexpected keyword argument 'seed'" not in str(error):
                raise
            remedy = "define it as reset(self, *, seed=None, options=None)"
            raise self._broken(
                f"must take the argument `seed` in `reset`, but does not: {remedy}"
            ) from error
        is_pair = isinstance(result, tuple) and len(result) == 2
        # An observation with two parts must not be taken for the pair.
        if not is_pair or not isinstance(result[1], dict | Mapping):  # `dict` first: it is faster
            raise self._broken(
                "must return an observation and a dictionary in `reset`, but returned "
                f"{_short(result)}: return `observation, {{}}`"
            )
        observation = result[0]
        if self.is_full:
            self._check(observation, "reset")
            self._episodes += 1
            self.is_full = self._episodes <= FULL_EPISODES and self._steps < FULL_STEPS
        return observation

    def checking(self, env: Any) -> "_CheckedEnv":
        """Return an environment that checks every step."""
        return _CheckedEnv(env, self)

    def step(self, env: Any, action: Any) -> Any:
        """Make a step, and check what the environment returns."""
        try:
            result = env.step(action)
        except ValueError as error:  # a wrapper around an environment of the old API
            if "to unpack (expected 5, got 4)" not in str(error):
                raise
            raise self._broken(
                f"must return {_FIVE} in `step`, but returned 4, {_OLD_STEP}"
            ) from error
        self._steps += 1
        if self._steps > FULL_STEPS:
            return result
        if not isinstance(result, tuple) or len(result) != 5:
            raise wrong_step(self._env, result)
        observation, reward, terminated, truncated, _ = result
        self._check(observation, "step")
        try:
            float(reward)
        except (TypeError, ValueError) as error:
            raise wrong_reward(self._env, reward) from error
        # Most environments return bools, for which the exact check is not needed.
        if type(terminated) is not bool:
            self._check_flag("terminated", terminated)
        if type(truncated) is not bool:
            self._check_flag("truncated", truncated)
        return result

    def check_episode(self, observations: Array, *, suspicious: bool) -> None:
        """Check the observations of an episode that has ended.

        Args:
            observations: all of them, (T + 1, ...).
            suspicious: whether a learner failed in it, so that every observation is checked.
        """
        kind = observations.dtype.kind
        if self._shape is not None:
            is_like_space = observations.shape[1:] == self._shape and kind in self._kinds
            suspicious = suspicious or not is_like_space
        if kind == "f" and not suspicious:
            # Four times as fast as `np.isfinite`. A sum that overflows leads to the exact check.
            flat = observations.ravel()
            with np.errstate(all="ignore"):
                suspicious = not math.isfinite(flat.dot(flat))
        if suspicious:
            for observation in observations:
                self._check(observation, "step")

    def _check_flag(self, name: str, flag: Any) -> None:
        if not _is_flag(flag):
            raise self._broken(
                f"must return True or False as `{name}`, but returned {_short(flag)}: fix `step`"
            )

    def _check(self, observation: Any, where: str) -> None:
        if self._is_usual(observation):
            return
        problem = _problem(observation, self._space)
        if problem:
            raise self._broken(
                f"must return observations {problem}: fix `{where}` or `observation_space`"
            )

    def _is_usual(self, observation: Any) -> bool:
        """Return whether it is a number of a discrete space, or a few finite floats of a Box.

        The check of everything else takes several times as long.
        """
        if self._is_state is not None:
            return self._is_state(observation)
        if type(observation) is not np.ndarray or observation.shape != self._shape:
            return False
        if observation.ndim != 1 or observation.size > _SHORT or observation.dtype.kind != "f":
            return False
        return "f" in self._kinds and all(map(math.isfinite, observation.tolist()))

    def _broken(self, problem: str) -> BrokenEnvError:
        return broken(self._env, problem)


class _CheckedEnv:
    """Makes steps with all checks."""

    def __init__(self, env: Any, checks: EnvChecks) -> None:
        self._env = env
        self._checks = checks
        self.spec = getattr(env, "spec", None)
        self.unwrapped = getattr(env, "unwrapped", env)

    def step(self, action: Any) -> Any:
        return self._checks.step(self._env, action)


def _problem(value: Any, space: Any) -> str:
    """Return what is wrong with an observation, as the end of a sentence; "" if nothing is."""
    parts = getattr(space, "spaces", None)
    if isinstance(parts, Mapping):
        return _problem_of_dict(value, parts)
    if isinstance(parts, Sequence):
        return _problem_of_tuple(value, parts)
    if spaces.is_discrete(space):
        if spaces.membership(space)(value):
            return ""
        return f"in {space}, but returned {_short(value)}"
    if space is None or _is_array_space(space):
        return _problem_of_array(value, space)
    contains = getattr(space, "contains", None)
    if contains is None or contains(value):
        return ""
    return f"in {_short(space)}, but returned {_short(value)}"


def _problem_of_dict(value: Any, parts: Mapping[Any, Any]) -> str:
    if not isinstance(value, Mapping) or value.keys() != parts.keys():
        returned = f"the keys {list(value)}" if isinstance(value, Mapping) else _short(value)
        return f"that are dictionaries with the keys {list(parts)}, but returned {returned}"
    for key, part in parts.items():
        problem = _problem(value[key], part)
        if problem:
            return f"with a part {key!r} {problem}"
    return ""


def _problem_of_tuple(value: Any, parts: Sequence[Any]) -> str:
    if not isinstance(value, tuple | list) or len(value) != len(parts):
        return f"that are tuples of {len(parts)} parts, but returned {_short(value)}"
    for index, part in enumerate(parts):
        problem = _problem(value[index], part)
        if problem:
            return f"with a part {index} {problem}"
    return ""


def _problem_of_array(value: Any, space: Any) -> str:
    """Return what is wrong with an array, or with an observation without a space.

    The bounds of numbers with a point are not checked: environments often leave them a bit, and
    learners do not need them.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return f"that are arrays of numbers, but returned {_short(value)}"
    if space is not None:
        shape = tuple(space.shape)
        if array.shape != shape:
            return f"of the shape {shape} of its space, but returned one of the shape {array.shape}"
        if array.dtype.kind not in _kinds_for(space.dtype):
            return f"of the type {space.dtype} of its space, but returned {array.dtype}"
        if array.dtype.kind in "iu" and hasattr(space, "low"):
            outside = (array < space.low) | (array > space.high)
            if outside.any():
                return f"within the bounds of its space, but returned {array[outside][0]}"
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        found = array[~np.isfinite(array)].flat[0]
        return f"that are finite, but returned {found}"
    return ""


def _is_array_space(space: Any) -> bool:
    """Return whether the elements are arrays of one shape, as in a Box."""
    has_shape = getattr(space, "shape", None) is not None
    return has_shape and getattr(space, "dtype", None) is not None and hasattr(space, "low")


def _kinds_for(dtype: Any) -> str:
    """Return the kinds of types whose numbers fit a space: whole numbers also fit one with a point.

    Another precision is fine, such as float64 in a space of float32.
    """
    return "fiub" if np.dtype(dtype).kind == "f" else "iub"


def _is_flag(value: Any) -> bool:
    """Return whether this is True or False, or a whole number instead."""
    array = np.asarray(value)
    return array.ndim == 0 and array.dtype.kind in "biu"


def _name_of(env: Any) -> str:
    """Return the id of a registered environment, or the class of another."""
    spec = getattr(env, "spec", None)
    if spec is not None:
        return str(spec.id)
    return type(getattr(env, "unwrapped", env)).__name__


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
