"""DQNs whose rewards are increased where observations are rare."""

import math
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import Trajectory, TrajectorySet, Transition
from esbas.errors import InvalidValueError
from esbas.learners import DQN, SharedReplay
from esbas.learners.dqn.group import UpdateOptions
from esbas.learners.dqn.overlapped.excerpts import excerpt_of, fill, following_at, layouts
from esbas.learners.dqn.replay.codes import ObservationCodes
from esbas.learners.dqn.targets import targets_of
from esbas.specs.portfolios.recipe import recipe_of
from esbas.testing import check_learner
from learners.memories import task

LABELS = gym.spaces.Discrete(6)
HALF = math.log(0.5)
STEPS = [
    Transition(0, 0, 1.0, 1, False, False, HALF),
    Transition(1, 1, 2.0, 5, False, True, HALF),
    Transition(1, 1, 10.0, 2, False, False, HALF),
    Transition(2, 1, 20.0, 3, True, False, HALF),
    Transition(0, 0, 0.0, 1, False, True, HALF),
]
# The visits of the next observations are 2, 1, 1, 1, 2. With γ = 0.5 and the values Q(s, .) =
# (4 s, 4 s + 1), targets are, without bonuses, 7.25, 12.5, 20, 20 and 2.5. With β = 4:
ONCE = 4.0
TWICE = 4.0 / math.sqrt(2)
TARGETS = [
    7.25 + TWICE + ONCE / 2,
    12.5 + ONCE,
    20 + ONCE + ONCE / 2,
    20 + ONCE,
    2.5 + TWICE,
]


def counting(steps: Any = STEPS, space: Any = LABELS, **options: Any) -> SharedReplay:
    replay = SharedReplay(task(space), **{"buffer_size": 100} | options)
    replay.count_visits()
    for step in steps:
        replay.add(step)
    return replay


def options_with(**changes: Any) -> UpdateOptions:
    usual = {"rate": 0.1, "gamma": 0.5, "double": False, "n_steps": 3, "corrected": True}
    return UpdateOptions(**usual | {"trace_decay": 1.0, "bonus": 4.0} | changes)


def rising_values(name: str, observations: Any) -> Any:
    del name
    return np.stack([4 * observations, 4 * observations + 1], axis=-1).astype(np.float32)


@pytest.mark.parametrize("corrected", [True, False])
def test_targets_by_hand(corrected: bool) -> None:
    replay = counting()
    assert replay.arrays().visits.tolist() == [0, 2, 1, 1, 0, 1]
    rows = np.arange(5)[None]
    options = [options_with(corrected=corrected)]
    found = targets_of(replay.arrays(), rows, options, replay.next_observations, rising_values)
    assert found[0].tolist() == pytest.approx(TARGETS, rel=1e-6)
    without = [options_with(corrected=corrected, bonus=0.0)]
    found = targets_of(replay.arrays(), rows, without, replay.next_observations, rising_values)
    assert found[0].tolist() == [7.25, 12.5, 20.0, 20.0, 2.5]


@pytest.mark.parametrize("corrected", [True, False])
def test_targets_of_an_excerpt(corrected: bool) -> None:
    """Overlapped training copies steps into an excerpt first."""
    arrays = {}
    for name, (shape, dtype) in layouts(5, 3, corrected, (), np.int64).items():
        arrays[name] = np.empty(shape, dtype)
    excerpt = excerpt_of(arrays)
    fill(excerpt, counting(), np.arange(5), 3)
    rows = np.arange(5)[None] * 3
    options = [options_with(corrected=corrected)]
    following = partial(following_at, excerpt)
    found = targets_of(excerpt.steps, rows, options, following, rising_values)
    assert found[0].tolist() == pytest.approx(TARGETS, rel=1e-6)


def random_data(seed: int, *, counted: float = 0.0) -> TrajectorySet:
    """Random episodes, whose rewards are increased by `counted` / sqrt(all visits)."""
    rng = np.random.default_rng(seed)
    lengths = [int(length) for length in rng.integers(1, 12, 30)]
    seen = [rng.integers(6, size=length + 1) for length in lengths]
    visits = np.bincount(np.concatenate([each[1:] for each in seen]), minlength=6)
    data = TrajectorySet()
    for each in seen:
        rewards = rng.normal(size=len(each) - 1) + counted / np.sqrt(visits[each[1:]])
        actions = rng.integers(2, size=len(rewards))
        log_probs = np.full(len(rewards), HALF)
        data.append(Trajectory(each, actions, rewards, True, False, log_probs=log_probs))
    return data


def learner(**options: Any) -> DQN:
    usual: dict[str, Any] = {"hidden": (8,), "batch_size": 16, "learning_starts": 0}
    return DQN("it", replay=SharedReplay(task(LABELS), buffer_size=1000), **usual | options)


@pytest.mark.parametrize("corrected", [True, False])
def test_it_learns_as_from_increased_rewards(corrected: bool) -> None:
    """All transitions come at once, so that counts do not change between updates."""
    with_bonus = learner(bonus=0.5, corrected=corrected)
    with_bonus.learn(random_data(0))
    increased = learner(corrected=corrected)
    increased.learn(random_data(0, counted=0.5))
    plain = learner(corrected=corrected)
    plain.learn(random_data(0))
    seen = np.arange(6)
    np.testing.assert_allclose(
        with_bonus.batch_values(seen), increased.batch_values(seen), rtol=1e-3, atol=1e-4
    )
    assert np.abs(with_bonus.batch_values(seen) - plain.batch_values(seen)).max() > 0.01


def test_a_bonus_of_another_learner_changes_nothing() -> None:
    replay = SharedReplay(task(LABELS), buffer_size=1000)
    usual: dict[str, Any] = {"hidden": (8,), "batch_size": 16, "learning_starts": 0}
    one = DQN("it", replay=replay, **usual)
    other = DQN("curious", replay=replay, bonus=1.0, **usual)
    alone = learner()
    for trajectory in random_data(1).since(0):
        for step in trajectory.transitions():
            for each in (one, other, alone):
                each.step(step)
    np.testing.assert_array_equal(one.values(0), alone.values(0))
    assert not np.array_equal(one.values(0), other.values(0))


def test_nothing_is_counted_without_a_bonus() -> None:
    plain = learner()
    plain.learn(random_data(0))
    assert {"codes", "visits"}.isdisjoint(plain.state_dict()["replay"])
    assert plain.replay.arrays().visits.tolist() == [0]


def test_counts_include_what_the_memory_forgot() -> None:
    replay = counting(buffer_size=2)
    assert replay.arrays().visits.tolist() == [0, 2, 1, 1, 0, 1]


def test_counts_are_saved_and_loaded() -> None:
    replay = counting()
    twin = counting([STEPS[2]])
    twin.load_state_dict(replay.state_dict())
    for memory in (replay, twin):
        memory.add(Transition(4, 0, 0.0, 4, True, False))
    np.testing.assert_equal(twin.state_dict(), replay.state_dict())
    assert twin.arrays().visits.tolist() == [0, 2, 1, 1, 1, 1]


def test_counts_are_saved_beside_the_rows_of_a_large_memory(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esbas.learners.dqn.replay.files.LARGE", 100)
    replay = counting(folder=tmp_path / "rows")
    state = replay.state_dict()
    assert "files" in state
    twin = counting([], folder=tmp_path / "rows")
    twin.load_state_dict(state)
    for name in ("codes", "visits"):
        np.testing.assert_array_equal(
            getattr(twin.arrays(), name)[:5], getattr(replay.arrays(), name)[:5]
        )


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"visits": np.zeros(5, np.int64)}, "visits"),
        ({"visits": np.full(6, -1)}, "`visits` must be from 0"),
        ({"codes": np.full(5, 6, np.int32)}, "`codes` must be from 0 to 5"),
        ({"codes": np.full(5, -1, np.int32)}, "`codes` must be from 0 to 5"),
    ],
)
def test_a_hostile_state_is_refused_and_changes_nothing(changes: Any, match: str) -> None:
    replay = counting()
    before = replay.state_dict()
    with pytest.raises(InvalidValueError, match=match):
        replay.load_state_dict(before | changes)
    np.testing.assert_equal(replay.state_dict(), before)


def test_a_state_with_counts_needs_a_memory_that_counts() -> None:
    plain = SharedReplay(task(LABELS), buffer_size=100)
    plain.add(STEPS[0])
    with pytest.raises(InvalidValueError, match="saved without a DQN with a `bonus` must be"):
        counting().load_state_dict(plain.state_dict())
    with pytest.raises(InvalidValueError, match="saved with a DQN with a `bonus` must be"):
        plain.load_state_dict(counting().state_dict())


def test_learners_are_built_before_data() -> None:
    replay = SharedReplay(task(LABELS), buffer_size=100)
    replay.add(STEPS[0])
    with pytest.raises(InvalidValueError, match="must be built before its replay memory has trans"):
        DQN("it", replay=replay, bonus=0.1)
    with pytest.raises(InvalidValueError, match="`bonus` must be finite and not negative"):
        DQN("it", replay=replay, bonus=-0.1)


# Codes of observations


def test_labels_are_their_own_codes() -> None:
    codes = ObservationCodes(gym.spaces.Discrete(4, start=-2))
    assert codes.count == 4
    assert [codes.of(np.asarray(label)) for label in range(-2, 2)] == [0, 1, 2, 3]


def test_codes_are_always_the_same_and_near_observations_share_them() -> None:
    space = gym.make("MountainCar-v0").observation_space
    one = ObservationCodes(space)
    two = ObservationCodes(space)
    rng = np.random.default_rng(0)
    near = far = 0
    found = set()
    for _ in range(500):
        seen, other = rng.uniform(space.low, space.high, (2, 2)).astype(np.float32)
        close = seen + rng.normal(size=2) * 0.01 * (space.high - space.low)
        code = one.of(seen)
        assert code == two.of(seen)
        assert 0 <= code < one.count
        found.add(code)
        near += code == one.of(close)
        far += code == one.of(other)
    assert near > 300
    assert far < 100
    assert len(found) > 40  # of at most 137 cells, into which 16 lines divide a plane


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Box(0, 255, (2, 3, 3), np.uint8),
        gym.spaces.Box(-np.inf, np.inf, (3,), np.float32),
        gym.spaces.MultiBinary(5),
        gym.spaces.MultiDiscrete([3, 4]),
        gym.spaces.Box(1.0, 1.0, (2,), np.float64),
    ],
    ids=str,
)
def test_arrays_of_all_kinds_have_codes(space: Any) -> None:
    codes = ObservationCodes(space)
    space.seed(0)
    found = {codes.of(np.asarray(space.sample())) for _ in range(50)}
    assert all(0 <= code < 2**16 for code in found)
    assert len(found) > 3 or space.shape == (2,)


def test_scaled_observations_by_hand() -> None:
    """Bounded numbers are scaled to [-1, 1], others stay: both spaces have the same codes."""
    wide = ObservationCodes(
        gym.spaces.Box(np.array([0.0, -np.inf]), np.array([10.0, np.inf]), dtype=float)
    )
    unit = ObservationCodes(gym.spaces.Box(-1.0, 1.0, (2,)))
    for x, y in np.random.default_rng(0).uniform(-1, 1, (50, 2)):
        assert wide.of(np.array([5 + 5 * x, y])) == unit.of(np.array([x, y]))


# Learners


def test_the_contract_is_kept() -> None:
    env = gym.make("CartPole-v1", max_episode_steps=40)
    check_learner(lambda: DQN.for_env(env, bonus=0.5, learning_starts=20), env, episodes=3)


def test_a_resumed_run_ends_identically(tmp_path: Any) -> None:
    def learners() -> list[Any]:
        texts = ["dqn(bonus=0.5, learning_starts=20, zeta=2)", "dqn(learning_starts=20)"]
        return recipe_of(texts).build(gym.make("CartPole-v1"), steps=300, seed=0)

    names = [each.name for each in learners()]
    env = partial(gym.make, "CartPole-v1")
    whole = list(esbas.run(env(), learners(), esbas.SSBAS(names), steps=300, seed=1))
    first = esbas.run(env(), learners(), esbas.SSBAS(names), steps=300, seed=1)
    for number in range(4):
        assert next(first) == whole[number]
    first.save(tmp_path / "run.esbas")
    resumed = esbas.resume(tmp_path / "run.esbas", env(), learners(), esbas.SSBAS(names))
    assert list(resumed) == whole[4:]
