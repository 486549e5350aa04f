import pytest

import esbas
from esbas.selectors import make_selector
from esbas.testing import check_selector


def arms_of(selector, rounds=60):
    chosen = []
    for number in range(rounds):
        choice = selector.ask()
        selector.tell(choice, len(choice.arm) + number % 3)
        chosen.append(choice.arm)
    return chosen


@pytest.mark.parametrize("online", [True, False])
def test_it_keeps_the_contract_and_has_the_setting_that_was_asked_for(online):
    check_selector(lambda arms, *, seed: esbas.default_selector(arms, online=online, seed=seed))
    assert esbas.default_selector("ab", online=online).online == online


def test_it_is_kalman_thompson_sampling_online_and_esbas_with_epochs():
    online = esbas.default_selector("abc", seed=4)
    named = make_selector("kalman-thompson", "abc", seed=4)
    assert isinstance(online.bandit, esbas.KalmanThompson)
    assert arms_of(online) == arms_of(named)  # whatever the scale of the named one
    assert isinstance(esbas.default_selector("abc", online=False), esbas.ESBAS)


def test_it_depends_on_its_seed():
    one, again, other = (arms_of(esbas.default_selector("abc", seed=seed)) for seed in (1, 1, 2))
    assert one == again != other


def test_it_finds_the_best_learner():
    chosen = arms_of(esbas.default_selector(["a", "bb", "cccccc"]), 120)
    assert chosen[60:].count("cccccc") > 45
