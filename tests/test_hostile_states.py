"""A state that does not load raises one sentence and changes nothing.

Selectors, bandits, trajectories, runs.
"""

import copy
import itertools
import json
import math

import numpy as np
import pytest

from doubles import Faulty
from esbas import (
    ESBAS,
    SSBAS,
    UCB1,
    BanditSelector,
    Fixed,
    LinearThompson,
    Trajectory,
    TrajectorySet,
    Uniform,
    resume,
    run,
)
from esbas._internal import archive
from esbas.bandits import BANDITS, make_bandit
from esbas.errors import EsbasError, InvalidValueError, SaveFileError
from esbas.learners import TabularQ
from esbas.testing import Corridor

ARMS = ["a", "b", "c"]


def played(selector, rounds=20):
    rng = np.random.default_rng(0)
    for number in range(rounds):
        choice = selector.ask(context=rng.random(2))
        if number % 4:
            selector.tell(choice, float(rng.random()))
    return selector


def changed(state, path, value):
    """A copy with another value at this path; `...` removes what is there."""
    state = copy.deepcopy(state)
    parent = state
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return state


def refuses(part, state, match="must"):
    before = json.dumps(part.state_dict())
    with pytest.raises(EsbasError, match=match) as caught:
        part.load_state_dict(state)
    assert json.dumps(part.state_dict()) == before
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


SELECTOR = [
    (("kind",), ..., "must have the keys kind"),
    (("kind",), 3, "text at `kind`"),
    (("number",), ..., "must have the keys"),
    (("number",), -1, "a whole number >= 0 at `number`, but got -1"),
    (("number",), 20.0, "a whole number >= 0 at `number`, but got 20.0"),
    (("number",), True, "at `number`, but got True"),
    (("number",), 10**5000, "at `number`, but got an integer of more than 60 digits"),
    (("arms",), [], "The arms in .* must have different names, but got"),
    (("arms",), ["a", "a", "b"], "must have different names, but got .'a', 'a', 'b'."),
    (("arms",), ["a", "b"], "must be one per arm, but got 3 and 3 for 2 arms"),
    (("arms",), "abc", "a list at `arms`"),
    (("arms", 0), "d", "must be among its arms, but .'a'. are not"),
    (("stationary",), ["z"], "must be among its arms, but .'z'. are not"),
    (("open", 0, 0, "arm"), "z", "must be among its arms, but .'z'. are not"),
    (("selections", 0), -1, "at `selections\\[0\\]`, but got -1"),
    (("epoch",), 10**18, "build the selector with the same epochs"),
    (("epoch",), -2, "at `epoch`, but got -2"),
    (("epoch",), math.nan, "at `epoch`, but got nan"),
    (("claims",), 1, "true or false at `claims`"),
    (("open", 0, 0, "context"), "text", "at `open\\[0\\]\\[0\\].context`"),
    (("open", 0, 0, "propensity"), -0.5, "at `open\\[0\\]\\[0\\].propensity`"),
    (("open", 0, 0), [1], "a dictionary"),
    (("open", 0), [1], "a list of length 3 at `open\\[0\\]`"),
    (("open", 0, 1), "ticket", "at `open\\[0\\]\\[1\\]`"),
    (("open",), nested(5_000), "at `open\\[0\\]`"),
    (("rng",), {}, "The state of the random generator must have the keys bit_generator"),
    (("rng", "bit_generator"), "MT19937", "'PCG64' at `bit_generator`, but got 'MT19937'"),
    (("rng", "state", "state"), -1, "at `state.state`, but got -1"),
    (("rng", "state", "inc"), 2**128, "at `state.inc`"),
    (("rng", "uinteger"), 2**32, "at `uinteger`"),
    (("bandit",), None, "at `bandit`, but got None"),
    (("bandit", "n_arms"), 0, "at `n_arms`, but got 0"),
    (("bandit", "n_arms"), 10**9, "at `n_arms`"),
    (("bandit", "n_arms"), 2, "must have all of its 2 arms, but has 3"),
    (("bandit", "memory", "arms", 1, "mean"), math.inf, "at `arms\\[1\\].mean`, but got inf"),
    (("bandit", "memory", "arms", 1, "pulls"), -1, "at `arms\\[1\\].pulls`, but got -1"),
    (("bandit", "memory", "arms", 1, "extra"), 1, "the keys"),
    (("bandit", "memory", "open"), [[1, 5, None]], "but has 3 arms and a round of arm 5"),
    (("scale", "origin"), "0", "at `origin`, but got '0'"),
    (("scale",), [], "at `scale`"),
]


@pytest.mark.parametrize(("path", "value", "match"), SELECTOR, ids=map(str, itertools.count()))
def test_a_selector_refuses_a_hostile_state_and_stays_as_it_was(path, value, match):
    state = json.loads(json.dumps(played(ESBAS(ARMS)).state_dict()))
    refuses(played(ESBAS(ARMS, seed=3), rounds=9), changed(state, path, value), match)
    twin = ESBAS(ARMS)
    twin.load_state_dict(state)
    assert json.dumps(twin.state_dict()) == json.dumps(state)


@pytest.mark.parametrize(
    "state", [None, 3, [], "state", {}, {1: 2}, nested(5_000)], ids=map(str, range(7))
)
@pytest.mark.parametrize("new", [ESBAS, SSBAS, Uniform, LinearThompson])
def test_other_things_than_states_are_refused(new, state):
    refuses(new(ARMS), state)


def test_states_of_other_epochs_are_refused():
    refuses(
        Fixed(ARMS),
        Fixed(ARMS, epochs=[3]).state_dict() | {"epoch": 2},
        "build the selector with the same epochs",
    )
    refuses(
        BanditSelector(ARMS, bandit=UCB1),
        played(BanditSelector(ARMS, bandit=UCB1, epochs=[3])).state_dict(),
        "same epochs",
    )


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("regressions",), [], "one regression for each of its 3 arms, but has 0"),
        (("regressions", 0, "n"), -1, "at `regressions\\[0\\].n`"),
        (("regressions", 0, "x"), [1.0], "must have 1 features, but one has"),
        (("regressions", 0, "xx"), [[1.0, 2.0, 3.0]], "must have 3 features, but one has"),
        (("regressions", 0, "xy", 0), math.nan, "but got nan"),
        (("open", 0, 1), None, "at `open\\[0\\]\\[1\\]`"),
    ],
)
def test_linear_thompson_refuses_hostile_regressions(path, value, match):
    state = json.loads(json.dumps(played(LinearThompson(ARMS)).state_dict()))
    refuses(played(LinearThompson(ARMS, seed=1), rounds=5), changed(state, path, value), match)


@pytest.mark.parametrize("name", BANDITS)
@pytest.mark.parametrize("new", [ESBAS, SSBAS])
def test_every_bandit_refuses_states_that_lack_something(new, name):
    """Every key and the first item of every list, one at a time.

    Removed, and replaced by something of another type.
    """
    selector = played(new(ARMS, bandit=make_bandit(name)))
    state = json.loads(json.dumps(selector.state_dict()))
    paths = list(places(state["bandit"], ("bandit",)))
    assert len(paths) > 5
    for path in paths:
        refuses(selector, changed(state, path, {"other": "type"}))
        if isinstance(path[-1], str):
            refuses(selector, changed(state, path, ...))
    selector.load_state_dict(state)


def places(value, path):
    if isinstance(value, list) and len(path) > 3 and path[-2] == "open" and value[2] is None:
        value = value[:2]  # bandits that keep no note of a round ignore it
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        if key not in range(1, 100) or "open" in path[-2:]:
            yield (*path, key)
            yield from places(item, (*path, key))


def test_tickets_of_a_window_that_are_not_in_it_have_no_effect():
    selector = played(SSBAS(ARMS))
    state = changed(json.loads(json.dumps(selector.state_dict())), ("open", 4, 1), 10**6)
    selector.load_state_dict(state)
    selector.tell(selector.open_choices[4], 1.0)
    selector.withdraw(selector.open_choices[3])


class Halfway(UCB1):
    """A bandit of a user, which changes itself before it fails."""

    loads = 0

    def state_dict(self):
        return super().state_dict() | {"loads": self.loads}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.loads = state["loads"]
        if state.get("bad"):
            raise KeyError("a raw error")


def test_a_plug_in_that_fails_is_restored_and_its_error_becomes_a_sentence():
    selector = played(ESBAS(ARMS, bandit=Halfway))
    state = selector.state_dict()
    assert state["bandit"]["loads"] == 0
    other = played(ESBAS(ARMS, bandit=Halfway), rounds=7)
    refuses(
        other,
        changed(state, ("bandit", "bad"), True),
        "The state of a ESBAS must fit, but KeyError: 'a raw error'",
    )
    other.load_state_dict(state)
    assert other.state_dict() == state


def trajectories():
    data = TrajectorySet()
    rng = np.random.default_rng(0)
    for steps in (1, 2, 3):
        columns = rng.random((steps + 1, 2)), rng.integers(3, size=steps), rng.random(steps)
        data.append(Trajectory(*columns, terminated=True, truncated=False), arm="a")
    return data


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("arms",), ["a"], "one length >= 1 per arm"),
        (("arms",), [1, 2, 3], "text at `arms"),
        (("lengths",), [1, 2, 3], "an array of kind 'iu'"),
        (("lengths",), np.array([1, -2, 7]), "one length >= 1 per arm"),
        (("lengths",), np.array([1, 2, 2**62]), "at `rewards`"),
        (("lengths",), np.array([3, 2, 2]), "at `rewards`"),
        (("ended",), np.zeros((3, 2)), "an array of kind 'b'"),
        (("ended",), np.zeros((2, 2), bool), "an array of kind 'b'"),
        (("columns",), {}, "the keys observations"),
        (("columns", "observations"), np.zeros((8, 2)), "must have 9 observations"),
        (("columns", "actions"), np.array(1), "must have 6 actions"),
        (("columns", "rewards"), np.full(6, np.nan), "Rewards must be finite"),
        (("columns", "rewards"), np.full(6, "a"), "an array of kind 'f'"),
        (("columns", "more"), np.zeros(6), "the keys observations"),
    ],
)
def test_trajectories_of_other_shapes_are_refused(path, value, match):
    data = TrajectorySet()
    data.append(trajectories()[0], arm="z")
    with pytest.raises(InvalidValueError, match=match):
        data.load_state_dict(changed(trajectories().state_dict(), path, value))
    assert data.arms == ("z",)
    data.load_state_dict(trajectories().state_dict())
    assert [len(data[i]) for i in range(3)] == [1, 2, 3]


NAMES = ["slow", "fast", "last"]


def learners():
    return [
        TabularQ(name, states=4, actions=2, learning_rate=rate)
        for name, rate in zip(NAMES, (0.1, 0.5, 0.9), strict=True)
    ]


@pytest.fixture
def path(tmp_path):
    episodes = run(Corridor(4, max_episode_steps=6), learners(), SSBAS(NAMES), episodes=20, seed=1)
    for _ in range(8):
        next(episodes)
    episodes.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("place", "value", "match"),
    [
        (("seed",), -1, "a whole number >= 0 at `seed`, but got -1"),
        (("seed",), "7", "at `seed`"),
        (("max_episode_steps",), 0, "at `max_episode_steps`"),
        (("keep_data",), 1, "at `keep_data`"),
        (("budget",), None, "at `budget`"),
        (("budget", "episodes"), -5, "at `budget.episodes`|`episodes` must be at least 0"),
        (("budget", "more"), 1, "the keys episodes, steps at `budget`"),
        (("number",), -1, "at `number`"),
        (("objective",), 3, "at `objective`"),
        (("objective",), "other", "was saved with"),
        (("roster",), [], "at `roster`"),
        (("roster", "slow"), ..., "was saved with"),
        (("roster", "slow"), 3, "The saved learners must have .* at `slow`"),
        (
            ("roster", "slow", "strikes"),
            -1,
            "The saved learners must have .* at `slow.strikes`, but got -1",
        ),
        (("roster", "slow", "strikes"), 2**62, "at `slow.strikes`"),
        (("roster", "fast", "away_until"), 0.5, "at `fast.away_until`"),
        (
            ("roster", "slow", "learner"),
            None,
            "The saved state of learner 'slow' must be a dictionary",
        ),
        (("roster", "fast", "learner"), {}, "The saved state of learner 'fast' must have the keys"),
        (
            ("roster", "last", "learner"),
            {"calls": 3},
            "The saved state of learner 'last' must have the keys",
        ),
        (("selector",), 3, "at `selector`"),
        (("selector", "number"), -1, "at `number`, but got -1"),
        (
            ("selector", "bandit", "memory", "arms"),
            [0] * 3,
            "one arm and one reward per round, but has 3 arms",
        ),
        (("data",), None, "The saved trajectories"),
        (("data", "arms"), [], "one length >= 1 per arm"),
    ],
    ids=map(str, itertools.count()),
)
def test_a_hostile_run_is_refused_and_the_parts_passed_stay_as_they_were(path, place, value, match):
    archive.write(path, "run", changed(archive.read(path, "run"), place, value))
    members = learners()
    selector = SSBAS(NAMES)
    before = [repr(part.state_dict()) for part in (*members, selector)]
    with pytest.raises(EsbasError, match=match) as caught:
        resume(path, Corridor(4, max_episode_steps=6), members, selector)
    assert [repr(part.state_dict()) for part in (*members, selector)] == before
    assert "\n" not in str(caught.value)


def test_a_selector_with_other_arms_than_the_learners_is_refused(path):
    other = SSBAS(["slow", "fast", "other"])
    for number in range(8):
        other.tell(other.ask(), number / 8)
    archive.write(path, "run", archive.read(path, "run") | {"selector": other.state_dict()})
    with pytest.raises(
        InvalidValueError, match="The saved selector must choose among the learners"
    ):
        resume(path, Corridor(4, max_episode_steps=6), learners(), SSBAS(NAMES))


class Locked(Faulty):
    """A learner that can neither be saved nor loaded now."""

    def state_dict(self):
        raise RuntimeError("no state")

    def load_state_dict(self, state):
        raise RuntimeError("no load\nat all")


def test_a_learner_that_raises_in_both_methods_does_not_hide_the_cause(path):
    members = [*learners()[:2], Locked("last")]
    before = [repr(part.state_dict()) for part in members[:2]]
    with pytest.raises(
        SaveFileError,
        match=r"must fit those saved in .*, but RuntimeError: no load at all: build them",
    ):
        resume(path, Corridor(4, max_episode_steps=6), members, SSBAS(NAMES))
    assert [repr(part.state_dict()) for part in members[:2]] == before
