"""The behavior of all selectors (choices, arms, states), and the choices of each except ESBAS."""

import json
import math
from functools import partial

import pytest

from esbas import (
    ESBAS,
    SSBAS,
    UCB1,
    BanditSelector,
    Choice,
    Fixed,
    KalmanThompson,
    LinearThompson,
    SharedEvidence,
    SlidingUCB,
    Uniform,
)
from esbas.bandits import Exp3
from esbas.errors import ChoiceError, InvalidValueError, UnknownNameError
from esbas.testing import check_selector

FACTORIES = {
    "ESBAS": ESBAS,
    "ESBAS, dialogue": partial(ESBAS, epochs=[20, 20, 40], stationary=["first"], scale=None),
    "ESBAS, given range": partial(ESBAS, scale=(-100, 100), xi=2),
    "SSBAS": SSBAS,
    "SSBAS, short": partial(SSBAS, fraction=0.1, scale=None),
    "Fixed": Fixed,
    "Fixed, epochs": partial(Fixed, epochs=[3, 5]),
    "Uniform": Uniform,
    "Uniform, epochs": partial(Uniform, epochs=[3, 5]),
    "BanditSelector": partial(BanditSelector, bandit=UCB1),
    "BanditSelector, Exp3": partial(BanditSelector, bandit=Exp3),
    "BanditSelector, KalmanThompson": partial(BanditSelector, bandit=KalmanThompson),
    "KalmanThompson, epochs": partial(BanditSelector, bandit=KalmanThompson, epochs=[3, 5]),
    "ESBAS, KalmanThompson": partial(ESBAS, bandit=KalmanThompson, stationary=["first"]),
    "SharedEvidence": SharedEvidence,
    "SharedEvidence, dialogue": partial(SharedEvidence, epochs=[20, 20, 40], stationary=["first"]),
    "LinearThompson": LinearThompson,
    "LinearThompson, epochs": partial(LinearThompson, epochs=[3, 5], stationary=["first"]),
}
all_selectors = pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES.keys())


@all_selectors
def test_the_contract_is_kept(factory):
    check_selector(factory)


@all_selectors
def test_bad_arms_are_refused(factory):
    with pytest.raises(InvalidValueError, match="`arms` must not be empty"):
        factory([])
    with pytest.raises(
        InvalidValueError, match="Arms must have different names, but got 'first' twice: rename one"
    ):
        factory(["first", "first"])
    with pytest.raises(InvalidValueError, match="The name of an arm must be text, but got 7"):
        factory(["first", 7])


@all_selectors
def test_an_unknown_arm_raises_with_the_nearest_name(factory):
    selector = factory(["first", "second"])
    for ask in (lambda: selector.ask(among=["fist"]), lambda: selector.remove_arm("fist")):
        with pytest.raises(
            UnknownNameError, match="There is no arm named 'fist': did you mean 'first'"
        ):
            ask()


@all_selectors
def test_telling_twice_or_an_unknown_choice_raises(factory):
    selector = factory(["first", "second"])
    choice = selector.ask(context=(1.0,))
    selector.tell(choice, 1.0)
    with pytest.raises(
        ChoiceError,
        match=r"Choice 1 .* has already been told or withdrawn: call ask\(\) for a new one",
    ):
        selector.tell(choice, 1.0)
    for stranger in (Choice(number=9, arm="first", epoch=0), "first", None):
        with pytest.raises(ChoiceError, match="does not come from this selector"):
            selector.tell(stranger, 1.0)


@all_selectors
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_and_the_choice_stays_open(factory, value):
    selector = factory(["first", "second"])
    choice = selector.ask(context=(1.0,))
    with pytest.raises(
        InvalidValueError,
        match=r"A value must be finite, but got .*: tell a finite one, or withdraw the choice",
    ):
        selector.tell(choice, value)
    assert selector.open_choices == (choice,)
    selector.tell(choice, 1.0)


@all_selectors
def test_an_arm_that_is_removed_and_added_again_gets_no_old_values(factory):
    selector = factory(["first", "second"])
    choice = selector.ask(among=["second"], context=(1.0,))
    selector.remove_arm("second")
    selector.add_arm("second")
    selector.tell(choice, 1e6)
    report = selector.explain()["second"]
    assert report["selections"] == 0
    assert math.isnan(report.get("mean", math.nan))


def test_a_state_of_another_selector_is_refused():
    with pytest.raises(
        InvalidValueError,
        match="must be that of a SSBAS, but is that of a 'ESBAS': build the same selector",
    ):
        SSBAS("ab").load_state_dict(ESBAS("ab").state_dict())


def values(choice):
    return {"a": 0.2, "b": 0.8, "c": 0.5}[choice.arm] + 0.1 * math.sin(choice.number)


def play(selector, rounds, value=values):
    arms = []
    for _ in range(rounds):
        choice = selector.ask()
        selector.tell(choice, value(choice))
        arms.append(choice.arm)
    return arms


@pytest.mark.parametrize("selector", [SSBAS("abc", seed=3), BanditSelector("abc", bandit=UCB1)])
def test_online_selectors_have_no_epochs(selector):
    assert selector.online
    assert all(selector.claim_epoch() is None and selector.ask().epoch == 0 for _ in range(20))


@pytest.mark.parametrize("kind", [ESBAS, SSBAS, partial(BanditSelector, bandit=UCB1)])
def test_the_best_arm_is_chosen_most(kind):
    arms = play(kind("abc"), 500)
    assert arms.count("b") > 300


def test_ssbas_is_ucb1_on_the_last_half_of_the_selections():
    selector = SSBAS("abc", scale=None)
    bandit = SlidingUCB(3)
    for _ in range(300):
        choice = selector.ask()
        arm = "abc".index(choice.arm)
        assert arm == bandit.choose()
        selector.tell(choice, values(choice))
        bandit.update(arm, values(choice))


def test_ssbas_follows_a_change():
    arms = play(
        SSBAS("ab"), 3000, lambda choice: float((choice.arm == "a") == (choice.number <= 1000))
    )
    assert arms[500:1000].count("a") > 450
    assert arms[2500:].count("b") > 450


def test_fixed_plays_its_arm_or_the_first_available_one():
    selector = Fixed("abc", arm="b")
    assert play(selector, 5) == ["b"] * 5
    assert selector.ask(among=["c", "a"]).arm == "a"
    assert Fixed("abc").ask().arm == "a"
    with pytest.raises(UnknownNameError, match="There is no arm named 'd'"):
        Fixed("abc", arm="d")


def test_uniform_plays_all_arms_equally_often_and_depends_on_its_seed():
    arms = play(Uniform("abc", seed=1), 3000)
    assert all(900 < arms.count(arm) < 1100 for arm in "abc")
    assert arms == play(Uniform("abc", seed=1), 3000)
    assert arms != play(Uniform("abc", seed=2), 3000)
    assert {Uniform("abc", seed=seed).ask(among=["c", "b"]).arm for seed in range(20)} == {"b", "c"}


def test_the_size_of_the_state_does_not_grow_with_the_run():
    selector = ESBAS("abc")
    play(selector, 2000)
    assert len(json.dumps(selector.state_dict())) < 2000


def test_explain_gives_the_reasons_for_a_choice():
    selector = BanditSelector("ab", bandit=UCB1, scale=None)
    for arm, value in (("a", 1.0), ("b", 0.0), ("b", 1.0)):
        selector.tell(selector.ask(among=[arm]), value)
    selector.ask(among=["a"])
    # n = 4: a has 2 pulls and the mean 1, b has 2 and 1/2; sqrt(ln 4 / 8) = 0.4162773
    expected = {
        "selections": 2,
        "open": 1,
        "late": 0,
        "pulls": 2,
        "mean": 1.0,
        "bonus": 0.4162773,
        "index": 1.4162773,
    }
    assert selector.explain() == {
        "a": pytest.approx(expected),
        "b": pytest.approx(expected | {"open": 0, "mean": 0.5, "index": 0.9162773}),
    }
