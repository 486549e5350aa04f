"""A replay memory for a whole portfolio: every transition and every frame is stored once."""

import weakref
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
from esbas._internal.schema import ArrayOf
from esbas.errors import InvalidValueError, SaveFileError, SpaceError, require
from esbas.learners.dqn.replay.checks import SETTINGS, check_integers, check_state
from esbas.learners.dqn.replay.codes import ObservationCodes
from esbas.learners.dqn.replay.files import SHAPES, RowFiles, packed, unpacked
from esbas.learners.dqn.replay.storage import Layout, MemoryArrays, Pool, layout_of, require_memory
from esbas.trajectory import TrajectorySet, Transition

# Where visits are not counted, compiled functions get arrays of the same types and ignore them.
_NO_CODES = np.zeros(1, np.int32)
_NO_VISITS = np.zeros(1, np.int64)


class Batch(NamedTuple):
    """Steps from the memory, as columns. Their leading axes are those of the requested rows."""

    observations: Array  # (..., *observation)
    actions: Array  # (..., *action)
    returns: Array  # (...,) float32: Σ γ^j r over m steps, 1 <= m <= n
    discounts: Array  # (...,) float32: γ^m
    next_observations: Array  # (..., *observation): m steps later
    terminated: Array  # (...,) bool: do not bootstrap


class SharedReplay:
    """The last `buffer_size` transitions, for any number of learners.

    Every learner adds every transition, and the memory stores each one once, so the order and the
    absence of learners do not matter. Each learner samples with its own generator. A step that does
    not continue the previous one starts a new segment. Box actions are stored scaled to [-1, 1].

    Args:
        env: an object with `observation_space` (Box, Discrete, ...) and `action_space` (Discrete or
            Box).
        buffer_size: the maximum number of transitions.
        stack: the number of frames per observation, if an observation is a stack of frames along
            its first axis, the newest one last. Each frame is then stored once.
        clip_rewards: whether rewards are stored clipped to [-1, 1]. The objective of a run still
            sees those of the environment.
        folder: where a memory of more than 64 MB writes its rows when it is saved; None: its state
            contains them.
        processes: how many processes train networks with convolutions. Results do not depend on it.
    """

    def __init__(
        self,
        env: Any,
        *,
        buffer_size: int = 100_000,
        stack: int = 1,
        clip_rewards: bool = False,
        folder: Path | None = None,
        processes: int = 1,
    ) -> None:
        require(buffer_size >= 2, f"`buffer_size` must be at least 2, but got {buffer_size!r}.")
        require(processes >= 1, f"`processes` must be at least 1, but got {processes!r}.")
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.buffer_size = buffer_size
        self.stack = stack
        self.clip_rewards = clip_rewards
        self.processes = processes
        self._shape, dtype = layout_of(self.observation_space, "observation")
        require(
            stack == 1 or (1 < stack < 256 and self._shape[:1] == (stack,)),
            "`stack` must be 1 or the length of the first axis of observations, whose shape is "
            f"{self._shape}, but got {stack!r}: use 1, or stack frames by FrameStackObservation.",
        )
        frame_shape = self._shape[1:] if stack > 1 else self._shape
        action_shape, action_dtype = layout_of(self.action_space, "action")
        self._labels = _integers_of(self.observation_space)
        self._actions = _integers_of(self.action_space)
        self._scales = self._actions is None
        if self._scales:
            action_dtype = np.dtype(np.float32)
            if not np.isfinite([self.action_space.low, self.action_space.high]).all():
                raise SpaceError(
                    f"Actions must have bounds, but the action space is {self.action_space}: "
                    "rescale it by a wrapper."
                )
        columns: dict[str, Layout] = {
            "frames": (frame_shape, dtype),
            "actions": (action_shape, action_dtype),
            "rewards": ((), np.dtype(np.float32)),
            "terminated": ((), np.dtype(bool)),
            "ages": ((), np.dtype(np.uint8)),
            "log_probs": ((), np.dtype(np.float32)),
        }
        # Beyond `buffer_size`, the oldest rows only complete the stacks of later ones.
        self._rows = buffer_size + stack - 1
        require_memory(columns.values(), rows=self._rows, buffer_size=buffer_size)
        self._columns: dict[str, Array] = {}
        for name, (column_shape, column_dtype) in columns.items():
            self._columns[name] = np.zeros((self._rows, *column_shape), column_dtype)
        self._integers: dict[str, range] = {}  # the allowed ones, by array
        if self._actions is not None:
            self._integers["actions"] = self._actions
        if self._labels is not None:
            self._integers["frames"] = self._labels
            self._integers["tail_items"] = self._labels
            # Compiled functions use labels as indices and do not check them: rows that were never
            # written have a valid one, too.
            self._columns["frames"][:] = self._labels.start
        # The next observations of rows that end a segment.
        self._tails = Pool(self._rows, frame_shape, dtype)
        # The older frames of the first stack of a segment.
        self._heads = Pool(self._rows, (stack - 1, *frame_shape), dtype)
        self._pools = {"tail": self._tails, "head": self._heads}
        self._folder = folder
        self._files = self._row_files()
        # How often each code of an observation was reached; None: they are not counted.
        self._visits: Array | None = None
        self._codes: ObservationCodes | None = None
        self.added = 0  # transitions in total, including those that were overwritten
        self.episodes = 0  # in total
        self.before_change: list[Callable[[], None]] = []  # called before each change
        self.groups: dict[Hashable, Any] = {}  # learners that train together
        self._newest: Transition | None = None
        # The next observation of the newest step, None if its episode is over.
        self._following: Array | None = None
        self._noted: tuple[Any, Array] | None = None
        # What `state_dict` returned last: the value of `added`, and the arrays.
        self._snapshot: tuple[int, dict[str, weakref.ref[Array]]] = (0, {})

    def _row_files(self) -> RowFiles | None:
        if self._folder is None:
            return None
        check = partial(check_integers, ranges=self._integers)
        return RowFiles(self._folder, self._columns, check=check)

    def count_visits(self) -> None:
        """Count the visits of observations, for DQNs with a `bonus`."""
        if self._visits is not None:
            return
        require(
            self.added == 0,
            "A DQN with a `bonus` must be built before its replay memory has transitions, but it "
            f"has {self.added:,}: build all learners first.",
        )
        self._codes = ObservationCodes(self.observation_space)
        self._visits = np.zeros(self._codes.count, np.int64)
        self._columns["codes"] = np.zeros(self._rows, np.int32)
        self._integers["codes"] = range(self._codes.count)
        self._integers["visits"] = range(2**62)
        self._files = self._row_files()  # with one more column

    def __len__(self) -> int:
        return min(self.added, self.buffer_size)

    def note(self, action: Any, stored: Array) -> None:
        """Store the next transition, if it has this action, with `stored` as its scaled action.

        This avoids rounding if the learner that acts has scaled it.
        """
        self._noted = action, stored

    def add(self, transition: Transition) -> None:
        """Store a transition. Adding the same object again has no effect."""
        if transition is self._newest:
            return
        seen = np.asarray(transition.observation)
        following = np.asarray(transition.next_observation)
        self._check(seen, following)
        action = self._scaled(transition.action)
        self._noted = None
        for callback in self.before_change:
            callback()
        columns = self._columns
        row = self.added % self._rows
        before = (self.added - 1) % self._rows
        continues = self._following is not None and (
            seen is self._following or np.array_equal(seen, self._following)
        )
        self._tails.release(row)
        self._heads.release(row)
        age = 0
        if continues:
            self._tails.release(before)  # the next observation of that row is this row
            age = min(int(columns["ages"][before]) + 1, self.stack)
        elif self.stack > 1:
            self._heads.put(row, seen[:-1])
        self._tails.put(row, following[-1] if self.stack > 1 else following)
        reward = transition.reward
        if self.clip_rewards:
            reward = min(max(reward, -1.0), 1.0)
        columns["frames"][row] = seen[-1] if self.stack > 1 else seen
        columns["actions"][row] = action
        columns["rewards"][row] = reward
        columns["terminated"][row] = transition.terminated
        columns["ages"][row] = age
        columns["log_probs"][row] = transition.log_prob
        if self._codes is not None and self._visits is not None:
            code = self._codes.of(following)
            columns["codes"][row] = code
            self._visits[code] += 1
        over = bool(transition.terminated or transition.truncated)
        self._newest = transition
        self._following = None if over else following
        self.added += 1
        self.episodes += over

    def take(self, data: TrajectorySet) -> None:
        """Add the new trajectories of a growing set. The first call does it for all learners."""
        for trajectory in data.since(self.episodes):
            for transition in trajectory.transitions():
                self.add(transition)
            self._following = None
        self.episodes = max(self.episodes, len(data))

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Sample transitions uniformly, with replacement, (size,): numbers modulo the capacity."""
        return rng.integers(len(self), size=size)

    def rows(self, numbers: Array) -> Array:
        """Return the rows of transitions, given their numbers modulo the capacity."""
        newest = self.added - 1
        return np.asarray((newest - (newest - numbers) % self.buffer_size) % self._rows)

    def arrays(self) -> MemoryArrays:
        """Return the arrays of the memory, for compiled functions. Valid until the next change."""
        columns = self._columns
        frames = columns["frames"].reshape(self._rows, -1)
        size = frames.shape[1]
        tails = self._tails
        heads = self._heads
        return MemoryArrays(
            frames=frames,
            actions=columns["actions"],
            rewards=columns["rewards"],
            terminated=columns["terminated"],
            ages=columns["ages"],
            log_probs=columns["log_probs"],
            tails=tails.slots,
            tail_items=tails.items.reshape(-1, size),
            heads=heads.slots,
            head_items=heads.items.reshape(len(heads.items), self.stack - 1, size),
            codes=columns.get("codes", _NO_CODES),
            visits=_NO_VISITS if self._visits is None else self._visits,
            added=self.added,
            buffer_size=self.buffer_size,
            stack=self.stack,
        )

    def batch(self, rows: Array, *, steps: Array | int = 1, gamma: Array | float = 1.0) -> Batch:
        """Return the steps in these rows with n-step returns, n = `steps`.

        Returns have fewer steps where an episode or the memory ends. Both `steps` and `gamma` are
        broadcast against the rows.
        """
        last, returns, discounts = self._n_step_returns(
            rows, np.asarray(steps), np.asarray(gamma, np.float32)
        )
        stacks = self.observations(rows)
        following = self.next_observations(last, stacks if last is rows else None)
        return Batch(
            observations=stacks,
            actions=self._columns["actions"][rows],
            returns=returns,
            discounts=discounts,
            next_observations=following,
            terminated=self._columns["terminated"][last],
        )

    def _n_step_returns(
        self, rows: Array, steps: Array, gamma: Array
    ) -> tuple[Array, Array, Array]:
        """Return the rows of the last steps that count, returns Σ γ^j r and discounts γ^m."""
        rewards = self._columns["rewards"]
        n = int(steps.max())
        if n == 1:
            return rows, rewards[rows], np.broadcast_to(gamma, rows.shape)
        offsets = np.arange(n)
        ahead = (rows[..., None] + offsets) % self._rows  # (..., n)
        over = np.logical_or.accumulate(self._tails.slots[ahead] >= 0, axis=-1)
        counts = np.broadcast_to(offsets < steps[..., None], over.shape).copy()
        counts[..., 1:] &= ~over[..., :-1]  # nothing counts after the end of a segment
        powers = gamma[..., None] ** offsets.astype(np.float32)
        reached = counts.sum(-1)
        last = (rows + reached - 1) % self._rows
        returns = (rewards[ahead] * powers * counts).sum(-1)
        discounts = gamma ** reached.astype(np.float32)
        return last, returns, discounts

    def observations(self, rows: Array) -> Array:
        """Return the observations of these rows, (..., *observation)."""
        frames = self._columns["frames"]
        ages = self._columns["ages"]
        if self.stack == 1:
            return np.asarray(frames[rows])
        back = np.arange(self.stack - 1, -1, -1)
        stacks = frames[(rows[..., None] - back) % self._rows]
        early = back > ages[rows][..., None]  # (..., stack): frames from before the segment began
        if early.any():
            *where, position = np.nonzero(early)
            young = rows[tuple(where)]
            heads = self._heads.slots[(young - ages[young]) % self._rows]
            stacks[early] = self._heads.items[heads, position + ages[young]]
        return np.asarray(stacks)

    def next_observations(self, rows: Array, stacks: Array | None = None) -> Array:
        """Return the next observations of these rows.

        `stacks` are the observations of the rows themselves, if they are known.
        """
        frames = self._columns["frames"][(rows + 1) % self._rows]
        ends = self._tails.slots[rows] >= 0
        frames[ends] = self._tails.of(rows[ends])
        if self.stack == 1:
            return np.asarray(frames)
        if stacks is None:
            stacks = self.observations(rows)
        axis = rows.ndim
        _, older = np.split(stacks, [1], axis)  # all frames but the oldest
        return np.concatenate([older, np.expand_dims(frames, axis)], axis)

    def _scaled(self, action: Any) -> Array:
        """Return an action as it is stored."""
        if self._actions is not None and int(action) not in self._actions:
            raise InvalidValueError(
                f"Actions must be in {self.action_space}, but got {action}: fix the policy."
            )
        if self._noted is not None and np.array_equal(action, self._noted[0]):
            return self._noted[1]
        if not self._scales:
            return np.asarray(action)
        low = self.action_space.low
        high = self.action_space.high
        return np.asarray(2.0 * ((np.asarray(action) - low) / (high - low)) - 1.0)

    def _check(self, seen: Array, following: Array) -> None:
        if not seen.shape == following.shape == self._shape:
            raise InvalidValueError(
                f"Observations must have the shape {self._shape} of their space, "
                f"but have {seen.shape} and {following.shape}: fix the environment."
            )
        if self._labels is not None and not (
            int(seen) in self._labels and int(following) in self._labels
        ):
            raise InvalidValueError(
                f"Observations must be in {self.observation_space}, "
                f"but got {seen} and {following}: fix the environment."
            )
        if self.stack > 1 and not np.array_equal(seen[1:], following[:-1]):
            raise InvalidValueError(
                "Frames must shift by one per step, but these do not: "
                f"use `stack=1` instead of {self.stack}."
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state. A large memory writes its new rows into its folder first.

        Until the next change, every call returns the same arrays, so that a save file contains them
        once. The state of a large memory lists its files instead of the rows.
        """
        arrays = self._unchanged_arrays()
        if arrays is None:
            arrays = self._current_arrays()
            references = {name: weakref.ref(array) for name, array in arrays.items()}
            self._snapshot = (self.added, references)
        state = {name: getattr(self, name) for name in SETTINGS}
        state["added"] = self.added
        state["episodes"] = self.episodes
        state["open"] = self._following is not None
        return state | arrays

    def _unchanged_arrays(self) -> dict[str, Array] | None:
        """Return the arrays of the last state, if they still exist and nothing has changed."""
        added, references = self._snapshot
        if added != self.added or not references:
            return None
        arrays = {}
        for name, reference in references.items():
            array = reference()
            if array is None:
                return None
            arrays[name] = array
        return arrays

    def _current_arrays(self) -> dict[str, Array]:
        counted = {} if self._visits is None else {"visits": self._visits.copy()}
        if self._files is not None and self._files.large and self.added:
            return self._files.save(self.added) | packed(self._pools) | counted
        arrays = {name: column[: self.added].copy() for name, column in self._columns.items()}
        arrays |= counted
        for name, pool in self._pools.items():
            for key, array in pool.state_dict().items():
                arrays[f"{name}_{key}"] = array
        return arrays

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state, which is checked completely first.

        In states saved by earlier versions, log-probabilities are unknown, and rewards were not
        clipped.
        """
        state = _completed(state)
        others = self._shapes_of_visits(state)
        on_disk = isinstance(state, dict) and "files" in state
        if on_disk:
            state = unpacked(state, self._pools, rows=self._rows)
        check_state(
            state,
            columns={} if on_disk else self._columns,
            rows=self._rows,
            pools={name: pool.items for name, pool in self._pools.items()},
            integers=self._integers,
            others=others | SHAPES if on_disk else others,
        )
        for name in SETTINGS:
            own = getattr(self, name)
            require(
                state[name] == own,
                f"A replay memory must be loaded with the `{name}` with which it was saved, "
                f"{state[name]!r}, but got {own!r}.",
            )
        if on_disk:
            self._load_files(state)
        else:
            for name, column in self._columns.items():
                column[: len(state[name])] = state[name]
            if self._files is not None:
                self._files.needed = []
        for name, pool in self._pools.items():
            pool.load_state_dict({key: state[f"{name}_{key}"] for key in ("rows", "items")})
        if self._visits is not None:
            self._visits[:] = state["visits"]
        self.added = state["added"]
        self.episodes = state["episodes"]
        self._newest = None
        self._snapshot = (0, {})
        self._following = None
        if state["open"]:
            newest = np.array([(self.added - 1) % self._rows])
            self._following = self.next_observations(newest)[0]

    def _shapes_of_visits(self, state: Any) -> dict[str, Any]:
        """Return what a state must have if visits are counted."""
        was_counted = isinstance(state, dict) and "visits" in state
        is_counted = self._visits is not None
        require(
            was_counted == is_counted,
            f"A replay memory that was saved {'with' if was_counted else 'without'} a DQN with a "
            f"`bonus` must be loaded {'with' if was_counted else 'without'} one: build the "
            "learners as they were.",
        )
        return {} if self._visits is None else {"visits": ArrayOf("i", self._visits.shape)}

    def _load_files(self, state: dict[str, Any]) -> None:
        if self._files is None:
            raise SaveFileError(
                "A replay memory whose rows are in a folder must be loaded with that folder, "
                "but has none: pass it as `folder`."
            )
        self._files.load(state, added=state["added"], present=self.added)


def _integers_of(space: Any) -> range | None:
    """Return the elements of a Discrete space; None for other spaces."""
    return spaces.allowed_actions(space) if spaces.is_discrete(space) else None


def _completed(state: Any) -> Any:
    """Return a state with what earlier versions did not save."""
    if not isinstance(state, dict):
        return state  # refused later
    completed = {"clip_rewards": False, **state}
    rewards = state.get("rewards")
    if "log_probs" not in state and isinstance(rewards, np.ndarray):
        completed["log_probs"] = np.full_like(rewards, np.nan)
    return completed
