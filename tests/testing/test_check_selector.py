"""The check must find every kind of broken selector."""

import numpy as np
import pytest

from esbas import ESBAS, Choice, Uniform
from esbas.errors import ContractError, EsbasError
from esbas.testing import check_selector


def broken(method, change, base=ESBAS):
    def replaced(self, *arguments, **keywords):
        return change(lambda *a, **k: getattr(base, method)(self, *a, **k), self, *arguments, **keywords)

    replaced.__name__ = method
    return type("Broken", (base,), {method: replaced})


def ask_all(original, self, among=None):
    return original()


def ask_without_number(original, self, among=None):
    choice = original(among)
    return Choice(1, choice.arm, choice.index, choice.epoch, choice.learn)


def ask_never_learn(original, self, among=None):
    choice = original(among)
    twin = Choice(choice.number, choice.arm, choice.index, choice.epoch, False)
    self._open[choice.number] = twin, self._open[choice.number][1]
    return twin


def ask_by_chance(original, self, among=None):
    return original([np.random.default_rng().choice(self.arms)] if among is None else among)


def tell_quietly(original, self, choice, value):
    if choice in self.open_choices:
        original(choice, value)


def tell_anything(original, self, choice, value):
    original(choice, value if np.isfinite(value) else 0.0)


def tell_late(original, self, choice, value):
    self._late[0] += 1
    original(choice, value)


def withdraw_never(original, self, choice):
    if choice not in self.open_choices:
        original(choice)


def remove_anything(original, self, name):
    if name in self.arms and len(self.arms) > 1:
        original(name)


def explain_and_count(original, self):
    self._number += 1
    return original()


def explain_little(original, self):
    return {arm: {"pulls": 1} for arm in self.arms}


def explain_wrong(original, self):
    report = original()
    report["first"]["open"] += 1
    return report


def state_with_set(original, self):
    return original() | {"arms": set(self.arms)}


def load_without_generator(original, self, state):
    kept = self.rng.bit_generator.state
    original(state)
    self.rng.bit_generator.state = kept


def add_elsewhere(original, self, name, *, stationary=False):
    original(name, stationary=stationary)
    self._arms.insert(0, self._arms.pop())


@pytest.mark.parametrize(
    ("method", "change", "told"),
    [
        ("ask", ask_all, r"ask\(among=\['second'\]\) chose"),
        ("ask", ask_without_number, "choice 2 has number 1"),
        ("ask", ask_never_learn, "choice 1 of epoch 0 after -1 has learn=False"),
        ("ask", ask_by_chance, "differently|the future"),
        ("tell", tell_quietly, r"tell\(.*\) was taken"),
        ("tell", tell_anything, r"tell\(.*, nan\) was taken"),
        ("tell", tell_late, "what it refused left a trace"),
        ("withdraw", withdraw_never, "open_choices is"),
        ("remove_arm", remove_anything, r"remove_arm\('second'\) was taken"),
        ("explain", explain_and_count, r"explain\(\) changed it"),
        ("explain", explain_little, r"explain\(\) tells {'pulls': 1} of 'first'"),
        ("explain", explain_wrong, "tells 1 open choices of 'first', which has 0|tells . open choices"),
        ("state_dict", state_with_set, "raised TypeError: Object of type set is not JSON serializable"),
        ("load_state_dict", load_without_generator, "state_dict differs in a new selector that loaded it"),
        ("add_arm", add_elsewhere, r"arms is \('fourth', 'first', 'second', 'third'\)"),
    ],
)
def test_a_broken_selector_is_found(method, change, told):
    with pytest.raises(ContractError, match=f"^Broken must keep the rule .*, but .*({told})") as caught:
        check_selector(broken(method, change))
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, EsbasError)


def test_a_selector_that_draws_from_elsewhere_is_found():
    class Elsewhere(Uniform):
        def _pick(self, among):
            arms = range(len(self.arms)) if among is None else among
            return int(np.random.default_rng().choice(arms))

    with pytest.raises(ContractError, match="Elsewhere must keep the rule"):
        check_selector(Elsewhere)
