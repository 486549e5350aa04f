"""The batched DQN compared with plain torch.nn and with learners trained alone, and in the loop."""

import copy
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas import Transition
from esbas._internal import spaces
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, UnknownNameError
from esbas.learners import TabularQ
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.learner import DQN
from esbas.learners.dqn.on_pytorch.networks import evaluate
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.testing import Corridor, check_learner

VECTORS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
IMAGES = gym.spaces.Box(0, 255, (2, 12, 12), np.uint8)
QUICK: dict[str, Any] = {
    "hidden": (16, 16),
    "batch_size": 8,
    "learning_starts": 20,
    "train_freq": 1,
    "n_steps": 1,
    "sync_every": 7,
    "epsilon": (1.0, 0.1, 100),
}
VARIED: dict[str, dict[str, Any]] = {
    "plain": {"learning_rate": 1e-3, "double": False},
    "fast": {"learning_rate": 1e-2, "gamma": 0.9},
    "far": {"n_steps": 4, "gamma": 0.95, "sync_every": 3},
    "twin": {},
}


def memory(observation_space: Any = VECTORS, actions: int = 2, **options: Any) -> SharedReplay:
    env = SimpleNamespace(
        observation_space=observation_space, action_space=gym.spaces.Discrete(actions)
    )
    return SharedReplay(env, buffer_size=options.pop("buffer_size", 200), **options)


def walk(length: int, space: Any = VECTORS, *, seed: int = 0) -> list[Transition]:
    rng = np.random.default_rng(seed)
    steps = []
    seen = _random(space, rng)
    for _ in range(length):
        following = _random(space, rng)
        ends = rng.random() < 0.1
        steps.append(
            Transition(
                seen, int(rng.integers(2)), float(rng.normal()), following, bool(ends), False
            )
        )
        seen = _random(space, rng) if ends else following
    return steps


def _random(space: Any, rng: np.random.Generator) -> Any:
    if spaces.is_discrete(space):
        return int(rng.integers(space.n))
    if space.dtype == np.uint8:
        return rng.integers(256, size=space.shape).astype(np.uint8)
    return rng.normal(size=space.shape).astype(np.float32)


def values(learner: DQN, space: Any = VECTORS) -> Any:
    """The learner's values of ten observations."""
    rng = np.random.default_rng(9)
    return np.array([learner.values(_random(space, rng)) for _ in range(10)])


@pytest.mark.parametrize(
    "space", [VECTORS, IMAGES, gym.spaces.Discrete(5)], ids=["vectors", "images", "discrete"]
)
def test_members_that_train_as_one_learn_what_each_learns_alone(space: Any) -> None:
    options = QUICK | ({"convolutions": ((4, 4, 2), (8, 3, 1))} if space is IMAGES else {})
    together = memory(space)
    members = [DQN(name, replay=together, **options | own) for name, own in VARIED.items()]
    alone = [DQN(name, replay=memory(space), **options | own) for name, own in VARIED.items()]
    assert len(together.groups) == 1
    for step in walk(60, space):
        for learner in members + alone:
            learner.step(step)
    for member, single in zip(members, alone, strict=True):
        np.testing.assert_allclose(
            values(member, space), values(single, space), rtol=1e-3, atol=1e-4
        )
    spread = np.std([values(member, space) for member in members], axis=0)
    assert (spread > 1e-3).all()  # the members learnt different values


def test_one_update_equals_the_textbook_update() -> None:
    replay, steps = memory(), walk(20)
    learner = DQN(
        "it",
        replay=replay,
        learning_rate=0.01,
        gamma=0.9,
        batch_size=8,
        hidden=(16,),
        learning_starts=0,
        train_freq=20,
        n_steps=1,
    )
    state = learner.state_dict()
    matrices = [(3, 16), (16,), (16, 2), (2,)]
    parts = np.split(
        state["network"]["weights"], np.cumsum([np.prod(shape) for shape in matrices])[:-1]
    )
    w1, b1, w2, b2 = (
        torch.tensor(part.reshape(shape), requires_grad=True)
        for part, shape in zip(parts, matrices, strict=True)
    )
    rng = copy.deepcopy(learner._rng)
    for step in steps:
        learner.step(step)
    drawn = [steps[i] for i in rng.integers(20, size=8)]

    def q(observations: list[Any]) -> Any:
        return torch.relu(torch.tensor(np.array(observations)) @ w1 + b1) @ w2 + b2

    with torch.no_grad():
        # the target is still the same network
        following = q([step.next_observation for step in drawn])
        goes_on = torch.tensor([0.9 * (not step.terminated) for step in drawn])
        goals = torch.tensor([step.reward for step in drawn]) + goes_on * following.max(1).values
    predicted = q([step.observation for step in drawn])[range(8), [step.action for step in drawn]]
    gradients = torch.autograd.grad(
        torch.nn.functional.smooth_l1_loss(predicted, goals), (w1, b1, w2, b2)
    )
    # its norm is below 10, so it is not clipped
    gradient = torch.cat([part.flatten() for part in gradients]).numpy()
    # Adam's first step
    expected = state["network"]["weights"] - 0.01 * gradient / (np.abs(gradient) + 1e-8)
    updated = learner.state_dict()["network"]["weights"]
    assert not np.allclose(updated, state["network"]["weights"], atol=1e-3)
    np.testing.assert_allclose(updated, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("double", [False, True])
def test_double_and_plain_targets_differ_as_they_should(double: bool) -> None:
    """One transition only; network and target disagree about the best next action."""
    replay = memory(gym.spaces.Discrete(2))
    options: dict[str, Any] = QUICK | {
        "hidden": (),
        "batch_size": 2,
        "sync_every": 100,
        "learning_starts": 5,
    }
    learner = DQN("it", replay=replay, gamma=0.5, double=double, learning_rate=0.1, **options)
    state = learner.state_dict()
    # in state 1 the network prefers action 1,
    state["network"]["weights"] = np.array([0, 0, 0, 20, 0, 0], np.float32)
    state["network"]["target"] = np.array([0, 0, 8, 4, 0, 0], np.float32)  # but its target action 0
    learner.load_state_dict(state)
    for _ in range(90):
        learner.step(Transition(0, 0, 1.0, 1, False, False))
    assert learner.values(0)[0] == pytest.approx(1 + 0.5 * (4 if double else 8), abs=0.2)


def test_n_step_targets_reach_a_distant_reward() -> None:
    """A chain of four states with a reward at its end.

    Targets are never copied, so only n-step returns propagate the reward.
    """
    learned = {}
    for n_steps in (1, 4):
        own: dict[str, Any] = {
            "hidden": (),
            "batch_size": 16,
            "learning_starts": 0,
            "sync_every": 10**6,
            "n_steps": n_steps,
        }
        learner = DQN(
            "it",
            replay=memory(gym.spaces.Discrete(5)),
            gamma=0.9,
            learning_rate=0.05,
            **QUICK | own,
        )
        state = learner.state_dict()
        for name in ("weights", "target"):
            state["network"][name][:] = 0
        learner.load_state_dict(state)
        for _ in range(60):
            for s in range(4):
                learner.step(Transition(s, 0, float(s == 3), s + 1, s == 3, False, log_prob=0.0))
        learned[n_steps] = learner.values(0)[0]
    assert learned[1] == pytest.approx(0, abs=0.01)
    assert learned[4] == pytest.approx(0.9**3, abs=0.05)


def test_keeps_the_contract_of_learners() -> None:
    env = gym.make("CartPole-v1")
    check_learner(
        lambda: DQN("it", replay=SharedReplay(env, buffer_size=300), **QUICK | {"train_freq": 5}),
        env,
        episodes=3,
        draws=50,
    )


def test_solves_the_corridor() -> None:
    env = Corridor(6)
    replay = SharedReplay(env, buffer_size=2000)
    options: dict[str, Any] = QUICK | {"epsilon": (1.0, 0.1, 500), "gamma": 0.9}
    members = [
        DQN(f"rate {rate}", replay=replay, learning_rate=rate, **options)
        for rate in (0.001, 0.003, 0.01)
    ]
    run = esbas.run(env, members, esbas.SSBAS([member.name for member in members]), episodes=60)
    records = list(run)
    # the shortest path has 5 steps, and some slip
    assert np.mean([record.length for record in records[-20:]]) < 9
    assert all(learner.values(0).argmax() == 1 for learner in members)
    assert not any(record.faults for record in records)


def test_works_in_epochs_too() -> None:
    env = Corridor(5)
    replay = SharedReplay(env, buffer_size=2000)
    members = [
        DQN(name, replay=replay, **QUICK | {"epsilon": (1.0, 0.1, 300), "gamma": 0.7})
        for name in ("one", "two")
    ]
    run = esbas.run(env, members, esbas.ESBAS(["one", "two"]), episodes=32)
    before = None
    for record in run:
        now = members[0].values(0).copy()
        if record.number in (20, 31):  # within an epoch nothing changes
            np.testing.assert_array_equal(now, before)
        before = now
    assert replay.episodes == 31  # no learner has used the last episodes yet
    assert all(learner.values(0).argmax() == 1 for learner in members)


def test_a_member_that_diverges_fails_alone() -> None:
    replay = memory()
    healthy, broken, other = (
        DQN(name, replay=replay, **QUICK) for name in ("healthy", "broken", "other")
    )
    single = DQN("healthy", replay=memory(), **QUICK)
    state = broken.state_dict()
    state["network"]["weights"][0] = np.nan
    faults = {"healthy": 0, "broken": 0, "other": 0}
    for number, step in enumerate(walk(60)):
        if number == 30:
            broken.load_state_dict(state | {"replay": replay.state_dict()})
        single.step(step)
        for learner in (healthy, broken, other):
            try:
                learner.step(step)
            except DivergenceError:
                faults[learner.name] += 1
    assert faults["healthy"] == faults["other"] == 0
    assert faults["broken"] >= 28  # one for each update, raised at its next step
    np.testing.assert_allclose(values(healthy), values(single), rtol=1e-3, atol=1e-4)
    with pytest.raises(
        DivergenceError, match="DQN 'broken' became infinite or NaN: lower its `learning_rate`"
    ):
        broken.values(np.zeros(3, np.float32))


def test_a_dismissed_member_learns_nothing_and_does_not_delay_others() -> None:
    replay = memory()
    steps = walk(90)
    one, two = (DQN(name, replay=replay, **QUICK) for name in ("one", "two"))
    single = DQN("one", replay=memory(), **QUICK)
    for number, step in enumerate(steps):
        single.step(step)
        one.step(step)
        if not 40 <= number < 70:
            two.step(step)
        if number == 39:
            before = values(two)
        if number == 69:
            np.testing.assert_array_equal(values(two), before)
    np.testing.assert_allclose(values(one), values(single), rtol=1e-3, atol=1e-4)
    assert np.abs(values(two) - before).max() > 1e-3
    assert replay.added == 90


def test_a_policy_changes_only_when_its_learner_steps() -> None:
    replay = memory()
    one, two = (DQN(name, replay=replay, **QUICK) for name in ("one", "two"))
    for step in walk(40):
        before = values(two)
        one.step(step)
        np.testing.assert_array_equal(values(two), before)
        two.step(step)
    assert np.abs(values(two) - before).max() > 0


def test_epsilon_decays_with_the_transitions_of_all_members() -> None:
    learner = DQN("it", replay=memory(), **QUICK | {"epsilon": (0.8, 0.2, 40)})
    policy = learner.policy()
    seen = np.zeros(3, np.float32)
    assert learner.epsilon() == 0.8
    for step in walk(20):
        learner.step(step)
    assert learner.epsilon() == pytest.approx(0.5)
    best = int(learner.values(seen).argmax())
    assert policy.log_probs(np.array([seen, seen]), np.array([best, 1 - best])) == pytest.approx(
        np.log([0.75, 0.25])
    )
    for step in walk(60, seed=1):
        learner.step(step)
    assert learner.epsilon() == pytest.approx(0.2)
    rng = np.random.default_rng(0)
    assert np.mean([policy.act(seen, rng) == best for _ in range(2000)]) == pytest.approx(
        0.9, abs=0.03
    )


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_a_resumed_run_is_bit_identical(tmp_path: Path, optimizer: str) -> None:
    def parts() -> tuple[Any, list[DQN], esbas.Selector]:
        env = gym.make("CartPole-v1")
        replay = SharedReplay(env, buffer_size=300)
        members = [
            DQN(name, replay=replay, optimizer=optimizer, **QUICK | own)
            for name, own in VARIED.items()
        ]
        return env, members, esbas.SSBAS(list(VARIED), seed=3)

    def go(run: esbas.Run) -> list[Any]:
        return [(record.learner, record.value) for record in run]

    whole_parts, first_parts, later_parts = parts(), parts(), parts()
    whole = go(esbas.run(*whole_parts, episodes=20, seed=5))
    run = esbas.run(*first_parts, episodes=20, seed=5)
    first = [(record.learner, record.value) for record in itertools.islice(run, 12)]
    run.save(tmp_path / "run.npz")
    later = go(esbas.resume(tmp_path / "run.npz", *later_parts))
    assert first + later == whole
    for one, other in zip(whole_parts[1], later_parts[1], strict=True):
        for name, array in one.state_dict()["network"].items():
            np.testing.assert_array_equal(array, other.state_dict()["network"][name])


def test_a_save_file_holds_the_shared_memory_once(tmp_path: Path) -> None:
    sizes = []
    for count in (1, 4):
        env = Corridor(5)
        replay = SharedReplay(env, buffer_size=20_000)
        names = [str(k) for k in range(count)]
        members = [DQN(name, replay=replay, hidden=(2,)) for name in names]
        for step in walk(2000, env.observation_space):
            replay.add(step)
        run = esbas.run(env, members, esbas.SSBAS(names))
        run.save(tmp_path / "run.npz")
        sizes.append((tmp_path / "run.npz").stat().st_size)
    assert sizes[1] < sizes[0] + 25_000  # 2,000 transitions take over 40 kB


def test_results_depend_on_seeds_and_names() -> None:
    same, again, other_seed, other_name = (
        values(DQN(name, replay=memory(), seed=seed, **QUICK))
        for name, seed in (("a", 0), ("a", 0), ("a", 1), ("b", 0))
    )
    np.testing.assert_array_equal(same, again)
    assert (same != other_seed).all()
    assert (same != other_name).all()


def test_members_with_other_shapes_form_separate_groups() -> None:
    replay = memory()
    members = [
        DQN(str(k), replay=replay, **QUICK | own)
        for k, own in enumerate(({}, {"hidden": (8,)}, {"batch_size": 4}, {"gamma": 0}))
    ]
    assert len(replay.groups) == 3
    for step in walk(40):
        for learner in members:
            learner.step(step)
    assert replay.added == 40


def test_networks_for_images_of_any_layout() -> None:
    values_of = {}
    image = np.random.default_rng(0).integers(256, size=(12, 10, 3)).astype(np.uint8)
    for layout, shape in (("last", (12, 10, 3)), ("first", (3, 12, 10))):
        space = gym.spaces.Box(0, 255, shape, np.uint8)
        network = NetworkLayout(space, actions=2, hidden=(8,))
        assert network.convolutions == ((16, 3, 1),)
        seen = image if layout == "last" else np.moveaxis(image, -1, 0)
        weights = torch.from_numpy(network.initial(np.random.default_rng(1)))[None]
        values_of[layout] = evaluate(network, weights, seen[None, None]).numpy()
    np.testing.assert_allclose(values_of["last"], values_of["first"], rtol=1e-5)
    assert (
        len(
            NetworkLayout(
                gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), actions=2, hidden=(8,)
            ).convolutions
        )
        == 3
    )


def test_mixed_portfolios_are_checked_at_the_start() -> None:
    env = gym.make("CartPole-v1")
    dqn = DQN("deep", replay=SharedReplay(env, buffer_size=100), **QUICK)
    table = TabularQ("table", states=5, actions=2)
    with pytest.raises(
        SpaceError, match="observation_space of learner 'table' must be the environment's"
    ):
        esbas.run(env, [dqn, table], esbas.SSBAS(["deep", "table"]), episodes=1, keep_data=False)
    with pytest.raises(SpaceError, match="actions of DQN 'deep' must be 0, 1"):
        DQN("deep", replay=SharedReplay(gym.make("Pendulum-v1"), buffer_size=100))


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        (
            {"learning_rate": 0},
            InvalidValueError,
            "`learning_rate` must be greater than 0, but got 0",
        ),
        ({"gamma": 1.5}, InvalidValueError, "`gamma` must be between 0 and 1, but got 1.5"),
        ({"n_steps": 0}, InvalidValueError, "`n_steps` must be at least 1, but got 0"),
        ({"sync_every": 0}, InvalidValueError, "`sync_every` must be at least 1, but got 0"),
        ({"epsilon": (1.0, 2.0, 10)}, InvalidValueError, "`epsilon` must be a number from 0"),
        ({"hidden": (0,)}, InvalidValueError, "`hidden` must be at least 1, but got"),
        ({"convolutions": ((4, 3, 1),)}, InvalidValueError, "three axes"),
        ({"optimizer": "adma"}, UnknownNameError, "did you mean 'adam'"),
    ],
)
def test_bad_input_raises_a_clear_error(
    options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        DQN("it", replay=memory(), **options)


def test_an_observation_that_is_not_finite_is_no_divergence():
    env = gym.make("CartPole-v1")
    learner = DQN.for_env(env)
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidValueError, match="Observations must be finite"):
        learner.greedy_policy().act(np.array([0.0, np.nan, 0.0, 0.0], np.float32), rng)
