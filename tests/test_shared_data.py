"""What the loop hands out is read-only, and what it stores is its own.

No learner can change what others see.
"""

import copy
import pickle

import gymnasium
import numpy as np
import pytest

from doubles import Faulty
from esbas import ESBAS, SSBAS, Fixed, Trajectory, TrajectorySet, play, resume, run
from esbas._internal.columns import ReadOnlyDict
from esbas._internal.spaces import Discrete
from esbas.learners import Constant


class Points:
    """Four steps; the environment writes every observation into the same array."""

    action_space = Discrete(2)
    observation_space = None

    def reset(self, *, seed=None):
        self._place = np.array([float(seed % 5), 0.0])
        self._steps = 0
        return self._place, {}

    def step(self, action):
        self._steps += 1
        self._place += 1.0
        return self._place, 1.0, self._steps == 4, False, {}


def arrays_in(value):
    """All arrays that can be reached from a value, through views, tuples and dictionaries."""
    if isinstance(value, np.ndarray):
        yield value
        yield from arrays_in(value.base)
        if value.dtype.hasobject:
            for item in value.ravel():
                yield from arrays_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_in(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays_in(item)


class Spy(Faulty):
    """Keeps all that it is given."""

    def __init__(self, name):
        super().__init__(name)
        self.given = []

    def act(self, observation, rng):
        self.given.append(observation)
        return super().act(observation, rng)

    def step(self, transition):
        self.given.append(tuple(transition))

    def learn(self, data):
        whole = data.transitions()
        self.given += [
            data.arms,
            tuple(whole),
            *(vars_of(each) for each in data.since(0)),
            *(vars_of(e) for e in data.by("a")),
        ]
        self.given += [tuple(transition) for transition in data[0].transitions()]

    def log_probs(self, observations, actions):
        self.given += [observations, actions]
        return super().log_probs(observations, actions)


def vars_of(trajectory):
    return tuple(getattr(trajectory, name) for name in Trajectory.__dataclass_fields__)


class Judge(ESBAS):
    wants = frozenset({"log_probs"})

    def observe(self, choice, value, *, note, evidence):
        super().observe(choice, value, note=note, evidence=evidence)
        assert all(evidence.log_probs(arm) is not None for arm in self.arms)


@pytest.mark.parametrize("selector", [Judge, SSBAS])
def test_every_array_that_a_member_can_reach_is_read_only(selector, tmp_path):
    def parts():
        return Points(), [Spy("a"), Spy("b")], selector(["a", "b"])

    episodes = run(*parts(), episodes=8)
    for _ in range(5):
        assert next(episodes).faults == ()
    episodes.save(tmp_path / "run")
    resumed = resume(tmp_path / "run", *parts())
    list(resumed)
    for spy in (*episodes.learners, *resumed.learners):
        found = list(arrays_in(spy.given))
        assert len(found) > 20
        assert not any(array.flags.writeable for array in found)


def test_lists_that_a_member_changes_are_not_the_shared_ones():
    class Vandal(Faulty):
        def learn(self, data):
            for values in (data.since(0), data.by("a"), data.by("b")):
                values.append(values[0] if values else None)
                values.clear()
            with pytest.raises(AttributeError):
                data.arms.append("c")
            with pytest.raises(AttributeError):
                data[0].rewards = np.zeros(4)

    episodes = run(Points(), [Vandal("a"), Vandal("b")], ESBAS(["a", "b"]), episodes=8)
    assert [record.faults for record in episodes] == [()] * 8
    assert len(episodes.data) == len(episodes.data.arms) == 8


def test_a_member_cannot_add_to_the_shared_data():
    class Vandal(Faulty):
        def learn(self, data):
            data.append(data[0], arm="good")

    class Loader(Faulty):
        def learn(self, data):
            data.load_state_dict(TrajectorySet().state_dict())

    learners = [Vandal("adds"), Loader("loads"), Faulty("good")]
    episodes = run(Points(), learners, ESBAS(["adds", "loads", "good"]), episodes=8)
    faults = {(fault.learner, fault.where) for record in episodes for fault in record.faults}
    assert faults == {("adds", "learn"), ("loads", "learn")}
    assert len(episodes.data) == 8


def test_a_view_follows_its_set():
    data = TrajectorySet()
    view = data.read_only()
    data.append(play(Points(), Faulty("a"), rng=np.random.default_rng(0), seed=0), arm="a")
    assert (len(view), view[0], view.arms) == (1, data[0], ("a",))
    data.load_state_dict(data.state_dict())
    assert view[0] is data[0]


def test_states_do_not_share_memory_with_the_data():
    data = TrajectorySet()
    data.append(play(Points(), Faulty("a"), rng=np.random.default_rng(0), seed=0), arm="a")
    state = data.state_dict()
    for column in state["columns"].values():
        column[...] = 7
    state["arms"].append("b")
    assert data[0].observations[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert data.arms == ("a",)


class Composite(Points):
    """Observations are dictionaries and tuples of arrays."""

    def reset(self, *, seed=None):
        return self._compose(super().reset(seed=seed)[0]), {}

    def step(self, action):
        place, *rest = super().step(action)
        return self._compose(place), *rest

    def _compose(self, place):
        return {"place": place, "pair": (place, {"deep": place}), "list": [place]}


def writes_into_the_array(observation):
    observation["place"] /= 100.0


def writes_deep_inside(observation):
    observation["pair"][1]["deep"][:] = 7.0


def replaces_an_entry(observation):
    observation["place"] = observation["place"] / 100.0


def removes_an_entry(observation):
    del observation["list"]


def updates(observation):
    observation.update(place=0)


@pytest.mark.parametrize(
    "damage",
    [writes_into_the_array, writes_deep_inside, replaces_an_entry, removes_an_entry, updates],
)
def test_observations_of_several_parts_are_read_only_too(damage):
    class Vandal(Faulty):
        def act(self, observation, rng):
            damage(observation)
            return 0

    episodes = run(Composite(), [Vandal("bad"), Faulty("good")], Fixed(["bad", "good"]), episodes=1)
    record = next(episodes)
    assert [(fault.learner, fault.where) for fault in record.faults] == [("bad", "act")]
    for step, observation in enumerate(episodes.data[0].observations):
        assert (
            observation["place"][1]
            == observation["pair"][1]["deep"][1]
            == observation["list"][0][1]
            == step
        )


def test_copies_of_read_only_dictionaries_can_be_changed():
    original = ReadOnlyDict(place=1)
    for make in (
        dict,
        copy.copy,
        copy.deepcopy,
        lambda each: pickle.loads(pickle.dumps(each)),
        lambda each: each | {},
    ):
        changed = make(original)
        changed["place"] = 2
    assert original == {"place": 1}


class Clipping(gymnasium.ActionWrapper):
    """Changes actions in place."""

    def action(self, action):
        np.clip(action, -0.1, 0.1, out=action)
        return action


def test_the_stored_action_is_the_one_that_was_chosen():
    env = Clipping(gymnasium.make("Pendulum-v1", max_episode_steps=3))
    episodes = run(
        env, [Constant("a", lambda _: np.array([0.5], np.float32))], Fixed("a"), episodes=1
    )
    next(episodes)
    assert episodes.data[0].actions.tolist() == [[0.5]] * 3


def test_an_action_buffer_that_a_policy_uses_again_is_copied():
    buffer = np.zeros(1, np.float32)

    def count(observation):
        buffer[0] += 0.1
        return buffer

    episodes = run(
        gymnasium.make("Pendulum-v1", max_episode_steps=3),
        [Constant("a", count)],
        Fixed("a"),
        episodes=1,
    )
    next(episodes)
    assert episodes.data[0].actions.ravel().tolist() == pytest.approx([0.1, 0.2, 0.3])


def test_a_list_that_a_policy_uses_again_is_copied():
    buffer = [0.0]

    def count(observation):
        buffer[0] += 0.1
        return buffer

    episodes = run(
        gymnasium.make("Pendulum-v1", max_episode_steps=3),
        [Constant("a", count)],
        Fixed("a"),
        episodes=1,
    )
    next(episodes)
    assert episodes.data[0].actions.ravel().tolist() == pytest.approx([0.1, 0.2, 0.3])
