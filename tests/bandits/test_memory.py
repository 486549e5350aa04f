"""The memories of bandits, over many rounds and with rewards of very different size."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from esbas import UCB1, SlidingUCB
from esbas.bandits import AllRounds, Arm, Window


def pulls(memory):
    return [arm.pulls for arm in memory.arms]


def wild_rewards(n, seed=0):
    """Rewards of either sign whose sizes differ by 30 orders of magnitude."""
    rng = np.random.default_rng(seed)
    return (rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-15, 15, n)).tolist()


def expect_no_drift(rounds, fraction):
    rewards = wild_rewards(rounds)
    bandit = SlidingUCB(2, fraction=fraction)
    for number, reward in enumerate(rewards):
        bandit.update(number & 1, reward)
    start = rounds - math.floor((rounds + 1) * fraction)
    for arm in range(2):
        first = start + (start + arm) % 2
        mine = rewards[first::2]
        exact = float(sum(map(Fraction, mine)) / len(mine))
        assert bandit.counts[arm] == len(mine)
        assert bandit.means[arm] == exact
        running = np.cumsum(rewards[arm::2])  # floats that are added and subtracted do drift
        assert (running[-1] - running[first // 2 - 1]) / len(mine) != exact


def test_many_rounds_do_not_drift():
    expect_no_drift(300_000, fraction=0.003)


@pytest.mark.slow
def test_ten_million_rounds_do_not_drift():
    expect_no_drift(10_000_000, fraction=0.01)


def test_the_window_forgets_a_huge_reward_without_a_trace():
    window = Window(1, size=lambda tau: 2)
    for reward in (1e308, 1e-308, 5e-324):
        window.settle(window.pull(0), reward)
    assert window.arms[0].mean == float((Fraction(1e-308) + Fraction(5e-324)) / 2)
    window.settle(window.pull(0), 5e-324)
    assert window.arms[0].mean == 5e-324


def test_the_window_holds_extremes():
    largest = 1.7976931348623157e308
    window = Window(1, size=lambda tau: tau)
    for reward in (largest, largest, -largest):
        window.settle(window.pull(0), reward)
    assert window.arms[0].mean == pytest.approx(largest / 3)
    assert window.prior() == window.arms[0].mean


def test_the_window_stores_no_more_rounds_than_it_holds():
    window = Window(2, size=lambda tau: min(tau, 100))
    for number in range(50_000):
        window.settle(window.pull(number % 2), 1.0)
    assert len(json.dumps(window.state_dict())) < 2_000
    assert pulls(window) == [50, 50]
    assert window.total == 100


def test_a_round_in_flight_survives_the_clean_up_of_old_rounds():
    window = Window(2, size=lambda tau: tau // 2)
    tickets = [window.pull(number % 2) for number in range(5_000)]
    for ticket in tickets[4_000:]:
        window.settle(ticket, float(ticket))
    assert pulls(window) == [1250, 1250]
    assert window.arms[0].mean == np.mean([ticket for ticket in tickets[4_000:] if ticket % 2 == 0])
    window.settle(tickets[0], 1e9)  # has left the window
    window.withdraw(tickets[1])
    assert pulls(window) == [1250, 1250]
    assert window.arms[1].mean == np.mean([ticket for ticket in tickets[4_000:] if ticket % 2 == 1])


@pytest.mark.parametrize("memory", [AllRounds(3), Window(3, size=lambda tau: tau)])
def test_an_arm_with_only_rounds_in_flight_has_the_mean_of_all(memory):
    assert memory.prior() == 0.0
    for arm, reward in ((0, 1.0), (0, 2.0), (1, 6.0)):
        memory.settle(memory.pull(arm), reward)
    memory.pull(2)
    assert pulls(memory) == [2, 1, 1]
    assert memory.arms[2].rewards == 0
    assert memory.prior() == 3.0


@pytest.mark.parametrize("make", [lambda: AllRounds(2), lambda: Window(2, size=lambda tau: tau)])
def test_a_kept_arm_keeps_its_rewards_and_loses_its_rounds_in_flight(make):
    memory = make()
    for arm, reward in ((0, 1.0), (1, 5.0), (0, 2.0)):
        memory.settle(memory.pull(arm), reward)
    flying = memory.pull(0)
    memory.reset(keep=[0])
    assert (pulls(memory), memory.total) == ([2, 0], 2)
    memory.settle(flying, 100.0)
    assert memory.arms[0].mean == 1.5
    assert memory.arms[1].rewards == 0


@dataclass(slots=True)
class Labeled(Arm):
    label: str = "new"


def test_the_memory_resets_adds_removes_and_saves_the_records_of_a_bandit():
    memory = AllRounds(3, arm=Labeled)
    for arm, label in zip(memory.arms, "abc", strict=True):
        arm.label = label
    memory.add_arm()
    flying = memory.pull(2)
    memory.open[flying].note = [0.5, True]
    memory.remove_arm(1)
    assert [arm.label for arm in memory.arms] == ["a", "c", "new"]
    text = json.dumps(memory.state_dict(), allow_nan=False)
    twin = AllRounds(1, arm=Labeled)
    twin.load_state_dict(json.loads(text))
    assert json.dumps(twin.state_dict()) == text
    settled = twin.settle(flying, 4.0)  # its arm has moved from 2 to 1
    assert (settled.arm.label, settled.note) == ("c", [0.5, True])
    assert twin.arms[1].mean == 4.0
    assert memory.arms[1].rewards == 0
    twin.reset(keep=[1])
    assert [arm.label for arm in twin.arms] == ["new", "c", "new"]
    assert pulls(twin) == [0, 1, 0]


def test_a_bandit_that_has_seen_huge_rewards_can_be_saved_and_loaded():
    bandit = UCB1(2)
    twin = UCB1(2)
    for reward in (0.0, 1e200, 1.7e308, 1.7e308, -1.7e308, 1.0):
        bandit.update(0, reward)
    twin.load_state_dict(json.loads(json.dumps(bandit.state_dict(), allow_nan=False)))
    assert twin.means[0] == bandit.means[0]
