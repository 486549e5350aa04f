"""`check_bandit` finds every kind of broken bandit."""

import numpy as np
import pytest

from esbas import UCB1, Bandit, SlidingUCB
from esbas.bandits import Exp3, UniformBandit
from esbas.errors import ContractError
from esbas.testing import check_bandit


def broken(method, change, base=UCB1):
    """A subclass of `base` with one method replaced by `change(original, self, ...)`."""

    def replaced(self, *arguments, **keywords):
        return change(
            lambda *a, **k: getattr(base, method)(self, *a, **k), self, *arguments, **keywords
        )

    replaced.__name__ = method
    return type("Broken", (base,), {method: replaced})


def counting_choose(original, self, among=None):
    arm = original(among)
    self.memory.pull(arm)
    return arm


def choose_all(original, self, among=None):
    return original()


def update_first(original, self, arm, reward, *, pull=None):
    original(arm, reward, pull=pull)
    if self.memory.total > 1:
        first = self.memory.arms[0]
        first.mean = reward
        first.rewards = max(first.rewards, 1)


def update_on_reset_rounds(original, self, arm, reward, *, pull=None):
    known = pull is None or pull in self.memory.open
    original(arm, reward, pull=pull if known else None)


def no_withdraw(original, self, pull):
    pass


def reset_all(original, self, keep=()):
    original(())


def reset_none(original, self, keep=()):
    original(range(self.n_arms))


def remove_last(original, self, arm):
    original(self.n_arms - 1 if 0 <= arm < self.n_arms else arm)


def remove_any(original, self, arm):
    if 0 <= arm < self.n_arms:
        original(arm)


def add_none(original, self):
    pass


def take_nan(original, self, arm, reward, *, pull=None):
    original(arm, reward if np.isfinite(reward) else 0.0, pull=pull)


def pull_any(original, self, arm, *, probability=None):
    return original(min(max(arm, 0), self.n_arms - 1))


def pull_without_probability(original, self, arm):
    return original(arm)


def state_of_arrays(original, self):
    return original() | {"counts": self.counts}


def half_state(original, self):
    return original() | {"n_arms": 2}


def forgetful_load(original, self, state):
    original(state)
    self.memory.open.clear()


def chance(original, self, among=None):
    return int(np.random.default_rng().choice(list(among or range(self.n_arms))))


def drawing_indices(original, self):
    self.rng.random()
    return original()


def constant_propensity(original, self, arm, among=None):
    return 0.5


def propensity_among_all(original, self, arm, among=None):
    return original(arm)


def negative_propensity(original, self, arm, among=None):
    return -original(arm, among)


def drawing_propensity(original, self, arm, among=None):
    self.rng.random()
    return original(arm, among)


def pull_of_another_probability(original, self, arm, *, probability=None):
    return original(arm, probability=0.9 if probability is None else probability)


def nan_indices(original, self):
    return np.where(self.counts > 50, np.nan, original())


def raising(original, self, *arguments, **keywords):
    raise NotImplementedError("later")


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("choose", counting_choose, "choose.. changed it after"),
        ("choose", choose_all, "choose.*returned"),
        (
            "choose",
            chance,
            (
                "two bandits with the same seed chose differently|later choices differ|"
                "an arm that choose returned in"
            ),
        ),
        ("update", update_first, "arm 0 has the mean"),
        ("update", update_on_reset_rounds, "had an effect"),
        ("update", take_nan, r"update\(1, nan\) was accepted"),
        ("withdraw", no_withdraw, "a bandit whose rounds were all withdrawn has counts"),
        ("reset", reset_all, "a kept arm has no pulls after a reset"),
        ("reset", reset_none, "an arm that was reset has counts"),
        ("remove_arm", remove_last, "remove_arm changed counts or means of the other arms"),
        ("remove_arm", remove_any, r"remove_arm\(-1\) was accepted"),
        ("add_arm", add_none, "n_arms is 3 after an arm was added to 3"),
        ("pull", pull_any, r"pull\(-1\) was accepted"),
        (
            "state_dict",
            state_of_arrays,
            "raised TypeError: Object of type ndarray is not JSON serializable",
        ),
        ("state_dict", half_state, "raised|differ"),
        ("load_state_dict", forgetful_load, "state_dict differs in a new bandit that loaded it"),
        ("indices", drawing_indices, "drew random numbers"),
        ("indices", nan_indices, "indices are"),
        ("add_arm", raising, "raised NotImplementedError: later"),
        ("pull", pull_without_probability, "raised TypeError: .*'probability'"),
        (
            "propensity",
            constant_propensity,
            r"propensity\(0, None\) is 0.5 for an arm that choose returned in 1000 of 1000",
        ),
        ("propensity", drawing_propensity, "drew random numbers"),
    ],
)
def test_a_broken_bandit_is_found(method, change, message):
    with pytest.raises(ContractError, match=f"^Broken must keep the rule .*, but .*({message})"):
        check_bandit(broken(method, change))


@pytest.mark.parametrize(
    ("base", "method", "change", "message"),
    [
        (
            Exp3,
            "propensity",
            propensity_among_all,
            r"propensity\(\d, \[0, 2\]\) is .* for an arm that choose returned in",
        ),
        (
            UniformBandit,
            "propensity",
            negative_propensity,
            r"propensity\(\d, None\) is -.* for a chosen arm",
        ),
        (
            Exp3,
            "pull",
            pull_of_another_probability,
            r"pull\(arm\) differs from pull\(arm, probability=propensity\(arm\)\)",
        ),
    ],
)
def test_a_random_bandit_with_wrong_probabilities_is_found(base, method, change, message):
    with pytest.raises(ContractError, match=f"^Broken must keep the rule .*, but .*({message})"):
        check_bandit(broken(method, change, base=base))


class NeverForgets(SlidingUCB):
    """A window that loses count of its pulls."""

    def pull(self, arm, *, probability=None):
        before = [each.pulls for each in self.memory.arms]
        ticket = super().pull(arm)
        for each, pulls in zip(self.memory.arms, before, strict=True):
            each.pulls = pulls
        return ticket


def test_a_window_that_loses_count_is_found():
    with pytest.raises(ContractError, match="NeverForgets must keep the rule"):
        check_bandit(NeverForgets)


def test_a_bandit_without_the_right_arms_is_found():
    class Wide(UCB1):
        def __init__(self, n_arms, *, rng=None):
            super().__init__(n_arms + 1, rng=rng)

    with pytest.raises(
        ContractError,
        match=r"Wide must keep the rule 'A new bandit has n_arms arms.*n_arms is 2 and not 1",
    ):
        check_bandit(Wide)


def test_the_check_is_deterministic():
    seen = []

    class Watched(UCB1):
        def choose(self, among=None):
            seen.append(super().choose(among))
            return seen[-1]

    check_bandit(Watched)
    first = list(seen)
    seen[:] = []
    check_bandit(Watched)
    assert seen == first
    assert issubclass(Watched, Bandit)
