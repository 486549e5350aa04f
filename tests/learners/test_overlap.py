"""Networks that are trained beside the acting: one update behind, for any number of processes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import Transition
from esbas.errors import DivergenceError, IsolationError, UnknownNameError
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.learner import DQN
from esbas.learners.dqn.on_pytorch.batched import TorchGroup
from esbas.learners.dqn.on_pytorch.networks import grouped_convolution
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.testing import check_learner

IMAGES = gym.spaces.Box(0, 255, (2, 12, 12), np.uint8)
TASK = SimpleNamespace(observation_space=IMAGES, action_space=gym.spaces.Discrete(3))
PROBE = np.arange(288, dtype=np.uint8).reshape(IMAGES.shape)
QUICK: dict[str, Any] = {
    "hidden": (16,),
    "convolutions": ((4, 4, 2), (8, 3, 1)),
    "batch_size": 8,
    "learning_starts": 20,
    "train_freq": 4,
    "n_steps": 1,
    "sync_every": 3,
}
VARIED: dict[str, dict[str, Any]] = {
    "plain": {"double": False, "optimizer": "rmsprop", "initialization": "he_uniform"},
    "corrected": {"n_steps": 3, "gamma": 0.9, "bonus": 0.5},
    "uncorrected": {"n_steps": 4, "corrected": False, "gradient_steps": 2},
    "other network": {"hidden": (5, 5), "convolutions": ((3, 5, 2),), "train_freq": 3},
}


@pytest.fixture
def opened() -> Iterator[list[DQN]]:
    """Learners to close at the end of a test."""
    learners: list[DQN] = []
    yield learners
    for learner in learners:
        learner.close()


def portfolio(processes: int = 1, *, overlap: bool = True, **options: Any) -> list[DQN]:
    replay = SharedReplay(TASK, buffer_size=60, processes=processes)
    return [
        DQN(name, replay=replay, overlap=overlap, **QUICK | own | options)
        for name, own in VARIED.items()
    ]


def walk(length: int, *, seed: int = 0) -> list[Transition]:
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (length + 1, *IMAGES.shape), np.uint8)
    steps = []
    for number in range(length):
        ends = bool(rng.random() < 0.1)
        action = int(rng.integers(3))
        log_prob = float(np.log(rng.uniform(0.2, 1)))
        steps.append(
            Transition(
                frames[number],
                action,
                float(rng.normal()),
                frames[number + 1],
                ends,
                False,
                log_prob,
            )
        )
    return steps


def feed(learners: list[DQN], steps: list[Transition]) -> list[Any]:
    """The learners' values of one and the same observation after every step."""
    values = []
    for step in steps:
        for learner in learners:
            learner.step(step)
        values.append([learner.values(PROBE) for learner in learners])
    return values


def states(learners: list[DQN]) -> list[dict[str, Any]]:
    return [learner.state_dict()["network"] for learner in learners]


def children() -> set[int]:
    """The processes that this one has started and not waited for."""
    text = "".join(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    return set(map(int, text.split()))


def test_a_policy_is_one_update_behind() -> None:
    behind = portfolio(gradient_steps=1)
    usual = portfolio(overlap=False, gradient_steps=1)
    late = feed(behind, walk(60))
    early = feed(usual, walk(60))
    for member, learner in enumerate(behind):
        every = (QUICK | VARIED[learner.name])["train_freq"]
        for number in range(24, 60):  # steps so far
            last = number // every * every  # when the newest update was requested
            np.testing.assert_allclose(
                late[number - 1][member], early[last - 2][member], rtol=1e-3, atol=1e-4
            )
    for one, other in zip(states(behind), states(usual), strict=True):
        np.testing.assert_allclose(one["weights"], other["weights"], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(one["target"], other["target"], rtol=1e-3, atol=1e-4)
        assert one["updates"] == other["updates"] >= 10


@pytest.mark.services
def test_results_are_the_same_for_any_number_of_processes_after_kills_and_after_a_save(
    opened: list[DQN],
) -> None:
    steps = walk(150)
    before = children()
    alone = portfolio()
    expected = feed(alone, steps)

    opened += portfolio(2)
    found = feed(opened, steps[:70])
    workers = children() - before
    assert len(workers) == 2
    os.kill(workers.pop(), signal.SIGKILL)
    found += feed(opened, steps[70:90])
    resumed = portfolio()
    for old, new in zip(opened, resumed, strict=True):
        new.load_state_dict(old.state_dict())
    found += feed(resumed, steps[90:])

    np.testing.assert_array_equal(np.array(found), np.array(expected))
    for one, other in zip(states(resumed), states(alone), strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)
    opened[0].close()
    assert children() == before


def test_a_process_that_dies_in_the_same_update_again_and_again_is_a_fault(
    opened: list[DQN], monkeypatch: Any
) -> None:
    monkeypatch.setattr("esbas.learners.dqn.overlapped.workers._PROGRAM", "raise SystemExit(1)")
    replay = SharedReplay(TASK, buffer_size=60, processes=2)
    learner = DQN("a", replay=replay, overlap=True, **QUICK)
    opened.append(learner)
    with pytest.raises(IsolationError, match="was killed 3 times in the same one: see its output"):
        feed([learner], walk(40))
    assert np.isfinite(learner.values(PROBE)).all()  # with its last weights


def test_an_update_that_is_not_finite_is_skipped_and_reported() -> None:
    learner = portfolio()[0]
    feed([learner], walk(40))
    state = learner.state_dict()
    state["network"]["weights"][0] = np.nan
    learner.load_state_dict(state)
    with pytest.raises(DivergenceError, match="lower its `learning_rate`"):
        feed([learner], walk(9))
    skipped = learner.state_dict()["network"]["weights"]
    assert np.array_equal(skipped, state["network"]["weights"], equal_nan=True)


def test_in_a_run_it_is_saved_and_resumed(tmp_path: Path) -> None:
    def start() -> esbas.Run:
        learners = portfolio()
        selector = esbas.SSBAS([learner.name for learner in learners])
        return esbas.run(
            _Flicker(),
            learners,
            selector,
            episodes=12,
            keep_data=False,
            objective=esbas.total_return(),
        )

    expected = list(start())
    run = start()
    first = [next(run) for _ in range(7)]
    run.save(tmp_path / "run.npz")
    learners = portfolio()
    selector = esbas.SSBAS([learner.name for learner in learners])
    resumed = esbas.resume(
        tmp_path / "run.npz", _Flicker(), learners, selector, objective=esbas.total_return()
    )
    assert first + list(resumed) == expected


class _Flicker(gym.Env[Any, Any]):
    """Random images; pays for one of the actions."""

    observation_space = IMAGES
    action_space = TASK.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._left = 9
        return self._image(), {}

    def step(self, action: int) -> Any:
        self._left -= 1
        return self._image(), float(action == 1), self._left == 0, False, {}

    def _image(self) -> Any:
        return self.np_random.integers(0, 256, IMAGES.shape, np.uint8)


def test_it_passes_the_check_of_learners() -> None:
    def make() -> DQN:
        return DQN("a", replay=SharedReplay(TASK, buffer_size=60), overlap=True, **QUICK)

    check_learner(make, _Flicker(), episodes=3, draws=100)


def test_the_group_for_other_devices_is_one_update_behind_too() -> None:
    replay = SharedReplay(TASK, buffer_size=60)
    layout = NetworkLayout(IMAGES, actions=3, hidden=(16,), convolutions=QUICK["convolutions"])
    key = layout.convolutions, tuple(layout.shapes), 8, "adam", torch.device("cpu"), True
    replay.groups[key] = TorchGroup(
        replay, layout, batch_size=8, optimizer="adam", device=torch.device("cpu"), overlap=True
    )
    together = [DQN(name, replay=replay, overlap=True, **QUICK) for name in "ab"]
    other = SharedReplay(TASK, buffer_size=60)
    apart = [DQN(name, replay=other, overlap=True, **QUICK) for name in "ab"]
    np.testing.assert_allclose(
        feed(together, walk(60)), feed(apart, walk(60)), rtol=1e-3, atol=1e-4
    )
    assert isinstance(together[0]._group, TorchGroup)
    assert not isinstance(apart[0]._group, TorchGroup)
    for one, two in zip(states(together), states(apart), strict=True):
        np.testing.assert_allclose(one["acting"], two["acting"], rtol=1e-3, atol=1e-4)


def test_a_grouped_convolution_equals_single_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    x, kernels, biases = (
        torch.randn(*shape, generator=generator)
        for shape in ((3, 5, 2, 9, 8), (3, 4, 2, 3, 3), (3, 4))
    )
    single = torch.stack([torch.conv2d(x[k], kernels[k], biases[k], 2) for k in range(3)])
    torch.testing.assert_close(grouped_convolution(x, kernels, biases, 2), single)


def test_he_uniform_weights_are_within_their_bounds_and_biases_are_0() -> None:
    layout = NetworkLayout(IMAGES, actions=3, hidden=(16,), convolutions=QUICK["convolutions"])
    parts = layout.parts(layout.initial(np.random.default_rng(0), "he_uniform"))
    for weights, biases in zip(parts[::2], parts[1::2], strict=True):
        inputs = weights.shape[0] if weights.ndim == 2 else np.prod(weights.shape[1:])
        bound = np.sqrt(6 / inputs)
        assert 0.8 * bound < np.abs(weights).max() <= bound
        assert not biases.any()
    with pytest.raises(UnknownNameError, match="initialization"):
        layout.initial(np.random.default_rng(0), "he")
