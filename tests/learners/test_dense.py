"""Compiled dense networks against PyTorch, and against themselves in a group."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esbas import Transition
from esbas.errors import EsbasError, InvalidValueError
from esbas.learners import DQN, SharedReplay
from esbas.learners.dqn import optimizers
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.on_pytorch import batched
from esbas.learners.dqn.on_pytorch.networks import evaluate
from esbas.learners.dqn.on_pytorch.pytorch import torch

SPACES: list[Any] = [
    gym.spaces.Box(-np.inf, np.inf, (3,), np.float32),
    gym.spaces.Box(-np.inf, np.inf, (2, 2), np.float32),
    gym.spaces.Box(0, 255, (5,), np.uint8),
    gym.spaces.Discrete(6),
    gym.spaces.Discrete(4, start=-(10**9)),
    gym.spaces.Box(-np.inf, np.inf, (37,), np.float32),
    gym.spaces.Box(0, 1, (70,), bool),
]
# Vectors have 8 or 32 numbers, so these have whole ones, remainders and both.
WIDTHS = st.one_of(st.integers(1, 9), st.sampled_from([32, 45, 64]))


def element(space: Any, rng: np.random.Generator) -> Any:
    if isinstance(space, gym.spaces.Discrete):
        return int(space.start + rng.integers(space.n))
    if space.dtype == bool:
        return rng.random(space.shape) < 0.05
    return (
        rng.integers(256, size=space.shape).astype(np.uint8)
        if space.dtype == np.uint8
        else rng.normal(size=space.shape)
    )


def steps_in(space: Any, *, actions: int, count: int = 40, seed: int = 0) -> list[Transition]:
    """Episodes of up to eight steps; some log-probabilities are unknown."""
    rng = np.random.default_rng(seed)
    steps = []
    seen = None
    for number in range(count):
        seen = np.asarray(element(space, rng) if seen is None else seen, space.dtype)
        following = np.asarray(element(space, rng), space.dtype)
        over = number % 8 == 7 or bool(rng.random() < 0.1)
        ends = (over and number % 8 != 7, over and number % 8 == 7)
        log_prob = float(np.log(rng.uniform(0.1, 1))) if rng.random() < 0.8 else np.nan
        steps.append(
            Transition(
                seen, int(rng.integers(actions)), float(rng.normal()), following, *ends, log_prob
            )
        )
        seen = None if over else following
    return steps


def learner_on(
    space: Any,
    *,
    actions: int = 3,
    name: str = "it",
    replay: SharedReplay | None = None,
    **options: Any,
) -> DQN:
    task = SimpleNamespace(observation_space=space, action_space=gym.spaces.Discrete(actions))
    usual: dict[str, Any] = {
        "hidden": (7, 6),
        "batch_size": 16,
        "learning_starts": 0,
        "train_freq": 1,
    }
    return DQN(name, replay=replay or SharedReplay(task, buffer_size=100), **usual | options)


def torch_update(
    learner: DQN, before: dict[str, Any], rows: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Return targets by a loop over the steps of each return, and the gradient by autograd."""
    replay = learner.replay
    group = learner._group
    memory = replay.arrays()
    network = group.network
    weights, target = (torch.from_numpy(before[name])[None] for name in ("weights", "target"))

    def q(stack: Any, row: int) -> Any:
        with torch.no_grad():
            return (
                evaluate(network, stack, replay.next_observations(np.array([row]))[None])[0, 0]
                .double()
                .numpy()
            )

    targets = []
    gamma = options["gamma"]
    for first in rows:
        row = int(first)
        scale = 1.0
        goal = 0.0
        for k in range(options["n_steps"]):
            goal += scale * float(memory.rewards[row])
            scale *= gamma
            if memory.terminated[row]:
                break
            values = q(target, row)
            chooser = q(weights, row) if options["double"] else values
            over = k == options["n_steps"] - 1 or memory.tails[row] >= 0
            if options["corrected"] or over:
                goal += scale * values[chooser.argmax()]
            if over:
                break
            row = (row + 1) % len(memory.rewards)
            if options["corrected"]:
                action = int(memory.actions[row])
                log_prob = float(memory.log_probs[row])
                if np.isnan(log_prob) or action != chooser.argmax():
                    break
                scale *= options["trace_decay"] * min(1.0, 1 / np.exp(log_prob))
                goal -= scale * values[action]
        targets.append(goal)
    leaf = weights.double().requires_grad_()
    seen = replay.observations(rows)[None]
    inputs = (
        seen if network.labels else np.asarray(seen, np.float64) / (255 if network.bytes else 1)
    )
    x = (
        torch.nn.functional.one_hot(
            torch.from_numpy(inputs - network.first), network.labels
        ).double()
        if network.labels
        else None
    )
    x = torch.from_numpy(inputs).flatten(2) if x is None else x
    parts = torch.split(leaf, network.sizes, dim=1)
    for layer, (matrix, bias) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        x = x @ matrix.view(1, *network.shapes[2 * layer]) + bias
        x = torch.relu(x) if 2 * layer + 2 < len(parts) else x
    predicted = x[0, range(len(rows)), memory.actions[rows]]
    goals = torch.tensor(targets, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(torch.nn.functional.smooth_l1_loss(predicted, goals), leaf)
    return np.array(targets), gradient[0].numpy()


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    space=st.sampled_from(SPACES),
    hidden=st.lists(WIDTHS, max_size=3),
    actions=st.integers(1, 5),
    batch_size=st.one_of(st.integers(1, 17), st.sampled_from([32, 40, 70])),
    n_steps=st.integers(1, 5),
    corrected=st.booleans(),
    double=st.booleans(),
    trace_decay=st.sampled_from([1.0, 0.7]),
    seed=st.integers(0, 99),
)
def test_targets_and_gradients_agree_with_autograd(
    space: Any, hidden: list[int], actions: int, batch_size: int, seed: int, **options: Any
) -> None:
    options["gamma"] = 0.9
    rare = {"learning_starts": 10**6, "seed": seed}
    learner = learner_on(
        space, actions=actions, hidden=hidden, batch_size=batch_size, **rare, **options
    )
    for step in steps_in(space, actions=actions, seed=seed):
        learner.step(step)
    group, rng = learner._group, np.random.default_rng(seed)
    before, rows = (
        learner.state_dict()["network"] | {"target": group.network.initial(rng)},
        rng.integers(40, size=batch_size),
    )
    group.load_state_dict(0, before)
    targets, gradient = torch_update(learner, before, rows, options)
    # The memory is not full, so numbers are rows.
    learner.replay.draw = lambda *_: rows  # type: ignore[method-assign]
    group.request(0, 1)
    work = group._work  # type: ignore[attr-defined]
    np.testing.assert_allclose(work.targets, targets, rtol=1e-5, atol=1e-6)
    assert np.linalg.norm(work.gradient - gradient) <= 1e-5 * np.linalg.norm(gradient) + 1e-9


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("name", ["adam", "rmsprop"])
def test_optimizers_equal_those_for_tensors(name: str, size: int) -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=size).astype(np.float32)
    moments = np.zeros((2, size), np.float32)
    weights, first, second = start.copy(), *moments.copy()
    tensors = [torch.from_numpy(array.copy())[None] for array in (start, *moments)]
    for count in range(1, 6):
        gradient = rng.normal(size=size).astype(np.float32)
        if name == "adam":
            optimizers.adam(weights, gradient, first, second, count, 0.01, 1.0)
        else:
            optimizers.rmsprop(weights, gradient, second, 0.01, 1.0)
        counts = torch.tensor([[float(count)]])
        rates = torch.tensor([[0.01]])
        getattr(batched, name)(
            tensors[0], torch.from_numpy(gradient)[None], *tensors[1:], counts, rates
        )
    assert np.abs(weights - start).max() > 1e-3
    for ours, theirs in zip((weights, first, second), tensors, strict=True):
        np.testing.assert_allclose(ours, theirs[0].numpy(), rtol=1e-4, atol=1e-6)


def test_large_gradients_are_clipped() -> None:
    gradient = np.random.default_rng(0).normal(size=1001).astype(np.float32) * 100
    norm = optimizers.norm_of(gradient)
    assert norm == pytest.approx(np.linalg.norm(gradient.astype(float)), rel=1e-12)
    learner = learner_on(SPACES[0], optimizer="rmsprop", batch_size=1, hidden=(), learning_starts=1)
    seen = np.full(3, 1e6, np.float32)
    for _ in range(3):
        learner.step(Transition(seen, 0, 1e9, seen, True, False))
    second = learner.state_dict()["network"]["second"]
    # the squares of a gradient of norm 10, weighted by 0.05 and once more by 0.95
    assert second.sum() == pytest.approx(0.05 * 100 * (1 + 0.95), rel=1e-4)


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (SPACES[0], {}),
        (SPACES[3], {}),
        (SPACES[5], {"hidden": (64, 45), "batch_size": 40}),
        (SPACES[6], {"hidden": (64, 45), "batch_size": 40}),
    ],
    ids=["vectors", "labels", "wide", "mostly zeros"],
)
def test_a_group_learns_bit_for_bit_what_each_learns_alone(
    space: Any, options: dict[str, Any]
) -> None:
    variants: list[dict[str, Any]] = [
        {"learning_rate": 1e-3, "double": False, "n_steps": 1},
        {"learning_rate": 1e-2, "gamma": 0.9, "n_steps": 4, "sync_every": 3},
        {"n_steps": 3, "corrected": False},
        {"n_steps": 5, "trace_decay": 0.8, "train_freq": 3, "sync_every": 2},
    ]
    together = learner_on(space, name="other", **options).replay
    members = [
        learner_on(space, name=str(k), replay=together, **options | own)
        for k, own in enumerate(variants)
    ]
    alone = [learner_on(space, name=str(k), **options | own) for k, own in enumerate(variants)]
    for step in steps_in(space, actions=3, count=60):
        for learner in members + alone:
            learner.step(step)
    for member, single in zip(members, alone, strict=True):
        one, other = (learner.state_dict()["network"] for learner in (member, single))
        assert one["updates"] >= 20
        for name in ("weights", "target", "first", "second"):
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize(
    ("hidden", "batch_size"), [((9, 5), 4), ((64, 45), 40), ((), 4)], ids=["narrow", "wide", "none"]
)
@pytest.mark.parametrize("space", SPACES)
def test_values_of_one_equal_values_of_many_and_those_of_pytorch(
    space: Any, hidden: tuple[int, ...], batch_size: int
) -> None:
    learner = learner_on(space, hidden=hidden, batch_size=batch_size)
    rng = np.random.default_rng(1)
    seen = np.array([element(space, rng) for _ in range(11)], space.dtype)
    many = learner.batch_values(seen)
    np.testing.assert_array_equal(many, [learner.values(each) for each in seen])
    layout = NetworkLayout(space, actions=3, hidden=hidden)
    weights = torch.from_numpy(learner.policy_state()["weights"])[None]
    np.testing.assert_allclose(
        many, evaluate(layout, weights, seen[None])[0].numpy(), rtol=1e-4, atol=1e-6
    )


def test_zeros_are_skipped_without_changing_a_bit() -> None:
    """Batches of few nonzeros skip zeros, and others with the same observations do not."""
    rng = np.random.default_rng(0)
    space = gym.spaces.Box(-np.inf, np.inf, (50,), np.float32)
    learner = learner_on(space, hidden=(64, 33), batch_size=8)
    full = rng.normal(size=(8, 50)).astype(np.float32)
    few = np.where(rng.random((8, 50)) < 0.05, full, 0)
    mixed = np.concatenate([few[:4], full[:4], few[4:], full[4:]])
    values = learner.batch_values(mixed)
    np.testing.assert_array_equal(learner.batch_values(few), values[[0, 1, 2, 3, 8, 9, 10, 11]])


def test_threads_that_train_at_the_same_time_do_not_change_a_bit() -> None:
    space = SPACES[5]
    steps = steps_in(space, actions=3, count=60)

    def weights_after_training() -> Any:
        learner = learner_on(space, hidden=(64, 64), batch_size=64)
        for step in steps:
            learner.step(step)
        return learner.policy_state()["weights"]

    expected = weights_after_training()
    with ThreadPoolExecutor(4) as threads:
        results = [threads.submit(weights_after_training) for _ in range(4)]
    for result in results:
        np.testing.assert_array_equal(result.result(), expected)


def test_stacks_of_frames_are_read_as_they_were() -> None:
    """The same episodes, stored as stacks and as single frames, give the same weights."""
    space = gym.spaces.Box(-np.inf, np.inf, (3, 2), np.float32)
    task = SimpleNamespace(observation_space=space, action_space=gym.spaces.Discrete(2))
    options: dict[str, Any] = {
        "hidden": (6,),
        "batch_size": 8,
        "learning_starts": 0,
        "train_freq": 1,
        "n_steps": 3,
        "double": False,
    }
    learners = [
        DQN("it", replay=SharedReplay(task, buffer_size=25, stack=stack), **options)
        for stack in (1, 3)
    ]
    rng = np.random.default_rng(0)
    for length in (9, 2, 1, 30):
        frames = rng.normal(size=(length + 3, 2)).astype(np.float32)
        for t in range(length):
            step = Transition(
                frames[t : t + 3],
                int(rng.integers(2)),
                1.0,
                frames[t + 1 : t + 4],
                t == length - 1,
                False,
                -0.5,
            )
            for learner in learners:
                learner.step(step)
    one, other = (learner.policy_state()["weights"] for learner in learners)
    np.testing.assert_array_equal(one, other)


def test_labels_outside_the_space_are_refused() -> None:
    learner = learner_on(gym.spaces.Discrete(4))
    for call in (lambda: learner.values(4), lambda: learner.batch_values(np.array([0, -1]))):
        with pytest.raises(InvalidValueError, match=r"Observations must be in Discrete\(4\)"):
            call()
    for step in (Transition(4, 0, 0.0, 1, False, False), Transition(1, 0, 0.0, -1, False, False)):
        with pytest.raises(InvalidValueError, match=r"Observations must be in Discrete\(4\)"):
            learner.step(step)
    with pytest.raises(InvalidValueError, match=r"Actions must be in Discrete\(3\)"):
        learner.step(Transition(0, 3, 0.0, 1, False, False))
    assert learner.replay.added == 0


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("network", "weights", np.zeros(3, np.float32)),
        ("network", "updates", -1),
        ("network", "second", "text"),
        ("replay", "actions", np.full(5, 3)),
        ("replay", "frames", np.full(5, -1)),
        ("replay", "frames", np.zeros((5, 2), int)),
        ("replay", "rewards", np.zeros(4, np.float32)),
        ("replay", "tail_rows", np.array([100])),
        ("replay", "tail_items", np.array([9])),
        ("replay", "added", 10**12),
        ("replay", "open", 3),
    ],
)
def test_a_damaged_state_is_refused_in_one_sentence(part: str, name: str, value: Any) -> None:
    learner = learner_on(gym.spaces.Discrete(4))
    for number in range(5):
        learner.step(Transition(number % 4, 0, 1.0, (number + 1) % 4, False, False))
    state = learner.state_dict()
    with pytest.raises(EsbasError, match="must"):
        learner.load_state_dict(state | {part: state[part] | {name: value}})
    learner.load_state_dict(state)


def test_a_memory_saved_without_log_probs_has_unknown_ones() -> None:
    learner = learner_on(gym.spaces.Discrete(4))
    for number in range(5):
        learner.step(Transition(number % 4, 0, 1.0, (number + 1) % 4, False, False, -0.5))
    state = learner.replay.state_dict()
    assert (state["log_probs"] == -0.5).all()
    del state["log_probs"]
    learner.replay.load_state_dict(state)
    assert np.isnan(learner.replay.state_dict()["log_probs"]).all()
