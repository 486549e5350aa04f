"""What `esbas.run` accepts as a selector."""

from functools import partial

import pytest

import esbas
from esbas.errors import EsbasError, InvalidValueError, UnknownNameError
from esbas.learners import Constant, TabularQ
from esbas.selectors import as_selector, make_selector
from esbas.testing import Corridor

ARMS = ["a", "b", "c"]


class Seeded(esbas.Selector):
    """Keeps the options that it was made with."""

    def __init__(self, arms, **options):
        super().__init__(arms, **options)
        self.options = options

    def pick(self, among, context):
        return esbas.Pick(among[0])


def make_esbas(arms, *, stationary, seed):
    return esbas.ESBAS(arms, stationary=stationary, seed=seed, xi=1)


def arms_of(selector, count=40):
    chosen = []
    for number in range(count):
        choice = selector.ask()
        selector.tell(choice, float(number % 3))
        chosen.append(choice.arm)
    return chosen


FORMS = {
    "an object": (esbas.Uniform(ARMS, seed=7), lambda: esbas.Uniform(ARMS, seed=7)),
    "a selector class": (esbas.Uniform, lambda: esbas.Uniform(ARMS, seed=7)),
    "ESBAS": (esbas.ESBAS, lambda: esbas.ESBAS(ARMS, stationary=["b"], seed=7)),
    "SSBAS": (esbas.SSBAS, lambda: esbas.SSBAS(ARMS, seed=7)),
    "a partial": (partial(esbas.SSBAS, xi=1), lambda: esbas.SSBAS(ARMS, xi=1, seed=7)),
    "a partial with a seed": (partial(esbas.Uniform, seed=3), lambda: esbas.Uniform(ARMS, seed=3)),
    "a lambda": (lambda arms: esbas.Uniform(arms, seed=2), lambda: esbas.Uniform(ARMS, seed=2)),
    "a function": (make_esbas, lambda: esbas.ESBAS(ARMS, stationary=["b"], seed=7, xi=1)),
    "a partial of make_selector": (
        partial(make_selector, "exp3"),
        lambda: make_selector("exp3", ARMS, seed=7),
    ),
    "a bandit class": (
        esbas.KalmanThompson,
        lambda: make_selector("kalman-thompson", ARMS, seed=7),
    ),
    "a partial of a bandit": (
        partial(esbas.UCB1, xi=2),
        lambda: esbas.BanditSelector(ARMS, bandit=partial(esbas.UCB1, xi=2), seed=7),
    ),
    "a name": ("gaussian thompson", lambda: make_selector("gaussianthompson", ARMS, seed=7)),
    "a fixed learner": ("fixed:b", lambda: esbas.Fixed(ARMS, arm="b")),
    "nothing": (None, lambda: esbas.default_selector(ARMS, seed=7)),
}


@pytest.mark.parametrize(("given", "expected"), FORMS.values(), ids=FORMS.keys())
def test_every_form_makes_the_selector_that_it_says(given, expected):
    made = as_selector(given, iter(ARMS), stationary=["b"], seed=7)
    wanted = expected()
    assert type(made) is type(wanted)
    assert made.arms == tuple(ARMS)
    assert arms_of(made) == arms_of(wanted)


def test_stationary_arms_are_passed_where_the_signature_has_them():
    assert as_selector(esbas.ESBAS, ARMS, stationary=["b"]).stationary == {"b"}
    assert as_selector("esbas", ARMS, stationary=["b"]).stationary == {"b"}
    assert as_selector(esbas.UCB1, ARMS, stationary=["b"]).stationary == {"b"}
    assert as_selector(esbas.SSBAS, ARMS, stationary=["b"]).stationary == set()


def test_any_options_include_the_seed():
    assert as_selector(Seeded, ARMS, stationary=["b"], seed=5).options == {"seed": 5}
    assert as_selector(partial(Seeded, seed=1), ARMS, seed=5).options == {"seed": 1}


WRONG = {
    "a number": (7, InvalidValueError, "but got 7: pass for example esbas.SSBAS or 'ssbas'."),
    "a list": (["ssbas"], InvalidValueError, r"`selector` must be .*, but got \['ssbas'\]"),
    "arms": (ARMS, InvalidValueError, r"`selector` must be .*, but got \['a', 'b', 'c'\]"),
    "a dictionary": ({"name": "ssbas"}, InvalidValueError, "but got a dict of 1 item:"),
    "another class": (TabularQ, InvalidValueError, "but got the class TabularQ"),
    "a bandit": (esbas.UCB1(3), InvalidValueError, "but got a value of type UCB1"),
    "other arms": (
        esbas.SSBAS(["a", "c", "b"]),
        InvalidValueError,
        (
            "The selector must have the names of the learners as its arms, in the same order, "
            "but has 'a', 'c', 'b' for the"
        ),
    ),
    "a function that makes other arms": (
        lambda arms: esbas.SSBAS(["x"]),
        InvalidValueError,
        (
            "The selector that <lambda> makes must have the names of the learners as its arms"
            ".*but has 'x' for"
        ),
    ),
    "a function that returns nothing": (
        lambda arms: None,
        InvalidValueError,
        "but got None from <lambda>",
    ),
    "a function that returns a class": (
        lambda arms: esbas.SSBAS,
        InvalidValueError,
        "the class SSBAS from",
    ),
    "a function without arguments": (
        lambda: esbas.SSBAS(ARMS),
        InvalidValueError,
        "too many positional arguments",
    ),
    "a class that needs more": (
        esbas.BanditSelector,
        InvalidValueError,
        (
            "calling BanditSelector with the list of arms, but missing a required .*'bandit'"
            ".*functools.partial"
        ),
    ),
    "an abstract class": (
        esbas.Selector,
        InvalidValueError,
        "Selector is an abstract class and cannot choose",
    ),
    "an unknown name": (
        "sbas",
        UnknownNameError,
        "There is no selector named 'sbas': did you mean 'ssbas'",
    ),
    "an unknown arm": ("fixed:d", UnknownNameError, "There is no arm named 'd'"),
}


@pytest.mark.parametrize(("given", "error", "message"), WRONG.values(), ids=WRONG.keys())
def test_everything_else_is_refused_with_a_sentence(given, error, message):
    with pytest.raises(error, match=message) as caught:
        as_selector(given, ARMS)
    assert isinstance(caught.value, EsbasError)
    assert "\n" not in str(caught.value)
    with pytest.raises(error, match=message):
        esbas.run(Corridor(), [Constant(name, lambda seen: 1) for name in ARMS], given)


def test_what_a_function_raises_is_not_hidden():
    def fails(arms):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        as_selector(fails, ARMS)
