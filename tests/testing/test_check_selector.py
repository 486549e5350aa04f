"""The check must find every kind of broken selector."""

from dataclasses import replace

import numpy as np
import pytest

from esbas import ESBAS, Pick, Uniform
from esbas.errors import ChoiceError, ContractError
from esbas.testing import check_selector


def broken(method, change, base=ESBAS):
    def replaced(self, *arguments, **keywords):
        return change(
            lambda *a, **k: getattr(base, method)(self, *a, **k), self, *arguments, **keywords
        )

    replaced.__name__ = method
    return type("Broken", (base,), {method: replaced})


def ask_all(original, self, *, among=None, context=None):
    return original()


def ask_without_number(original, self, *, among=None, context=None):
    return replace(original(among=among), number=1)


def ask_with_odds(original, self, *, among=None, context=None):
    choice = replace(original(among=among), propensity=1.5)
    self._open[choice.number] = choice, *self._open[choice.number][1:]
    return choice


def ask_by_chance(original, self, *, among=None, context=None):
    return original(among=[np.random.default_rng().choice(self.arms)] if among is None else among)


def claim_always(original, self):
    original()
    self._claimed = self._epoch + 1
    return self._claimed


def ready_at_any_time(original, self, epoch):
    self._claimed = epoch
    original(epoch)


def ready_later(original, self, epoch):
    original(epoch)
    self._epoch -= 1


def tell_quietly(original, self, choice, value, *, evidence=None):
    if choice in self.open_choices:
        original(choice, value)


def tell_anything(original, self, choice, value, *, evidence=None):
    original(choice, value if np.isfinite(value) else 0.0)


def tell_late(original, self, choice, value, *, evidence=None):
    self._late["first"] += 1
    original(choice, value)


def tell_own_tokens(original, self, choice, value, *, evidence=None):
    if not any(choice is own for own in self.open_choices):
        raise ChoiceError("another object")
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
    ("method", "change", "message"),
    [
        ("ask", ask_all, r"ask\(among=\['second'\]\) chose"),
        ("ask", ask_without_number, "choice 2 has number 1"),
        ("ask", ask_with_odds, "choice 1 has the propensity 1.5"),
        ("claim_epoch", claim_always, "epoch 0 was claimed twice"),
        ("epoch_ready", ready_at_any_time, r"epoch_ready\(1\) was accepted"),
        ("epoch_ready", ready_later, "epoch 0 was due where epoch 1 follows"),
        ("tell", tell_own_tokens, "raised ChoiceError: another object"),
        ("ask", ask_by_chance, "differently|the future"),
        ("tell", tell_quietly, r"tell\(.*\) was accepted"),
        ("tell", tell_anything, r"tell\(.*, nan\) was accepted"),
        ("tell", tell_late, "what it refused left a trace"),
        ("withdraw", withdraw_never, "open_choices is"),
        ("remove_arm", remove_anything, r"remove_arm\('second'\) was accepted"),
        ("explain", explain_and_count, r"explain\(\) changed it"),
        ("explain", explain_little, r"explain\(\) reports {'pulls': 1} for 'first'"),
        ("explain", explain_wrong, "reports . open choices"),
        (
            "state_dict",
            state_with_set,
            "raised TypeError: Object of type set is not JSON serializable",
        ),
        (
            "load_state_dict",
            load_without_generator,
            "state_dict differs in a new selector that loaded it",
        ),
        ("add_arm", add_elsewhere, r"arms is \('fourth', 'first', 'second', 'third'\)"),
    ],
)
def test_a_broken_selector_is_found(method, change, message):
    with pytest.raises(ContractError, match=f"^Broken must keep the rule .*, but .*({message})"):
        check_selector(broken(method, change))


def test_a_selector_that_draws_from_elsewhere_is_found():
    class Elsewhere(Uniform):
        def pick(self, among, context):
            return Pick(str(np.random.default_rng().choice(among)))

    with pytest.raises(ContractError, match="Elsewhere must keep the rule"):
        check_selector(Elsewhere)
