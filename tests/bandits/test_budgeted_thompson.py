"""Budgeted Thompson sampling: costs worked out by hand, shares of the budget, a naive definition, states."""

import json
import math

import numpy as np
import pytest

import esbas
from esbas import BudgetedThompson, KalmanThompson
from esbas.bandits.budgeted_thompson import acceptance, leader, mean_cost
from esbas.bandits.kalman_filters import KalmanFilters
from esbas.errors import InvalidValueError
from esbas.learners import TabularQ
from esbas.selectors import make_selector
from esbas.testing import Corridor


def play(bandit, value, cost, rounds, start=0):
    """Rounds whose values and costs depend on the arm and the number of the round; returns the arms."""
    chosen = []
    for number in range(start, start + rounds):
        arm = bandit.choose()
        if cost is not None:
            bandit.spend(arm, cost(arm, number))
        bandit.update(arm, value(arm, number))
        chosen.append(arm)
    return chosen


def noisy(arm, number):
    return float(np.random.default_rng(number).normal()) + 0.3 * arm


def test_the_mean_cost_by_hand():
    cost, costs = 0.0, []
    for count, spent in enumerate([10, 20, 30, 40, 50, 60, 160], 1):
        cost = mean_cost(cost, count, spent)
        costs.append(cost)
    assert costs == pytest.approx([10, 15, 20, 25, 30, 36, 60.8])  # the mean of five rounds, then a fifth of the way to each


def test_the_acceptance_by_hand():
    assert acceptance(10, 40) == 0.25
    assert acceptance(40, 10) == acceptance(10, 10) == 1
    assert acceptance(0, 10) == acceptance(10, 0) == 1  # not known


def test_the_leader_has_the_largest_mean_unless_several_have_it():
    assert leader([1.0, 3.0, 2.0], range(3)) == 1
    assert leader([1.0, 3.0, 2.0], [0, 2]) == 2
    assert leader([3.0, 1.0, 3.0], range(3)) == -1
    assert leader([1.0, 1.0, 3.0], range(3)) == 2


def test_an_expensive_arm_is_tried_as_often_as_its_cost_allows():
    """Two bandits that know the same values; in one of them, rounds of arm 1 take four times as long."""
    plain, costly = (BudgetedThompson(2, rng=np.random.default_rng(0)) for _ in range(2))
    for number in range(40):
        for bandit, cost in ((plain, 10.0), (costly, 10.0 + 30.0 * (number % 2))):
            bandit.spend(number % 2, cost)
            bandit.update(number % 2, math.sin(number) - 0.3 * (number % 2))
    shares = [np.mean([bandit.choose() for _ in range(6000)]) for bandit in (plain, costly)]
    assert shares[0] > 0.1
    assert shares[1] == pytest.approx(shares[0] / 4, abs=0.02)
    assert [bandit.explain()["probability"][1] for bandit in (plain, costly)] == pytest.approx(shares, abs=0.03)
    assert costly.explain()["cost"].tolist() == [10, 40]


def test_the_leader_is_chosen_however_much_it_costs():
    bandit = BudgetedThompson(2, rng=np.random.default_rng(0))
    chosen = play(bandit, lambda arm, number: 5.0 * arm + noisy(0, number), lambda arm, number: 1.0 + 99.0 * arm, 100)
    assert chosen[20:].count(1) > 70


class NaiveBudgeted:
    """The definition, literally, with the filters of `KalmanThompson`."""

    def __init__(self, arms, rng):
        self.filters, self.arms, self.rng, self.spent = KalmanFilters(arms), arms, rng, [[] for _ in range(arms)]

    def cost(self, k):
        cost = None
        for n, spent in enumerate(self.spent[k], 1):
            cost = spent if n == 1 else cost + (spent - cost) * max(1 / n, 1 / 5)
        return cost

    def choose(self):
        filters, rng = self.filters, self.rng
        if not filters.t:
            return int(rng.integers(self.arms))
        point, f, weights = rng.random(), 0, filters.weights()
        while f < len(weights) - 1 and point >= sum(weights[: f + 1]):
            f += 1
        spread = math.sqrt(max(filters.squares[f] / filters.count, 1e-12))
        values = filters.means[f] + 0.5 * spread * np.linalg.cholesky(filters.covariances[f]) @ rng.standard_normal(self.arms)
        k = int(np.argmax(values))
        means = [sum(w * m[j] for w, m in zip(weights, filters.means, strict=True)) for j in range(self.arms)]
        best = int(np.argmax(means))
        mine, leading = self.cost(k), self.cost(best)
        if mine is None or leading is None or leading >= mine or means.count(max(means)) > 1:
            return k
        return k if rng.random() < leading / mine else best


@pytest.mark.parametrize(("arms", "seed"), [(2, 1), (3, 2), (5, 3)])
def test_it_agrees_with_a_naive_definition(arms, seed):
    bandit = BudgetedThompson(arms, rng=np.random.default_rng(seed))
    naive = NaiveBudgeted(arms, np.random.default_rng(seed))
    values, seen = np.random.default_rng(100 + seed), set()
    for number in range(300):
        k = bandit.choose()
        assert naive.choose() == k
        cost, value = float(values.integers(1, 100)) * (1 + k), float(values.normal()) + 0.01 * k * number
        bandit.spend(k, cost)
        bandit.update(k, value)
        naive.spent[k].append(cost)
        naive.filters.observe(k, value)
        seen.add(k)
    assert seen == set(range(arms))


@pytest.mark.parametrize(("shift", "factor", "unit"), [(-3.0, 0.125, 1.0), (1e6, 1.0, 8.0), (0.0, 2.0**500, 2.0**-20)])
def test_choices_do_not_depend_on_shift_and_scale_of_values_and_on_the_unit_of_costs(shift, factor, unit):
    def value(arm, number):
        return float(np.round(noisy(arm, number), 6))

    def cost(arm, number):
        return float(1 + (number * 7 + arm * 3) % 11)

    expected = play(BudgetedThompson(3, rng=np.random.default_rng(1)), value, cost, 300)
    other = BudgetedThompson(3, rng=np.random.default_rng(1))
    moved = play(
        other, lambda arm, number: shift + factor * value(arm, number), lambda arm, number: unit * cost(arm, number), 300
    )
    assert moved == expected
    assert set(expected) == {0, 1, 2}


def test_without_costs_only_the_width_differs_from_kalman_thompson_sampling():
    class Narrow(KalmanThompson):
        width = 0.5

    runs = [
        play(bandit(3, rng=np.random.default_rng(2)), noisy, None, 200) for bandit in (BudgetedThompson, Narrow, KalmanThompson)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_arms_that_must_not_be_chosen_do_not_lead():
    bandit = BudgetedThompson(3, rng=np.random.default_rng(0))
    for number in range(60):
        arm = number % 3
        bandit.spend(arm, (1.0, 50.0, 100.0)[arm])
        bandit.update(arm, (5.0, 0.0, 0.0)[arm] + math.sin(number))
    assert {bandit.choose([1, 2]) for _ in range(200)} == {1, 2}


def test_states_with_costs_continue_with_the_same_choices():
    def cost(arm, number):
        return 1.0 + arm * 20 + number % 5

    bandit = BudgetedThompson(3, rng=np.random.default_rng(4))
    play(bandit, noisy, cost, 80)
    state, generator = json.loads(json.dumps(bandit.state_dict())), bandit.rng.bit_generator.state
    expected = play(bandit, noisy, cost, 80, start=80)
    other = BudgetedThompson(3, rng=np.random.default_rng(9))
    other.load_state_dict(state)
    other.rng.bit_generator.state = generator
    assert play(other, noisy, cost, 80, start=80) == expected
    state["memory"]["arms"][0]["cost"] = -1.0
    with pytest.raises(ValueError, match="cost"):
        other.load_state_dict(state)


def test_arms_come_and_go_with_their_costs():
    bandit = BudgetedThompson(3, rng=np.random.default_rng(0))
    for arm in range(3):
        bandit.spend(arm, 10.0 * (arm + 1))
        bandit.update(arm, float(arm))
    bandit.remove_arm(0)
    bandit.add_arm()
    assert bandit.explain()["cost"].tolist() == [20, 30, 0]
    bandit.reset(keep=[1])
    assert bandit.explain()["cost"].tolist() == [0, 30, 0]


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, math.inf])
def test_a_cost_that_is_none_is_refused(cost):
    with pytest.raises(InvalidValueError, match="a cost is positive and at most 1e100` must hold"):
        BudgetedThompson(2).spend(0, cost)


def test_in_the_loop_lengths_of_episodes_are_costs():
    learners = [TabularQ(name, states=6, actions=2, rate=rate) for name, rate in (("slow", 0.05), ("fast", 0.5))]
    selector = make_selector("budgeted-thompson", ["slow", "fast"])
    records = list(esbas.run(Corridor(6), learners, selector, episodes=30))
    for name, row in selector.explain().items():
        cost = 0.0
        for count, record in enumerate((each for each in records if each.arm == name), 1):
            cost = mean_cost(cost, count, record.length)
        assert row["cost"] == pytest.approx(cost)
