"""Kalman Thompson sampling: by hand, a naive filter, rules for arms, values of any size."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from esbas import BanditSelector, KalmanThompson
from esbas.bandits.kalman_filters import KalmanFilters

PACES = [(own, common) for own in (1 / 2, 1 / 8, 1 / 32) for common in (1 / 8, 1 / 32, 1 / 128)]


class NaiveFilters:
    """The definition, literally: lists, loops, no standardization, the whole density."""

    def __init__(self, arms):
        self.arms = arms
        self.t = 0
        self.a = 0.0
        self.seen = [0] * arms
        self.M = [[0.0] * arms for _ in PACES]
        self.P = [[[float(i == j) for j in range(arms)] for i in range(arms)] for _ in PACES]
        self.b = [0.0] * len(PACES)
        self.log_weight = [0.0] * len(PACES)

    def observe(self, k, y):
        if self.t == 0:
            self.M = [[y] * self.arms for _ in PACES]
        self.t += 1
        keep = 1 - 1 / (10 + self.t / 10)
        for f, (own, common) in enumerate(PACES):
            M = self.M[f]
            P = self.P[f]
            for i in range(self.arms):
                for j in range(self.arms):
                    P[i][j] += 1 / (1 + common * self.t) ** 2
                P[i][i] += 1 / (1 + own * self.t) ** 2
            S = P[k][k] + 1
            e = y - M[k]
            e2 = e**2 / S
            r = max(self.b[f] / self.a if self.a else e2, 1e-12)
            n = max(self.a, 1)
            scale = math.sqrt(r * S)
            density = (
                math.lgamma((n + 1) / 2)
                - math.lgamma(n / 2)
                - math.log(n * math.pi) / 2
                - math.log(scale)
            )
            density -= (n + 1) / 2 * math.log(1 + (e / scale) ** 2 / n)
            self.log_weight[f] = keep * self.log_weight[f] + density
            self.b[f] = keep * self.b[f] + e2
            column = [P[j][k] for j in range(self.arms)]
            for i in range(self.arms):
                M[i] += column[i] * e / S
                for j in range(self.arms):
                    P[i][j] -= column[i] * column[j] / S
        self.a = keep * self.a + 1
        self.seen[k] = self.t
        for j in range(self.arms):
            if self.t + 1 > 2 * self.seen[j]:
                for P in self.P:
                    P[j][j] = 4 * P[j][j] + 4
                self.seen[j] = self.t

    def weights(self):
        largest = max(self.log_weight)
        weights = [math.exp(log - largest) for log in self.log_weight]
        return [weight / sum(weights) for weight in weights]

    def mean(self, k):
        return sum(weight * M[k] for weight, M in zip(self.weights(), self.M, strict=True))

    def spread(self, k):
        mean = self.mean(k)
        columns = zip(self.weights(), self.M, self.P, self.b, strict=True)
        return math.sqrt(
            sum(
                w * (max(b / self.a, 1e-12) * P[k][k] + (M[k] - mean) ** 2)
                for w, M, P, b in columns
            )
        )


def weights_of(bandit):
    return [column[0] for name, column in bandit.explain().items() if name.startswith("filter")]


def play(bandit, value, rounds, start=0):
    """Rounds with values that depend on the arm and the number of the round; returns the arms."""
    chosen = []
    for number in range(start, start + rounds):
        arm = bandit.choose()
        bandit.update(arm, value(arm, number))
        chosen.append(arm)
    return chosen


def test_the_first_two_rounds_by_hand():
    """The filter with f = 1/2 and 1/8: arm 0 gives 10, then arm 1 gives 12, one unit more."""
    bandit = KalmanThompson(2)
    bandit.update(0, 10.0)
    # q = 4/9 and 64/81, so P = [[181, 64], [64, 181]] / 81 and S = 262/81; arm 1 is doubtful at
    # once
    assert bandit.filters["covariances"][0] == pytest.approx(
        [181 / 262, 64 / 262, 4 * (181 * 262 - 64**2) / (81 * 262) + 4]
    )
    assert bandit.indices().tolist() == [10, 10]
    assert bandit.filters["seen"] == [1, 1]
    bandit.update(1, 12.0)
    # now q is 1/4 and 16/25
    p00 = Fraction(181, 262) + Fraction(89, 100)
    p01 = Fraction(64, 262) + Fraction(64, 100)
    p11 = 4 * Fraction(181 * 262 - 64**2, 81 * 262) + 4 + Fraction(89, 100)
    S = p11 + 1
    assert float(S) == pytest.approx(14.056245)
    saved = bandit.filters
    assert saved["means"][0] == pytest.approx([float(p01 / S), float(p11 / S)])
    assert saved["covariances"][0] == pytest.approx(
        [4 * float(p00 - p01**2 / S) + 4, float(p01 / S), float(p11 / S)]
    )
    assert saved["squares"][0] == pytest.approx(float(1 / S))
    assert saved["count"] == pytest.approx(1 + 9.2 / 10.2)
    # arm 0 is doubtful: 3 > 2 · 1
    assert (saved["origin"], saved["unit"], saved["seen"]) == (10, 2, [2, 2])


@pytest.mark.parametrize(("arms", "seed"), [(1, 0), (2, 1), (3, 2), (5, 3)])
def test_it_agrees_with_a_naive_filter(arms, seed):
    rng = np.random.default_rng(seed)
    bandit = KalmanThompson(arms)
    naive = NaiveFilters(arms)
    for t in range(1, 151):
        # some arms are rare and become doubtful
        k = int(rng.integers(arms)) if rng.random() < 0.3 else 0
        y = 50.0 + 0.2 * t + 5 * k + float(rng.normal())
        bandit.update(k, y)
        naive.observe(k, y)
        if t % 10 == 1 or t < 5:
            explained = bandit.explain()
            assert weights_of(bandit) == pytest.approx(naive.weights(), abs=1e-7)
            assert bandit.indices().tolist() == pytest.approx(
                [naive.mean(k) for k in range(arms)], rel=1e-7
            )
            assert t == 1 or explained["spread"].tolist() == pytest.approx(
                [naive.spread(k) for k in range(arms)], rel=1e-6
            )
            assert bandit.filters["seen"] == naive.seen
    below = np.tril_indices(arms)
    assert bandit.filters["covariances"][4] == pytest.approx(
        np.array(naive.P[4])[below].tolist(), rel=1e-9
    )


def test_samples_have_the_moments_of_the_posterior():
    bandit = KalmanThompson(3)
    filters = KalmanFilters(3)
    rng = np.random.default_rng(1)
    for t in range(30):
        bandit.update(t % 2, float(t % 5))
        filters.observe(t % 2, float(t % 5))
    drawn = np.array(
        [
            filters.sample(filters.draw(point), rng.standard_normal(3))
            for point in np.arange(0, 1, 5e-5)
        ]
    )
    samples = drawn * filters.unit + filters.origin
    spread = bandit.explain()["spread"]
    assert np.abs(samples.mean(axis=0) - bandit.indices()).max() < 0.05 * spread.max()
    assert samples.std(axis=0) == pytest.approx(spread, rel=0.05)


def test_an_arm_becomes_doubtful_when_it_was_not_seen_in_the_later_half():
    bandit = KalmanThompson(2)
    seen = []
    for t in range(1, 40):
        before = bandit.explain()["spread"][1]
        bandit.update(0, float(t % 3))
        seen.append(bandit.filters["seen"][1])
        if t > 4:
            grown = bandit.explain()["spread"][1] > 1.5 * before
            assert grown == (t in (8, 16, 32))
    assert seen == [2 ** int(math.log2(t)) for t in range(1, 40)]


@pytest.mark.parametrize(
    ("shift", "factor"),
    [(0.0, 2.0**-700), (0.0, 2.0**700), (-3.0, 0.125), (1e6, 1.0), (1e9, 1024.0)],
)
def test_choices_do_not_depend_on_shift_and_scale(shift, factor):
    def value(arm, number):
        return float(np.round(np.random.default_rng(number).normal() + arm * number / 50, 6))

    expected = play(KalmanThompson(3, rng=np.random.default_rng(1)), value, 300)
    other = KalmanThompson(3, rng=np.random.default_rng(1))
    assert play(other, lambda arm, number: shift + factor * value(arm, number), 300) == expected
    assert len(set(expected)) == 3


def test_the_best_arm_is_found_and_followed_when_it_changes():
    bandit = KalmanThompson(3, rng=np.random.default_rng(2))
    noise = np.random.default_rng(3).normal(size=2000)
    best = {0: 0, 1: 2, 2: 1}
    chosen = play(
        bandit, lambda arm, number: 5.0 + (arm == best[number // 400]) + 0.7 * noise[number], 1200
    )
    for stretch, arm in best.items():
        assert chosen[400 * stretch + 200 : 400 * stretch + 400].count(arm) > 150, stretch


def test_a_common_change_is_a_change_of_all_arms():
    """All learn from the same data: an improvement of one arm raises the others, too."""
    bandit = KalmanThompson(2)
    for t in range(100):
        bandit.update(t % 2, 0.05 * t + 0.1 * (t % 3))
    before = bandit.indices()
    for t in range(100, 110):
        bandit.update(0, 0.05 * t + 0.1 * (t % 3))
    assert bandit.indices()[1] > before[1] + 0.1


@pytest.mark.parametrize("odd", [1e300, -1e300, 1.7e308, 5e-324, 0.0])
@pytest.mark.parametrize("usual", [0.0, 1.0, -1e308, 3e-320])
def test_values_of_any_size_keep_it_sound(usual, odd):
    bandit = KalmanThompson(3, rng=np.random.default_rng(0))
    play(bandit, lambda arm, number: odd if number % 17 == 3 else usual + arm, 120)
    json.dumps(bandit.state_dict(), allow_nan=False)
    assert not np.isnan(bandit.indices()).any()
    explained = bandit.explain()
    assert not any(np.isnan(column).any() for column in explained.values())
    assert explained["probability"].sum() == pytest.approx(1)


def test_equal_values_are_chosen_among_at_random():
    bandit = KalmanThompson(3, rng=np.random.default_rng(0))
    chosen = play(bandit, lambda arm, number: 7.0, 600)
    assert all(chosen.count(arm) > 120 for arm in range(3))
    assert bandit.indices().tolist() == [7, 7, 7]
    assert bandit.explain()["spread"].tolist() == [0, 0, 0]


def test_the_first_arm_is_random_also_with_several_rounds_in_flight():
    firsts = [KalmanThompson(4, rng=np.random.default_rng(seed)).choose() for seed in range(40)]
    assert set(firsts) == {0, 1, 2, 3}
    assert {
        KalmanThompson(4, rng=np.random.default_rng(seed)).choose([3, 1]) for seed in range(20)
    } == {1, 3}
    bandit = KalmanThompson(2, rng=np.random.default_rng(0))
    tickets = [(arm, bandit.pull(arm)) for arm in (0, 1, 0)]
    assert {bandit.choose() for _ in range(20)} == {0, 1}
    assert bandit.explain()["probability"].tolist() == [0.5, 0.5]
    for arm, ticket in reversed(tickets):
        bandit.update(arm, 1.0 + arm, pull=ticket)
    assert bandit.filters["rounds"] == 3
    assert bandit.counts.tolist() == [2, 1]


def test_the_explained_probability_is_that_of_the_choices():
    bandit = KalmanThompson(3, rng=np.random.default_rng(0))
    for t in range(60):
        bandit.update(t % 3, math.sin(t) + 0.15 * (t % 3))
    generator = bandit.rng.bit_generator.state
    probability = bandit.explain()["probability"]
    assert bandit.rng.bit_generator.state == generator
    chosen = [bandit.choose() for _ in range(3000)]
    assert probability == pytest.approx([chosen.count(arm) / 3000 for arm in range(3)], abs=0.05)
    assert min(probability) > 0.01
    assert bandit.propensity(0) is None


def test_a_removed_arm_leaves_what_is_known_about_the_others():
    bandit = KalmanThompson(3)
    for t in range(50):
        bandit.update(t % 3, math.sin(t) + t % 3)
    before = bandit.indices()
    spread = bandit.explain()["spread"]
    bandit.remove_arm(1)
    assert bandit.indices().tolist() == pytest.approx(before[[0, 2]].tolist())
    assert bandit.explain()["spread"].tolist() == pytest.approx(spread[[0, 2]].tolist())


def test_a_new_arm_has_the_average_mean_and_is_tried_soon():
    bandit = KalmanThompson(2, rng=np.random.default_rng(5))
    play(bandit, lambda arm, number: 100.0 * arm + math.sin(number), 200)
    before, spread = bandit.indices(), bandit.explain()["spread"]
    bandit.add_arm()
    assert bandit.indices().tolist() == pytest.approx([*before, before.mean()])
    explained = bandit.explain()
    assert explained["spread"][:2].tolist() == pytest.approx(spread.tolist())
    assert explained["spread"][2] > 80  # about twice the distance of the others from their mean
    assert 0.1 < explained["probability"][2] < 0.5
    chosen = play(bandit, lambda arm, number: 100.0 * arm + math.sin(number), 60, start=200)
    assert chosen[30:].count(2) > 25


def test_arms_that_a_reset_keeps_stay_and_others_are_new():
    bandit = KalmanThompson(3)
    for t in range(60):
        bandit.update(t % 3, math.sin(t) + t % 3)
    before = bandit.indices()
    bandit.reset(keep=[0, 2])
    assert bandit.indices().tolist() == pytest.approx([before[0], before[[0, 2]].mean(), before[2]])
    bandit.reset(keep=[0, 1, 2])
    assert bandit.indices()[0] == pytest.approx(before[0])
    bandit.reset()
    assert bandit.filters == KalmanThompson(3).filters


def test_the_state_has_a_constant_size_and_explain_tells_what_was_asked_for():
    selector = BanditSelector(["a", "b"], bandit=KalmanThompson, scale=None)
    sizes = []
    for number in range(400):
        choice = selector.ask()
        selector.tell(choice, float(number % 7))
        if number in (20, 399):
            sizes.append(len(json.dumps(selector.state_dict())))
    assert sizes[1] < 1.1 * sizes[0]
    row = selector.explain()["a"]
    assert {
        "mean",
        "index",
        "spread",
        "probability",
        "filter 1/2, 1/8",
        "filter 1/32, 1/128",
    } <= set(row)
    assert sum(value for name, value in row.items() if name.startswith("filter")) == pytest.approx(
        1
    )
