import pytest

import esbas
from esbas.bandits import BANDITS, KLUCB, UniformBandit
from esbas.errors import InvalidValueError, UnknownNameError
from esbas.selectors import make_selector, selector_names

ARMS = ["a", "b", "c"]


def choices(selector: esbas.Selector, count: int = 40) -> list[str]:
    made = []
    for number in range(count):
        choice = selector.ask(context=(float(number % 2),))
        selector.tell(choice, float(number % 3))
        made.append(choice.arm)
    return made


@pytest.mark.parametrize("name", [name.replace("NAME", "b") for name in selector_names()])
def test_every_name_makes_a_selector_that_works(name):
    selector = make_selector(name, ARMS, seed=3)
    assert selector.arms == ("a", "b", "c")
    assert len(choices(selector)) == 40


def test_names_build_the_right_selectors():
    assert isinstance(make_selector("ssbas", ARMS), esbas.SSBAS)
    assert isinstance(make_selector("ESBAS", ARMS), esbas.ESBAS)
    assert isinstance(make_selector("uniform", ARMS), esbas.Uniform)
    assert set(choices(make_selector("fixed:b", ARMS))) == {"b"}
    direct = make_selector("KL-UCB", ARMS)
    assert isinstance(direct, esbas.BanditSelector)
    assert isinstance(direct.bandit, KLUCB)
    assert direct.online
    assert set(BANDITS) < set(selector_names())


def test_an_arm_may_have_a_colon_and_capitals():
    assert set(choices(make_selector("fixed:DQN: far", ["dqn", "DQN: far"]))) == {"DQN: far"}


@pytest.mark.parametrize("name", ["ssbas", "uniform", "gaussianthompson"])
def test_results_depend_on_the_seed(name):
    one, again, other = (choices(make_selector(name, ARMS, seed=seed)) for seed in (1, 1, 2))
    assert one == again
    assert name == "ssbas" or one != other


def test_uniform_draws_as_its_bandit_does():
    assert choices(make_selector("uniform", ARMS, seed=5)) == choices(
        esbas.BanditSelector(ARMS, bandit=UniformBandit, seed=5)
    )


def test_stationary_arms_and_the_scale_are_passed_on():
    selector = make_selector("esbas", ARMS, stationary=["b"])
    assert selector.stationary == {"b"}
    assert make_selector("ucb1", ARMS, stationary=["b"]).stationary == {"b"}
    raw, scaled = (make_selector("ssbas", ARMS, scale=scale, seed=0) for scale in (None, "auto"))
    for each in (raw, scaled):
        for value in (100.0, 200.0, 300.0):
            each.tell(each.ask(), value)
    raw_bonus, bonus = (
        min(row["bonus"] for row in each.explain().values()) for each in (raw, scaled)
    )
    # twice the mean of the deviations 0, 100, 150
    assert bonus == pytest.approx(500 / 3 * raw_bonus)


def test_xi_and_epochs_arrive_where_they_belong():
    assert make_selector("ssbas", ARMS, xi=2.0).bandit.xi == 2.0
    assert make_selector("esbas", ARMS, xi=0.5).bandit.xi == 0.5
    assert make_selector("ucb1", ARMS, xi=3.0).bandit.xi == 3.0
    for name in ("fixed:b", "uniform", "esbas", "klucb", "linear-thompson", "shared-evidence"):
        selector = make_selector(name, ARMS, epochs=[3, 5])
        assert not selector.online
        assert [selector.ask(context=(1.0,)).epoch for _ in range(9)] == [0] * 3 + [1] * 5 + [2]
    assert make_selector("uniform", ARMS).online
    for name, options in (
        ("ssbas", {"epochs": [3]}),
        ("klucb", {"xi": 1.0}),
        ("uniform", {"xi": 1.0}),
    ):
        (key,) = options
        with pytest.raises(
            InvalidValueError,
            match=f"The selector '{name}' has no parameter `{key}`: leave it out",
        ):
            make_selector(name, ARMS, **options)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("sbas", UnknownNameError, "There is no selector named 'sbas': did you mean 'ssbas'?"),
        (
            "unifrom",
            UnknownNameError,
            "There is no selector named 'unifrom': did you mean 'uniform'?",
        ),
        (
            "zzzzzz",
            UnknownNameError,
            (
                "There is no selector named 'zzzzzz': choose one of 'esbas', 'uniform', "
                "'linear-thompson', 'shared-evidence',"
            ),
        ),
        (
            "fix:a",
            UnknownNameError,
            "There is no module named 'fix': install it, or run from the folder that contains it",
        ),
        ("math:sqrt", InvalidValueError, "'math:sqrt' must name a selector or a bandit"),
        ("fixed:d", UnknownNameError, "There is no arm named 'd'"),
        (
            "fixed",
            InvalidValueError,
            "A fixed selector needs its arm, as in \"fixed:NAME\", but got 'fixed'.",
        ),
    ],
)
def test_an_unknown_name_raises_a_clear_error(name, kind, message):
    with pytest.raises(kind) as caught:
        make_selector(name, ARMS)
    assert message in str(caught.value)
