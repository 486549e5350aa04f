"""Infos: what environments report besides rewards, in trajectories, saves and objectives."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import esbas
from doubles import Always
from esbas import Trajectory, TrajectorySet, constrained_return, success_rate
from esbas._internal import archive
from esbas.errors import (
    ContractError,
    InvalidValueError,
    SaveFileError,
    UnknownNameError,
)
from esbas.isolation import Isolated
from esbas.learners import Constant
from esbas.objective import as_objective, make_objective
from esbas.specs.selectors import given_objective, read_objective
from esbas.testing import Corridor, check_objective

NUMBER = 3


class Reporting(Corridor):
    """A corridor that reports, at each step, the next of the given infos."""

    def __init__(self, *infos, **options):
        super().__init__(5, slip=0.0, **options)
        self.infos = infos
        self.number = 0

    def reset(self, *, seed=None, options=None):
        self.number = 0
        return super().reset(seed=seed)

    def step(self, action):
        *rest, _ = super().step(action)
        info = self.infos[self.number % len(self.infos)]
        self.number += 1
        return (*rest, info)


class Costly(Corridor):
    """A corridor in which each position, but for the first one, costs its number."""

    def step(self, action):
        position, *rest, info = super().step(action)
        if position:
            info["cost"] = position
        return (position, *rest, info)


def objective_with(*keys, function=len):
    return esbas.Objective(name="mine", function=function, infos=keys)


def played(env, objective, *, action=1):
    """The trajectory of one episode of a run."""
    run = esbas.run(env, [Constant("it", lambda _: action)], episodes=1, objective=objective)
    next(run)
    return run.data[0]


def episode(rewards, *, terminated=True, **infos):
    steps = len(rewards)
    return Trajectory(
        np.arange(steps + 1),
        np.zeros(steps, int),
        np.array(rewards, float),
        terminated,
        not terminated,
        infos=infos,
    )


# Trajectories


def test_a_run_keeps_the_keys_that_its_objective_declares():
    infos = (
        {"cost": 2, "other": "text"},
        {"won": True},
        {"cost": np.float32(0.5), "won": np.False_},
        {"cost": np.int8(-3)},
    )
    found = played(Reporting(*infos), objective_with("cost", "won")).infos
    assert list(found) == ["cost", "won"]
    assert found["cost"].dtype == found["won"].dtype == np.float64
    np.testing.assert_array_equal(found["cost"], [2, np.nan, 0.5, -3])
    np.testing.assert_array_equal(found["won"], [np.nan, 1, 0, np.nan])


def test_without_declared_keys_nothing_is_kept():
    env = Reporting({"cost": [1]})
    trajectory = played(env, "return")
    assert trajectory.infos == {}
    data = TrajectorySet()
    data.append(trajectory)
    assert list(data.state_dict()) == ["arms", "lengths", "ended", "columns"]


def test_an_env_that_reuses_its_info_does_not_change_what_was_kept():
    class Reusing(Corridor):
        info = {"position": 0}  # noqa: RUF012

        def step(self, action):
            *rest, _ = super().step(action)
            self.info["position"] = rest[0]
            return (*rest, self.info)

    found = played(Reusing(5, slip=0.0), objective_with("position")).infos
    assert found["position"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("much", r"'much' of type str"),
        (None, "None of type NoneType"),
        ([1.0], r"\[1\.0\] of type list"),
        (np.array([1.0, 2.0]), r"array\(\[1\., 2\.\]\) of type ndarray"),
        (np.array(1.0), r"array\(1\.\) of type ndarray"),
        (np.zeros((9, 9)), r"array\(.*\.\.\. of type ndarray"),
        (1j, "1j of type complex"),
        ({"r": 1}, "{'r': 1} of type dict"),
        (10**400, "an integer of more than 60 digits of type int"),
    ],
)
def test_other_values_are_refused_in_one_sentence(value, shown):
    rule = r"The info 'cost' must be a number that a float can hold, or a boolean, but got "
    with pytest.raises(InvalidValueError, match=f"^{rule}{shown}: convert it.*key\\.$"):
        played(Reporting({"cost": 0.5}, {"cost": value}), objective_with("cost"))


@pytest.mark.parametrize("value", [math.nan, np.float32("nan")])
def test_a_reported_nan_is_no_missing_key(value):
    """Otherwise a cost of NaN would count as no cost."""
    with pytest.raises(InvalidValueError, match=r"^The info 'cost' must not be NaN: fix it.*\.$"):
        played(Reporting({"cost": 0.5}, {"cost": value}), objective_with("cost"))


def test_an_info_that_is_no_dictionary_is_refused():
    with pytest.raises(InvalidValueError, match=r"info of a step must be a dictionary.*got None"):
        played(Reporting(None), objective_with("cost"))
    assert len(played(Reporting(None), "return")) == 4  # nobody asked for it


def test_a_refused_info_withdraws_the_choice():
    env = Reporting({"cost": 1}, {"cost": "much"})
    run = esbas.run(env, [Constant("it", lambda _: 1)], objective=objective_with("cost"))
    with pytest.raises(InvalidValueError, match="'much'"):
        next(run)
    assert run.number == len(run.data) == 0
    env.infos = ({"cost": 1},)
    assert next(run).number == 1


def test_infos_are_read_only():
    given_ = np.array([1.0, 2.0])
    columns = {"cost": given_}
    trajectory = episode([0, 0], **columns)
    given_[0] = 7
    columns["more"] = given_
    assert list(trajectory.infos) == ["cost"]
    assert trajectory.infos["cost"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        trajectory.infos["cost"][0] = 3
    with pytest.raises(TypeError, match="read-only"):
        trajectory.infos["more"] = given_
    with pytest.raises(TypeError, match="read-only"):
        episode([0]).infos["more"] = given_


@pytest.mark.parametrize("column", [[1.0], [1.0, 2.0, 3.0], 1.0, [[1.0], [2.0]], ["a", "b"]])
def test_a_column_has_a_number_per_step(column):
    with pytest.raises(
        InvalidValueError, match="infos 'cost' of a trajectory must be one number or boolean per"
    ):
        episode([0, 0], cost=column)


def test_a_key_that_was_not_declared_is_explained():
    def function(trajectory):
        return trajectory.infos["cost"].sum()

    with pytest.raises(
        UnknownNameError,
        match=r"no info 'cost': declare it .*esbas\.Objective\(\.\.\., infos=\('cost',\)\)",
    ):
        played(Costly(), function)
    assert pickle.loads(pickle.dumps(episode([0]))).infos.get("cost") is None


def test_play_keeps_infos():
    trajectory = esbas.play(
        Costly(4, slip=0.0), Always(1), rng=np.random.default_rng(0), infos=["cost", "cost"]
    )
    assert {key: column.tolist() for key, column in trajectory.infos.items()} == {"cost": [1, 2, 3]}
    with pytest.raises(InvalidValueError, match="`infos` must be a list of keys, but got 'cost'"):
        esbas.play(Costly(), Always(1), rng=np.random.default_rng(0), infos="cost")


# Saves


COLUMNS = st.dictionaries(st.sampled_from(["cost", "is_success", "ä b"]), st.integers(0, 99))


@given(st.lists(st.tuples(st.integers(1, 9), COLUMNS), max_size=8))
def test_a_loaded_set_has_the_same_infos(shapes):
    """Also where trajectories have different keys: a run may go on with another objective."""
    data = TrajectorySet()
    for steps, seeds in shapes:
        columns = {}
        for key, seed in seeds.items():
            rng = np.random.default_rng(seed)
            columns[key] = np.where(rng.random(steps) < 0.3, np.nan, rng.normal(size=steps))
        data.append(episode(np.zeros(steps), **columns))
    twin = TrajectorySet()
    twin.load_state_dict(data.state_dict())
    assert len(twin) == len(data)
    for i in range(len(data)):
        assert data[i].infos.keys() == twin[i].infos.keys()
        for key, column in data[i].infos.items():
            assert column.tobytes() == twin[i].infos[key].tobytes()
            assert not twin[i].infos[key].flags.writeable
    assert repr(twin.state_dict()) == repr(data.state_dict())


def with_infos():
    data = TrajectorySet()
    data.append(episode([0, 0], cost=[1, 2]), arm="a")
    data.append(episode([0, 0, 0]), arm="b")
    data.append(episode([0], cost=[3]), arm="a")
    return data


def test_states_without_infos_load():
    state = with_infos().state_dict()
    del state["infos"]
    data = TrajectorySet()
    data.load_state_dict(state)
    assert [data[i].infos for i in range(3)] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("saved", "match"),
    [
        ([], "at `infos`"),
        ({"cost": np.zeros(3)}, "at `infos"),
        ({"cost": {"kept": np.ones(3, bool)}}, "the keys kept, values"),
        ({"cost": {"kept": np.ones(2, bool), "values": np.zeros(6)}}, "`kept` of the infos 'cost'"),
        ({"cost": {"kept": np.ones(3, bool), "values": np.zeros(5)}}, "`values` of the infos"),
        ({"cost": {"kept": np.zeros(3), "values": np.zeros(0)}}, "`kept` of the infos 'cost'"),
        ({"cost": {"kept": np.ones(3, bool), "values": np.full(6, "a")}}, "`values` of the infos"),
    ],
)
def test_infos_of_other_shapes_are_refused_and_change_nothing(saved, match):
    data = TrajectorySet()
    data.append(episode([1]), arm="z")
    with pytest.raises(InvalidValueError, match=match):
        data.load_state_dict(with_infos().state_dict() | {"infos": saved})
    assert data.arms == ("z",)
    empty = TrajectorySet().state_dict()
    with pytest.raises(InvalidValueError, match="`kept` of the infos 'cost'"):
        data.load_state_dict(
            empty | {"infos": {"cost": {"kept": np.ones(1, bool), "values": np.zeros(1)}}}
        )


class Cautious:
    """Goes to the right less often the more the episodes so far have cost."""

    stationary = False

    def __init__(self, name):
        self.name = name
        self.mean = 0.0

    def learn(self, data):
        costs = [np.nansum(each.infos["cost"]) for each in data.since(0)]
        self.mean = float(np.mean(costs))

    def policy(self):
        return Hesitant(right=1 / (1 + self.mean / 20))

    def state_dict(self):
        return {"mean": self.mean}

    def load_state_dict(self, state):
        self.mean = state["mean"]


class Hesitant:
    def __init__(self, *, right):
        self.right = right

    def act(self, observation, rng):
        return int(rng.random() < self.right)


def cautious():
    return Cautious("cautious")


def costly():
    return Costly(5, max_episode_steps=30)


CONSTRAINED = "constrained_return(cost='cost', limit=12, penalty=0.1)"


def start(*, learner=None, **options):
    learners = [learner or cautious(), Constant("right", lambda _: 1)]
    return esbas.run(costly(), learners, esbas.ESBAS, objective=CONSTRAINED, seed=2, **options)


def outcome(run):
    """Everything that a run produced: records, infos and the state of the selector."""
    records = list(run)
    columns = [each.infos["cost"].tobytes() for each in run.data.since(0)]
    return records, columns, repr(run.selector.state_dict())


@pytest.mark.parametrize("after", [1, 9, 20, 39])
def test_a_resumed_run_is_bit_identical(tmp_path, after):
    whole, columns, selector = outcome(start(episodes=40))
    first = start(episodes=40)
    records = [next(first) for _ in range(after)]
    first.save(tmp_path / "run")
    learners = [cautious(), Constant("right", lambda _: 1)]
    again = esbas.resume(
        tmp_path / "run", costly(), learners, esbas.ESBAS, objective=as_objective(CONSTRAINED)
    )
    assert isinstance(again.data[0].infos["cost"], np.ndarray)
    rest, found, state = outcome(again)
    assert records + rest == whole
    assert found == columns
    assert state == selector
    with pytest.raises(SaveFileError, match=r"was saved with .*max\(0, cost - 12\)"):
        esbas.resume(tmp_path / "run", costly(), learners, esbas.ESBAS, objective="return")


def test_a_run_saved_without_infos_goes_on_with_an_objective_that_needs_them(tmp_path):
    """The name is that of the save file; earlier trajectories have no infos."""
    run = esbas.run(costly(), [Constant("it", lambda _: 1)], objective=objective_with(), episodes=4)
    next(run)
    run.save(tmp_path / "run")
    saved = archive.read(tmp_path / "run", "run")
    assert "infos" not in saved["data"]
    again = esbas.resume(
        tmp_path / "run", costly(), [Constant("it", lambda _: 1)], objective=objective_with("cost")
    )
    next(again)
    assert [list(each.infos) for each in again.data.since(0)] == [[], ["cost"]]


def test_isolated_learners_see_infos():
    alone = outcome(start(episodes=20))
    isolated = Isolated(cautious, learn_timeout=600.0)
    try:
        beside = outcome(start(episodes=20, learner=isolated))
    finally:
        isolated.close()
    assert alone == beside


# Objectives


def test_success_is_that_of_the_last_step():
    objective = success_rate()
    assert (objective.name, objective.maximize, objective.infos) == (
        "success rate",
        True,
        ("is_success",),
    )
    assert objective(episode([0, 0], is_success=[False, True])) == 1.0
    assert objective(episode([9, 9], is_success=[True, False])) == 0.0
    assert objective(episode([0, 0], terminated=False, is_success=[math.nan, 1])) == 1.0
    other = success_rate("won")
    assert other.name == "success rate by won"
    assert other(episode([0], won=[1])) == 1.0


@pytest.mark.parametrize(("column", "count"), [([math.nan, math.nan], 0), ([True, math.nan], 1)])
def test_a_missing_success_is_explained(column, count):
    message = (
        "The info of the last step of an episode must have the key 'is_success', but "
        f"{count} of the 2 steps of this one have it: name a key"
    )
    with pytest.raises(InvalidValueError, match=message):
        success_rate()(episode([0, 0], is_success=column))


@pytest.mark.parametrize("value", [0.5, -1, 2, math.inf])
def test_a_success_is_true_or_false(value):
    with pytest.raises(InvalidValueError, match=r"'is_success' must be true or false, or 1 or 0"):
        success_rate()(episode([0], is_success=[value]))


def test_constrained_return_by_hand():
    objective = constrained_return(limit=2, penalty=10)
    assert objective.name == "return - 10 * max(0, cost - 2)"
    # 6 - 10 * max(0, 3.5 - 2)
    assert objective(episode([1, 2, 3], cost=[1, math.nan, 2.5])) == -9.0
    assert objective(episode([1, 2, 3], cost=[1, 0, 1])) == 6.0
    assert objective(episode([1, 2, 3], cost=[0, 0, 0])) == 6.0
    (cost,) = objective.details
    assert (cost.name, cost.maximize) == ("cost", False)
    assert cost(episode([1, 2, 3], cost=[1, math.nan, 2.5])) == 3.5
    with pytest.raises(
        InvalidValueError,
        match="of at least one step of an episode must have the key 'cost', but 0 of the 1 steps",
    ):
        objective(episode([1], cost=[math.nan]))
    with pytest.raises(InvalidValueError, match="must be finite, but got -inf"):
        objective(episode([1], cost=[math.inf]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": math.nan, "penalty": 1}, "`limit` must be a finite number, but got nan"),
        ({"limit": 1, "penalty": -1}, "`penalty` must be a finite number of at least 0"),
        ({"limit": 1, "penalty": math.inf}, "`penalty` must be a finite number of at least 0"),
    ],
)
def test_odd_constraints_are_refused(options, message):
    with pytest.raises(InvalidValueError, match=message):
        constrained_return(**options)


NUMBERS = st.floats(-100, 100)
STEPS = st.lists(
    st.tuples(NUMBERS, st.one_of(st.none(), st.floats(0, 50)), st.one_of(st.none(), st.booleans())),
    min_size=1,
    max_size=12,
)


class Script:
    """An environment that gives the rewards and infos of a list."""

    action_space = observation_space = None

    def __init__(self, steps):
        self.steps = steps

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return 0, {}

    def step(self, action):
        reward, cost, success = self.steps[self.t]
        self.t += 1
        info = {"unused": "text"}
        if cost is not None:
            info["cost"] = cost
        if success is not None:
            info["is_success"] = success
        return 0, reward, self.t == len(self.steps), False, info


@given(STEPS, st.floats(0, 100), st.floats(0, 20))
def test_objectives_equal_a_direct_computation(steps, limit, penalty):
    """From the environment's steps to the value, against plain loops over these steps."""

    def value(objective):
        trajectory = esbas.play(
            Script(steps), Always(0), rng=np.random.default_rng(0), infos=objective.infos
        )
        return objective(trajectory)

    last = steps[-1][2]
    if last is None:
        with pytest.raises(InvalidValueError, match="must have the key 'is_success'"):
            value(success_rate())
    else:
        assert value(success_rate()) == (1.0 if last else 0.0)

    objective = constrained_return(limit=limit, penalty=penalty)
    costs = [cost for _, cost, _ in steps if cost is not None]
    if costs:
        total = sum(costs)
        expected = sum(reward for reward, _, _ in steps)
        if total > limit:
            expected -= penalty * (total - limit)
        assert value(objective) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    else:
        with pytest.raises(InvalidValueError, match="must have the key 'cost'"):
            value(objective)


@given(
    st.lists(st.tuples(NUMBERS, st.floats(0, 50)), min_size=1, max_size=9),
    st.floats(0, 60),
    st.floats(0, 20),
)
def test_when_the_penalty_is_that_of_the_mean_cost(episodes, limit, penalty):
    """The page says: exact on one side of the limit, and never larger otherwise."""
    objective = constrained_return(limit=limit, penalty=penalty)
    returns = [reward for reward, _ in episodes]
    costs = [cost for _, cost in episodes]
    values = [objective(episode([reward], cost=[cost])) for reward, cost in episodes]
    of_means = np.mean(returns) - penalty * max(0.0, np.mean(costs) - limit)
    assert np.mean(values) <= of_means + 1e-6
    if min(costs) >= limit or max(costs) <= limit:
        assert np.mean(values) == pytest.approx(of_means, abs=1e-6)


def test_objectives_by_text():
    objective = make_objective(CONSTRAINED)
    assert objective.name == "return - 0.1 * max(0, cost - 12)"
    assert objective.infos == ("cost",)
    assert make_objective("success_rate").infos == ("is_success",)
    assert make_objective("Success-Rate(key='won')").infos == ("won",)
    assert as_objective("discounted(gamma=0.5)")(episode([1, 2, 4])) == 3.0
    assert read_objective("longest").maximize is True
    assert given_objective(success_rate) == "success_rate"
    assert make_objective("test_infos:weighted(weight=3)")(episode([1], cost=[2])) == 6.0


def weighted(*, weight: int):
    def function(trajectory):
        return weight * trajectory.infos["cost"].sum()

    return esbas.Objective(name="weighted", function=function, infos=["cost"])


def plain(trajectory):
    return 1.0


FIXED = esbas.Objective(name="fixed", function=plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("constrained_return", "`limit` of objective 'constrained_return' is missing: add it in"),
        ("constrained_return(limit=1)", "`penalty` of constrained_return is missing: add it"),
        ("constrained_return(limit='a', penalty=1)", "`limit` of constrained_return must be a num"),
        ("success_rate(kay='a')", "no option of success_rate named 'kay': did you mean 'key'"),
        ("success_rate(key='')", "must be a tuple of keys such as"),
        ("succes(key='a')", "no objective named 'succes': did you mean 'success_rate'"),
        ("success_rate(key=a)", "put text in quotes"),
        ("longest(maximize=False)", "`maximize` of longest must not be given"),
        ("test_infos:weighted", "`weight` of objective 'test_infos:weighted' is missing"),
        ("test_infos:weighted(weight='a')", "`weight` of test_infos:weighted must be a whole num"),
        ("test_infos:FIXED(weight=1)", "The objective 'test_infos:FIXED' has no options"),
        ("test_infos:plain(weight=1)", "no option of test_infos:plain named 'weight'"),
        ("test_infos:NUMBER(weight=1)", "An objective must be a function"),
    ],
)
def test_wrong_texts_are_explained(text, message):
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        make_objective(text)


@pytest.mark.parametrize("infos", ["is_success", ("a", ""), (1,), None, {"a": 1}])
def test_declared_keys_are_checked(infos):
    with pytest.raises(InvalidValueError, match="`infos` of objective 'mine' must be a tuple of"):
        esbas.Objective(name="mine", function=len, infos=infos)


def test_details_are_checked():
    cost = objective_with("cost")
    made = esbas.Objective(name="all", function=len, infos=("cost",), details=[cost])
    assert made.details == (cost,)
    with pytest.raises(InvalidValueError, match="`details` of objective 'all' must be a tuple of"):
        esbas.Objective(name="all", function=len, details=(len,))
    with pytest.raises(
        InvalidValueError, match=r"must have the keys of its details, but \['cost'\] of 'mine'"
    ):
        esbas.Objective(name="all", function=len, details=(cost,))


def test_objectives_that_differ_in_a_late_digit_have_different_names():
    """A run is resumed with the objective of the same name."""
    names = set()
    for limit in (1234567, 1234568, 0.1, 0.1 + 1e-12):
        for penalty in (1, 1.0):  # the same number
            names.add(constrained_return(limit=limit, penalty=penalty).name)
    assert len(names) == 4
    assert "return - 1 * max(0, cost - 1234567)" in names


def test_a_text_is_the_same_however_it_is_spaced():
    text = "constrained_return(limit=12, penalty=0.1)"
    assert given_objective("constrained_return( limit=12,penalty = .1 )") == text
    assert given_objective("return") == "return"


def test_the_public_check_keeps_the_infos():
    check_objective(success_rate(), Corridor())
    check_objective(make_objective(CONSTRAINED), Costly(5))

    def careless(trajectory):
        trajectory.infos["is_success"].setflags(write=True)
        trajectory.infos["is_success"][0] += 1
        return 1.0

    for function in (careless, lambda trajectory: trajectory.infos["cost"].sum()):
        with pytest.raises(ContractError):
            check_objective(objective_with("is_success", function=function), Corridor())


def test_a_copy_of_a_trajectory_has_its_infos():
    trajectory = episode([1, 2], cost=[3, 4])
    for twin in (copy.deepcopy(trajectory), pickle.loads(pickle.dumps(trajectory))):
        assert twin.infos["cost"].tolist() == [3, 4]
        with pytest.raises(UnknownNameError, match="no info 'other'"):
            twin.infos["other"]
