"""A replay memory for a whole portfolio: every transition and every frame is stored once."""

import weakref
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from esbas import spaces
from esbas.columns import Array
from esbas.errors import InvalidValueError, SaveFileError, SpaceError, require
from esbas.learners.deep.replay_checks import SETTINGS, check_integers, check_state
from esbas.learners.deep.replay_files import SHAPES, RowFiles, packed, unpacked
from esbas.learners.deep.replay_storage import Layout, MemoryArrays, Pool, layout_of, require_memory
from esbas.trajectory import TrajectorySet, Transition


class Batch(NamedTuple):
    """Steps from the memory, as columns. Their leading axes are those of the requested rows."""

    observations: Array  # (..., *observation)
    actions: Array  # (..., *action)
    returns: Array  # (...,) float32: Σ γ^j r over m steps, 1 <= m <= n
    discounts: Array  # (...,) float32: γ^m
    next_observations: Array  # (..., *observation): m steps later
    terminated: Array  # (...,) bool: do not bootstrap


class SharedReplay:
    """The last `capacity` transitions, for any number of learners. Each learner samples from it with its own generator.

    Every learner adds every transition, and the memory stores each one once, so the order and the absence of learners do not
    matter. A step that does not continue the previous one starts a new segment. Box actions are stored scaled to [-1, 1].

    Args:
        env: an object with `observation_space` (Box, Discrete, ...) and `action_space` (Discrete or Box).
        capacity: the maximum number of transitions.
        stack: the number of frames per observation, if an observation is a stack of frames along its first axis, the newest one
            last. Each frame is then stored once.
        clip_rewards: whether rewards are stored clipped to [-1, 1]. The objective of a run still sees the task's own.
        folder: where a memory of more than 64 MB writes its rows when it is saved; None: its state contains them.
        processes: how many processes train networks with convolutions. Results do not depend on it.
    """

    def __init__(
        self,
        env: Any,
        *,
        capacity: int = 100_000,
        stack: int = 1,
        clip_rewards: bool = False,
        folder: Path | None = None,
        processes: int = 1,
    ) -> None:
        require(capacity >= 2, "capacity >= 2", capacity=capacity)
        require(processes >= 1, "processes >= 1", processes=processes)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.capacity, self.stack, self.clip_rewards, self.processes = capacity, stack, clip_rewards, processes
        self._shape, dtype = layout_of(self.observation_space, "observation")
        stacked = stack == 1 or (1 < stack < 256 and self._shape[:1] == (stack,))
        rule, remedy = "stack is 1, or the length of an observation's first axis", "set stack = 1, or stack the frames"
        require(stacked, rule, f"{remedy} by FrameStackObservation", stack=stack, shape=self._shape)
        frame, done = (self._shape[1:] if stack > 1 else self._shape, dtype), layout_of(self.action_space, "action")
        self._scales = not spaces.is_discrete(self.action_space)
        both = self.observation_space, self.action_space
        self._labels, self._actions = (spaces.allowed_actions(space) if spaces.is_discrete(space) else None for space in both)
        if self._scales and not np.isfinite([self.action_space.low, self.action_space.high]).all():
            raise SpaceError(f"actions must have bounds, but the action space is {self.action_space}: rescale it by a wrapper")
        columns: dict[str, Layout] = {"frames": frame, "actions": (done[0], np.dtype(np.float32)) if self._scales else done}
        columns |= {"rewards": ((), np.dtype(np.float32)), "terminated": ((), np.dtype(bool)), "ages": ((), np.dtype(np.uint8))}
        columns |= {"log_probs": ((), np.dtype(np.float32))}
        self._rows = capacity + stack - 1  # the oldest ones only complete the stacks of later ones
        require_memory(columns.values(), rows=self._rows, capacity=capacity)
        self._columns = {name: np.zeros((self._rows, *shape), dtype) for name, (shape, dtype) in columns.items()}
        allowed = {"frames": self._labels, "tail_items": self._labels, "actions": self._actions}
        self._integers = {name: each for name, each in allowed.items() if each}
        self._tails = Pool(self._rows, *frame)  # next observations, where the next row is not the next step
        self._heads = Pool(self._rows, (stack - 1, *frame[0]), dtype)  # the older frames of a segment's first stack
        self._pools = {"tail": self._tails, "head": self._heads}
        self._files = (
            None if folder is None else RowFiles(folder, self._columns, check=partial(check_integers, ranges=self._integers))
        )
        self.added, self.episodes = 0, 0  # in total, including those that were overwritten
        self.before_change: list[Callable[[], None]] = []  # called before each change
        self.groups: dict[Hashable, Any] = {}  # learners that train together
        self._newest: Transition | None = None
        self._following: Array | None = None  # the next observation of the newest step, None if its episode is over
        self._noted: tuple[Any, Array] | None = None
        self._snapshot: tuple[int, dict[str, weakref.ref[Array]]] = 0, {}

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def note(self, action: Any, stored: Array) -> None:
        """Store the next transition, if it has this action, with `stored`. Avoids rounding if a learner has scaled it."""
        self._noted = action, stored

    def add(self, transition: Transition) -> None:
        """Store a transition. Adding the same object again has no effect."""
        if transition is self._newest:
            return
        seen, following = np.asarray(transition.observation), np.asarray(transition.next_observation)
        self._check(seen, following)
        action, self._noted = self._stored(transition.action), None
        for callback in self.before_change:
            callback()
        row, before = self.added % self._rows, (self.added - 1) % self._rows
        continues = self._following is not None and (seen is self._following or np.array_equal(seen, self._following))
        self._tails.release(row)
        self._heads.release(row)
        if continues:
            self._tails.release(before)
        elif self.stack > 1:
            self._heads.put(row, seen[:-1])
        self._tails.put(row, following[-1] if self.stack > 1 else following)
        age = min(int(self._columns["ages"][before]) + 1, self.stack) if continues else 0
        frame, log_prob = seen[-1] if self.stack > 1 else seen, transition.log_prob
        reward = min(max(transition.reward, -1.0), 1.0) if self.clip_rewards else transition.reward
        values = frame, action, reward, transition.terminated, age, log_prob
        for column, value in zip(self._columns.values(), values, strict=True):
            column[row] = value
        over = bool(transition.terminated or transition.truncated)
        self._newest, self._following = transition, None if over else following
        self.added += 1
        self.episodes += over

    def take(self, data: TrajectorySet) -> None:
        """Add the new trajectories of a growing set. The first learner that calls this does it for all."""
        for trajectory in data.since(self.episodes):
            for transition in trajectory.transitions():
                self.add(transition)
            self._following = None
        self.episodes = max(self.episodes, len(data))

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Uniformly sampled transitions, with replacement, (size,): their numbers modulo the capacity."""
        return rng.integers(len(self), size=size)

    def rows(self, places: Array) -> Array:
        """The rows of transitions, given their numbers modulo the capacity."""
        newest = self.added - 1
        return np.asarray((newest - (newest - places) % self.capacity) % self._rows)

    def arrays(self) -> MemoryArrays:
        """The memory as it is stored, for compiled functions. Valid until the next change."""
        columns, rows, stack = self._columns, self._rows, self.stack
        frames = columns["frames"].reshape(rows, -1)
        size, tails, heads = frames.shape[1], self._tails, self._heads
        return MemoryArrays(
            frames=frames,
            actions=columns["actions"],
            rewards=columns["rewards"],
            terminated=columns["terminated"],
            ages=columns["ages"],
            log_probs=columns["log_probs"],
            tails=tails.places,
            tail_items=tails.items.reshape(-1, size),
            heads=heads.places,
            head_items=heads.items.reshape(len(heads.items), stack - 1, size),
            added=self.added,
            capacity=self.capacity,
            stack=stack,
        )

    def batch(self, rows: Array, *, steps: Array | int = 1, gamma: Array | float = 1.0) -> Batch:
        """The steps in these rows with n-step returns, n = `steps`, or fewer where an episode or the memory ends.

        Both `steps` and `gamma` are broadcast against the rows.
        """
        last, returns, discounts = self._n_step_returns(rows, np.asarray(steps), np.asarray(gamma, np.float32))
        stacks = self.observations(rows)
        following = self.next_observations(last, stacks if last is rows else None)
        actions, terminated = self._columns["actions"][rows], self._columns["terminated"][last]
        return Batch(stacks, actions, returns, discounts, following, terminated)

    def _n_step_returns(self, rows: Array, steps: Array, gamma: Array) -> tuple[Array, Array, Array]:
        """The rows of the last steps that count, the returns Σ γ^j r, and the discounts γ^m."""
        rewards, n = self._columns["rewards"], int(steps.max())
        if n == 1:
            return rows, rewards[rows], np.broadcast_to(gamma, rows.shape)
        offsets = np.arange(n)
        ahead = (rows[..., None] + offsets) % self._rows  # (..., n)
        over = np.logical_or.accumulate(self._tails.places[ahead] >= 0, axis=-1)
        counts = np.broadcast_to(offsets < steps[..., None], over.shape).copy()
        counts[..., 1:] &= ~over[..., :-1]  # nothing counts after the end of a segment
        powers, reached = gamma[..., None] ** offsets.astype(np.float32), counts.sum(-1)
        return (rows + reached - 1) % self._rows, (rewards[ahead] * powers * counts).sum(-1), gamma ** reached.astype(np.float32)

    def observations(self, rows: Array) -> Array:
        """The observations of these rows, (..., *observation)."""
        frames, ages = self._columns["frames"], self._columns["ages"]
        if self.stack == 1:
            return np.asarray(frames[rows])
        back = np.arange(self.stack - 1, -1, -1)
        stacks = frames[(rows[..., None] - back) % self._rows]
        early = back > ages[rows][..., None]  # (..., stack): frames from before the segment began
        if early.any():
            *where, position = np.nonzero(early)
            young = rows[tuple(where)]
            heads = self._heads.places[(young - ages[young]) % self._rows]
            stacks[early] = self._heads.items[heads, position + ages[young]]
        return np.asarray(stacks)

    def next_observations(self, rows: Array, stacks: Array | None = None) -> Array:
        """The next observations of these rows, given the observations of the rows themselves if they are known."""
        frames, ends = self._columns["frames"][(rows + 1) % self._rows], self._tails.places[rows] >= 0
        frames[ends] = self._tails.of(rows[ends])
        if self.stack == 1:
            return np.asarray(frames)
        stacks, axis = self.observations(rows) if stacks is None else stacks, rows.ndim
        return np.concatenate([np.split(stacks, [1], axis)[1], np.expand_dims(frames, axis)], axis)

    def _stored(self, action: Any) -> Array:
        if self._actions is not None and int(action) not in self._actions:
            raise InvalidValueError(f"an action must be in {self.action_space}, but is {action}: fix the policy")
        if self._noted is not None and np.array_equal(action, self._noted[0]):
            return self._noted[1]
        if not self._scales:
            return np.asarray(action)
        low, high = self.action_space.low, self.action_space.high
        return np.asarray(2.0 * ((np.asarray(action) - low) / (high - low)) - 1.0)

    def _check(self, seen: Array, following: Array) -> None:
        if not seen.shape == following.shape == self._shape:
            shapes = f"{seen.shape} and {following.shape}"
            raise InvalidValueError(
                f"observations must have the shape {self._shape} of their space, but have {shapes}: fix the environment"
            )
        if self._labels is not None and not (int(seen) in self._labels and int(following) in self._labels):
            space, got = self.observation_space, f"{seen} and {following}"
            raise InvalidValueError(f"observations must be in {space}, but are {got}: fix the environment")
        if self.stack > 1 and not np.array_equal(seen[1:], following[:-1]):
            raise InvalidValueError(f"frames must shift by one per step, but these do not: use stack=1 instead of {self.stack}")

    def state_dict(self) -> dict[str, Any]:
        """Until the next change, every call returns the same arrays, so that a save file contains them once.

        A large memory writes the rows that are new since the last call into its folder, and the state lists the files.
        """
        moment, references = self._snapshot
        arrays = {name: array for name, reference in references.items() if (array := reference()) is not None}
        if moment != self.added or len(arrays) < len(references) or not arrays:
            if self._files is not None and self._files.large and self.added:
                arrays = self._files.save(self.added) | packed(self._pools)
            else:
                arrays = {name: column[: self.added].copy() for name, column in self._columns.items()}
                for name, pool in self._pools.items():
                    arrays |= {f"{name}_{key}": array for key, array in pool.state_dict().items()}
            self._snapshot = self.added, {name: weakref.ref(array) for name, array in arrays.items()}
        settings = {name: getattr(self, name) for name in SETTINGS}
        return settings | {"added": self.added, "episodes": self.episodes, "open": self._following is not None} | arrays

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """States saved by earlier versions have no log-probabilities, which are unknown, and rewards that were not clipped."""
        if isinstance(state, dict):
            state = {"clip_rewards": False, **state}
        on_disk = isinstance(state, dict) and "files" in state
        if on_disk:
            state = unpacked(state, self._pools, rows=self._rows)
        elif isinstance(state, dict) and "log_probs" not in state and isinstance(state.get("rewards"), np.ndarray):
            state = state | {"log_probs": np.full_like(state["rewards"], np.nan)}
        columns, others = ({}, SHAPES) if on_disk else (self._columns, {})
        pools = {name: pool.items for name, pool in self._pools.items()}
        check_state(state, columns=columns, rows=self._rows, pools=pools, integers=self._integers, others=others)
        for name in SETTINGS:
            require(
                state[name] == getattr(self, name), f"{name} is as it was saved", "build the same replay", **{name: state[name]}
            )
        if not on_disk:
            for name, column in self._columns.items():
                column[: len(state[name])] = state[name]
            if self._files is not None:
                self._files.needed = []
        elif self._files is not None:
            self._files.load(state, added=state["added"], present=self.added)
        else:
            message = "a replay memory whose rows are in a folder must be loaded with that folder, but has none"
            raise SaveFileError(f"{message}: pass it as `folder`")
        for name, pool in self._pools.items():
            pool.load_state_dict({key: state[f"{name}_{key}"] for key in ("rows", "items")})
        self.added, self.episodes, self._newest, self._snapshot = state["added"], state["episodes"], None, (0, {})
        newest = np.array([(self.added - 1) % self._rows])
        self._following = self.next_observations(newest)[0] if state["open"] else None
