"""Any bandit on a window: exactly where it takes a memory, otherwise by staggered copies."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given

from bandits.histories import UNIT, Model, operations, replay
from esbas import ESBAS, SSBAS
from esbas.bandits import D3RB, KLUCB, UCB1, BetaThompson, Exp3, SlidingUCB, Staggered, on_window
from esbas.errors import InvalidValueError


def half(tau):
    return tau // 2


def test_a_bandit_with_a_memory_slides_exactly():
    ours = on_window(UCB1, size=half)(3)
    slides = SlidingUCB(3)
    rng = np.random.default_rng(0)
    for _ in range(300):
        arm = slides.choose()
        reward = float(rng.random())
        assert ours.choose() == arm
        ours.update(arm, reward)
        slides.update(arm, reward)
    assert ours.indices().tolist() == slides.indices().tolist()


def test_parameters_are_kept():
    bandit = on_window(partial(BetaThompson, successes=5.0), size=half)(2)
    assert bandit.posterior(0) == (5.0, 1.0)
    assert isinstance(on_window(D3RB, size=half)(2), Staggered)


@pytest.mark.parametrize(
    ("size", "least"), [(lambda tau: 100, 0.5), (half, 0.5), (lambda tau: tau, 1.0)]
)
def test_staggered_copies_hold_between_a_half_and_all_of_the_window(size, least):
    bandit = Staggered(2, bandit=D3RB, size=size)
    for number in range(3000):
        bandit.update(number % 2, 0.5)
        if number > 500:
            assert least - 0.01 <= bandit.counts.sum() / size(number + 2) <= 1


class Rounds(Model):
    """The events since each copy started, to be replayed into a new bandit."""

    def __init__(self, size):
        self.size = size
        self.events = []
        self.rounds = 0
        self.starts = [(0, 0)]  # (rounds, events) before the start of each copy

    def pull(self, ticket, arm, among=None):
        self.events.append(("pull", ticket, arm, 0.0))
        self.rounds += 1
        size = max(self.size(self.rounds + 1), 1)
        if len(self.starts) == 2 and self.rounds - self.starts[0][0] > size:
            del self.starts[0]
        if len(self.starts) == 1 and 2 * (self.rounds - self.starts[0][0]) >= size:
            self.starts.append((self.rounds, len(self.events)))

    def settle(self, ticket, arm, reward):
        self.events.append(("settle", ticket, arm, reward))

    def withdraw(self, ticket, arm):
        self.events.append(("withdraw", ticket, arm, 0.0))

    def reset(self, keep):
        self.events.append(("reset", 0, 0, keep))

    def older(self, bandit):
        tickets = {}
        for what, ticket, arm, value in self.events[self.starts[0][1] :]:
            if what == "pull":
                tickets[ticket] = bandit.pull(arm)
            elif what == "settle" and ticket in tickets:
                bandit.update(arm, value, pull=tickets[ticket])
            elif what == "withdraw" and ticket in tickets:
                bandit.withdraw(tickets[ticket])
            elif what == "reset":
                bandit.reset(keep=value)
        return bandit


@pytest.mark.parametrize("size", [half, lambda tau: 7], ids=["growing", "fixed"])
@given(todo=operations(UNIT, max_size=80))
def test_the_older_copy_equals_a_bandit_that_saw_only_its_rounds(size, todo):
    bandit, rounds = Staggered(3, bandit=partial(D3RB, d_min=0.05, c=0.3), size=size), Rounds(size)
    replay(bandit, rounds, [each for each in todo if each[0] not in ("add", "remove")])
    alone = rounds.older(D3RB(3, d_min=0.05, c=0.3))
    assert bandit.counts.tolist() == alone.counts.tolist()
    assert bandit.indices().tolist() == pytest.approx(alone.indices().tolist())


def test_the_younger_copy_divides_rewards_by_the_probability_in_the_older_one():
    bandit = Staggered(2, bandit=partial(Exp3, gamma=0.5), size=lambda tau: 4)
    bandit.update(0, 1.0)
    bandit.update(0, 1.0)  # the second copy starts
    drawn = bandit.indices()[0]  # with which the older copy draws arm 0 in each of the next rounds
    bandit.update(0, 1.0)
    gain = 0.5 / (2 * drawn)
    drawn = bandit.indices()[0]
    bandit.update(0, 1.0)
    gain += 0.5 / (2 * drawn)
    drawn = bandit.indices()[0]
    bandit.update(0, 1.0)  # the fifth round: the younger copy takes over
    gain += 0.5 / (2 * drawn)
    assert bandit.counts.tolist() == [3, 0]
    assert bandit.indices()[0] == pytest.approx(0.5 * math.exp(gain) / (math.exp(gain) + 1) + 0.25)


def test_the_propensity_is_that_of_the_older_copy():
    bandit = Staggered(2, bandit=partial(Exp3, gamma=0.5), size=lambda tau: 4)
    for _ in range(3):
        bandit.update(0, 1.0)
    assert bandit.propensity(0) == bandit.indices()[0] > 0.5
    assert bandit.propensity(1, among=[1]) == 1.0
    assert Staggered(2, bandit=D3RB, size=half).propensity(0) == 1.0
    assert Staggered(2, bandit=BetaThompson, size=half).propensity(0) is None


def learning_curve(selector, rounds=2000, seed=0):
    """Return the share of arm "late" in the last quarter of the rounds.

    It learns and overtakes arm "steady" in the middle.
    """
    rng = np.random.default_rng(seed)
    late = 0
    for number in range(rounds):
        choice = selector.ask()
        mean = 0.5 if choice.arm == "steady" else 0.9 * (number > rounds / 4)
        selector.tell(choice, float(rng.random() < mean))
        late += choice.arm == "late" and number >= 3 * rounds / 4
    return 4 * late / rounds


@pytest.mark.parametrize(
    "bandit", [KLUCB, BetaThompson, partial(Exp3, gamma=0.1), partial(D3RB, d_min=0.1, c=0.1)]
)
def test_ssbas_follows_an_arm_that_learns_with_any_bandit(bandit):
    assert learning_curve(SSBAS(["steady", "late"], bandit=bandit)) > 0.75


def test_ssbas_takes_xi_or_a_bandit():
    with pytest.raises(InvalidValueError, match="Give `xi` or `bandit`, not both"):
        SSBAS(["a", "b"], xi=0.25, bandit=KLUCB)
    with pytest.raises(
        InvalidValueError, match="`fraction` must be greater than 0 and at most 1, but got 0"
    ):
        SSBAS(["a", "b"], bandit=KLUCB, fraction=0)


@pytest.mark.parametrize("bandit", [KLUCB, Exp3, D3RB])
def test_each_epoch_of_esbas_starts_with_a_new_bandit_except_for_stationary_arms(bandit):
    selector = ESBAS(["a", "b", "c"], bandit=bandit, stationary=["c"], seed=1)
    epoch = None
    counts = [0, 0, 0]
    for number in range(40):
        choice = selector.ask()
        if choice.epoch != epoch:
            after = selector.bandit.counts
            after[selector.arms.index(choice.arm)] -= 1
            assert after.tolist() == [0, 0, counts[2]]
            epoch = choice.epoch
        selector.tell(choice, float(number % 3))
        counts = selector.bandit.counts
