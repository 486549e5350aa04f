"""Trajectories (the paper's ε), and the set of them that all learners share (the paper's D)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array, ReadOnlyDict, frozen, require_alike
from esbas._internal.schema import ArrayOf
from esbas.errors import InvalidValueError, UnknownNameError, counted, require


class Transition(NamedTuple):
    """One step of an episode."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool
    # Log-probability (or log-density) of the action under the acting policy; NaN if unknown
    log_prob: float = math.nan
    stream: int = 0  # the environment that the step comes from, where several run at a time


class Transitions(NamedTuple):
    """Many steps, as columns of equal length."""

    observations: Array  # (N, ...)
    actions: Array  # (N, ...)
    rewards: Array  # (N,)
    next_observations: Array  # (N, ...)
    terminated: Array  # (N,) bool: the episode ends here, do not bootstrap
    log_probs: Array  # (N,)
    trajectory: Array  # (N,) int: the number of the trajectory that the step belongs to


class Infos(ReadOnlyDict):
    """The kept keys of the info of each step, as columns. It cannot be changed."""

    def __missing__(self, key: object) -> Array:
        raise UnknownNameError(
            f"This trajectory has no info {key!r}: declare it where the objective is made, "
            f"as in esbas.Objective(..., infos=({key!r},))."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Infos, (dict(self),)


NO_INFOS = Infos()


class InfoRecorder:
    """Keeps chosen keys of the info of each step of an episode.

    Args:
        keys: the keys. Their values must be numbers or booleans.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        require(
            not isinstance(keys, str),
            f"`infos` must be a list of keys, but got {keys!r}: put it in a list.",
        )
        self._columns: dict[str, list[float]] = {key: [] for key in keys}

    def add(self, info: Any) -> None:
        """Add the info of a step. A key that it does not have is NaN there."""
        if not isinstance(info, Mapping):
            raise InvalidValueError(
                f"The info of a step must be a dictionary, but got {schema.short(info)}: "
                "fix `env.step`."
            )
        for key, column in self._columns.items():
            column.append(_info_number(key, info[key]) if key in info else math.nan)

    def columns(self) -> dict[str, Array]:
        """Return the values of all steps so far, by key."""
        return {key: frozen(column) for key, column in self._columns.items()}


_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def _info_number(key: str, value: Any) -> float:
    """Return a value of an info as a number; an error if it is neither a number nor a boolean."""
    if isinstance(value, _NUMBERS):
        if value != value:  # NaN would count as a missing key, and a cost of NaN as no cost
            raise InvalidValueError(
                f"The info {key!r} must not be NaN: fix it in the environment, or leave the key "
                "out at steps without a value."
            )
        try:
            return float(value)
        except OverflowError:  # a whole number with hundreds of digits
            pass
    raise InvalidValueError(
        f"The info {key!r} must be a number that a float can hold, or a boolean, but got "
        f"{_shown(value)} of type {type(value).__name__}: convert it in a wrapper of the "
        "environment, or choose another key."
    )


def _shown(value: Any) -> str:
    """Return an unexpected value for a message: on one line, and not long."""
    if isinstance(value, int):
        return schema.short(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."


@dataclass(frozen=True, eq=False, slots=True)
class Trajectory:
    """One episode. Its arrays are read-only."""

    observations: Array  # (T + 1, ...): the last one is where the episode ended
    actions: Array  # (T, ...)
    rewards: Array  # (T,)
    terminated: bool
    truncated: bool
    # (T,): of each action under the acting policy, NaN if unknown
    log_probs: Array = field(default_factory=partial(np.empty, 0))
    # (T,) by key: the numbers in the info of each step that are kept, NaN where the key is missing
    infos: Mapping[str, Array] = field(default_factory=lambda: NO_INFOS)

    def __post_init__(self) -> None:
        steps = len(self.rewards)
        log_probs = self.log_probs if len(self.log_probs) else np.full(steps, math.nan)
        store = object.__setattr__  # the dataclass is frozen
        store(self, "observations", frozen(self.observations))
        store(self, "actions", frozen(self.actions))
        store(self, "rewards", frozen(np.asarray(self.rewards, float)))
        store(self, "log_probs", frozen(np.asarray(log_probs, float)))
        if steps == 0 or len(self.observations) != steps + 1:
            raise InvalidValueError(
                "A trajectory must have at least one step, and one observation more than rewards, "
                f"but got {len(self.observations)} observations and {steps} rewards."
            )
        if len(self.actions) != steps or len(self.log_probs) != steps:
            raise InvalidValueError(
                "A trajectory must have one action and one log-probability per reward, but got "
                f"{len(self.actions)} actions and {len(self.log_probs)} log-probabilities "
                f"for {steps} rewards."
            )
        if not np.isfinite(self.rewards).all():
            raise InvalidValueError(
                f"Rewards must be finite, but got {self.rewards}: fix the environment."
            )
        if self.infos is not NO_INFOS:
            store(self, "infos", _checked_infos(self.infos, steps))

    def __len__(self) -> int:
        return len(self.rewards)

    def transitions(self) -> Iterator[Transition]:
        """Yield the steps in order; `terminated` and `truncated` are set on the last one."""
        last = len(self.rewards) - 1
        # There is one observation more than steps, which `zip` leaves out.
        columns = zip(
            self.observations,
            self.actions,
            self.rewards,
            self.observations[1:],
            self.log_probs,
            strict=False,
        )
        for t, (observation, action, reward, next_observation, log_prob) in enumerate(columns):
            is_last = t == last
            yield Transition(
                observation,
                action,
                reward,
                next_observation,
                is_last and self.terminated,
                is_last and self.truncated,
                log_prob,
            )


class TrajectorySet:
    """All trajectories so far, in order. Append-only; what it hands out is read-only."""

    def __init__(self) -> None:
        self._trajectories: list[Trajectory] = []
        self._arms: list[str] = []
        self._kinds: tuple[Any, ...] = ()  # types and shapes of observations and actions

    @property
    def arms(self) -> tuple[str, ...]:
        """The arm that controlled each trajectory."""
        return tuple(self._arms)

    def append(self, trajectory: Trajectory, *, arm: str = "") -> None:
        """Add a trajectory that `arm` controlled.

        Its observations and actions must have the shape and type of the others.
        """
        observations = trajectory.observations
        actions = trajectory.actions
        kinds = observations.dtype, observations.shape[1:], actions.dtype, actions.shape[1:]
        if not self._trajectories:
            self._kinds = kinds
        elif kinds != self._kinds:
            trajectory = _alike(trajectory, self._trajectories[0])
        self._trajectories.append(trajectory)
        self._arms.append(arm)

    def read_only(self) -> "TrajectorySet":
        """Return a view of this set that cannot be changed."""
        return _ReadOnlySet(self)

    def __repr__(self) -> str:
        return f"<TrajectorySet of {counted(len(self), 'episode')}>"

    def __len__(self) -> int:
        return len(self._trajectories)

    def __getitem__(self, i: int) -> Trajectory:
        return self._trajectories[i]

    def since(self, i: int) -> list[Trajectory]:
        """Return the trajectories from number i on: what is new since the set had i of them."""
        return self._trajectories[i:]

    def by(self, arm: str) -> list[Trajectory]:
        """Return the trajectories that `arm` controlled."""
        found = []
        for trajectory, name in zip(self._trajectories, self._arms, strict=True):
            if name == arm:
                found.append(trajectory)
        return found

    def transitions(self, since: int = 0) -> Transitions:
        """Return all steps of the trajectories from number `since` on, as columns."""
        require(
            0 <= since < len(self),
            f"`since` must be at least 0 and less than the number of trajectories, {len(self)}, "
            f"but got {since!r}.",
        )
        new = self._trajectories[since:]
        lengths = np.array([len(each) for each in new])
        terminated = np.zeros(lengths.sum(), bool)
        terminated[lengths.cumsum() - 1] = [each.terminated for each in new]
        columns = Transitions(
            observations=np.concatenate([each.observations[:-1] for each in new]),
            actions=np.concatenate([each.actions for each in new]),
            rewards=np.concatenate([each.rewards for each in new]),
            next_observations=np.concatenate([each.observations[1:] for each in new]),
            terminated=terminated,
            log_probs=np.concatenate([each.log_probs for each in new]),
            trajectory=np.repeat(np.arange(since, len(self)), lengths),
        )
        for column in columns:
            column.setflags(write=False)
        return columns

    def state_dict(self) -> dict[str, Any]:
        """Return everything as arrays and plain data."""
        lengths = [len(each) for each in self._trajectories]
        ended = [(each.terminated, each.truncated) for each in self._trajectories]
        columns = {}
        if self._trajectories:  # otherwise, the shapes of the columns are unknown
            for name in _COLUMNS:
                columns[name] = np.concatenate([getattr(each, name) for each in self._trajectories])
        state = {
            "arms": list(self._arms),
            "lengths": np.array(lengths, np.int64),
            "ended": np.array(ended, bool).reshape(-1, 2),
            "columns": columns,
        }
        infos = _joined_infos(self._trajectories)
        if infos:  # without any, the state is that of versions that had no infos
            state["infos"] = infos
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        A state that does not fit raises an error and changes nothing.
        """
        lengths = _checked_lengths(state)
        columns = {name: frozen(column) for name, column in state["columns"].items()}
        infos = _split_infos(state.get("infos", {}), lengths)
        loaded = TrajectorySet()
        first = 0
        for i, (arm, steps) in enumerate(zip(state["arms"], lengths, strict=True)):
            end = first + steps
            terminated, truncated = state["ended"][i].tolist()
            trajectory = Trajectory(
                # Each trajectory before this one has one observation more than steps.
                observations=columns["observations"][first + i : end + i + 1],
                actions=columns["actions"][first:end],
                rewards=columns["rewards"][first:end],
                terminated=terminated,
                truncated=truncated,
                log_probs=columns["log_probs"][first:end],
                infos=infos[i],
            )
            loaded.append(trajectory, arm=arm)
            first = end
        # The lists stay the same objects, because read-only views share them.
        self._trajectories[:] = loaded._trajectories
        self._arms[:] = loaded._arms
        self._kinds = loaded._kinds


class _ReadOnlySet(TrajectorySet):
    """A view for learners, which must not change what all share."""

    def __init__(self, data: TrajectorySet) -> None:
        self._trajectories = data._trajectories
        self._arms = data._arms
        self._kinds = ()

    def _refuse(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "A learner must not change the shared trajectories: use another TrajectorySet."
        )

    append = load_state_dict = _refuse


_COLUMNS = "observations", "actions", "rewards", "log_probs"


def _checked_lengths(state: Any) -> list[int]:
    """Return the lengths of the saved trajectories.

    Raises an error unless all arrays of the state have the sizes that follow from them.
    """
    where = "the saved trajectories"
    shape = {
        "arms": [str],
        "lengths": ArrayOf("iu", (None,)),
        "ended": np.ndarray,
        "columns": {str: np.ndarray},
    }
    if isinstance(state, dict) and "infos" in state:  # older versions kept none
        shape["infos"] = {str: {"kept": np.ndarray, "values": np.ndarray}}
    schema.check(state, shape, where)
    lengths: list[int] = state["lengths"].tolist()
    n = len(state["arms"])
    require(
        len(lengths) == n and min(lengths, default=1) >= 1,
        f"The saved trajectories must have one length >= 1 per arm, but there are {n} arms "
        f"and the lengths are {schema.short(lengths)}: {schema.REMEDY}.",
    )
    schema.check(state["ended"], ArrayOf("b", (n, 2)), f"`ended` of {where}")
    for key, saved in state.get("infos", {}).items():
        what = f"the infos {key!r} of {where}"
        schema.check(saved["kept"], ArrayOf("b", (n,)), f"`kept` of {what}")
        kept_steps = int(state["lengths"][saved["kept"]].sum())
        schema.check(saved["values"], ArrayOf("f", (kept_steps,)), f"`values` of {what}")
    columns = state["columns"]
    if n == 0:
        schema.check(columns, {}, f"the columns of {where}")
        return lengths
    steps = sum(lengths)
    column_shapes = {
        "observations": np.ndarray,
        "actions": np.ndarray,
        "rewards": ArrayOf("f", (steps,)),
        "log_probs": ArrayOf("f", (steps,)),
    }
    schema.check(columns, column_shapes, f"the columns of {where}")
    for name, rows in (("observations", steps + n), ("actions", steps)):
        shape_of_column = columns[name].shape
        require(
            shape_of_column[:1] == (rows,),
            f"The saved trajectories must have {rows} {name}, but they have the shape "
            f"{schema.short(shape_of_column)}: {schema.REMEDY}.",
        )
    return lengths


def _checked_infos(infos: Mapping[str, Any], steps: int) -> Infos:
    """Return the columns as arrays of floats that cannot be written to."""
    columns = {}
    for key, given in infos.items():
        column = np.asarray(given)
        require(
            column.shape == (steps,) and column.dtype.kind in "biuf",
            f"The infos {key!r} of a trajectory must be one number or boolean per step, but got "
            f"{column.dtype} of shape {column.shape} for {steps} steps.",
        )
        columns[key] = frozen(column.astype(np.float64, copy=False))
    return Infos(columns) if columns else NO_INFOS


def _joined_infos(trajectories: Sequence[Trajectory]) -> dict[str, dict[str, Array]]:
    """Return the infos of all trajectories by key: which trajectories have it, and their values."""
    keys = dict.fromkeys(key for each in trajectories for key in each.infos)  # in their order
    joined = {}
    for key in keys:
        columns = [each.infos[key] for each in trajectories if key in each.infos]
        joined[key] = {
            "kept": np.array([key in each.infos for each in trajectories], bool),
            "values": np.concatenate(columns),
        }
    return joined


def _split_infos(
    joined: Mapping[str, Mapping[str, Array]], lengths: Sequence[int]
) -> list[Mapping[str, Array]]:
    """Return the infos of each trajectory from what `_joined_infos` returned."""
    split: list[dict[str, Array]] = [{} for _ in lengths]
    for key, saved in joined.items():
        values = frozen(saved["values"])
        first = 0
        for i in np.flatnonzero(saved["kept"]).tolist():
            end = first + lengths[i]
            split[i][key] = values[first:end]
            first = end
    return [infos or NO_INFOS for infos in split]


def _alike(new: Trajectory, first: Trajectory) -> Trajectory:
    """Return the new trajectory with the types of the first one.

    Raises an error if its arrays have another shape or kind.
    """
    cast = {}
    for name in ("observations", "actions"):
        got = getattr(new, name)
        kept = getattr(first, name)
        require_alike(name, got, kept)
        cast[name] = got.astype(kept.dtype)
    return replace(new, **cast)
