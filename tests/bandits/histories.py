"""Whole histories of rounds, from which a naive implementation recomputes everything."""

import math

import pytest
from hypothesis import strategies as st

UNIT = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
ANY_SIZE = UNIT | st.floats(-1000, 1000)
KINDS = (
    ["play"] * 4
    + ["choose"] * 2
    + ["pull"] * 3
    + ["settle"] * 3
    + ["withdraw", "add", "remove", "reset"]
)


def operations(rewards=UNIT, max_size=50):
    """Operations on a bandit: the kind, a number that determines arm and round, a reward."""
    return st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, 1000), rewards), max_size=max_size
    )


class Model:
    """The events that a naive implementation may react to, with the present numbers of arms."""

    def pull(self, ticket, arm, among=None):
        """A round starts; `among`: the arm was chosen among these."""

    def settle(self, ticket, arm, reward):
        """The reward of the round arrives."""

    def withdraw(self, ticket, arm):
        """The round ends without a reward."""

    def add(self):
        """An arm is added."""

    def remove(self, arm):
        """An arm is removed."""

    def reset(self, keep):
        """The bandit is reset."""


def replay(bandit, model, todo):
    """Apply the same operations to the bandit and to the model."""
    flying = []  # [ticket, arm]
    for what, number, reward in todo:
        arm = number % bandit.n_arms
        if what in ("play", "pull", "choose"):
            among = None
            if what == "choose":
                among = [k for k in range(bandit.n_arms) if number >> k & 1] or None
                arm = bandit.choose(among)
                assert arm in (among or range(bandit.n_arms))
            ticket = bandit.pull(
                arm, probability=bandit.propensity(arm, among) if what == "choose" else None
            )
            model.pull(ticket, arm, among)
            flying.append([ticket, arm])
            if what == "pull":
                continue
        if what in ("play", "choose") or (what == "settle" and flying):
            ticket, arm = flying.pop(-1 if what != "settle" else number % len(flying))
            bandit.update(arm, reward, pull=ticket)
            model.settle(ticket, arm, reward)
        elif what == "withdraw" and flying:
            ticket, arm = flying.pop(number % len(flying))
            bandit.withdraw(ticket)
            model.withdraw(ticket, arm)
        elif what == "add" and bandit.n_arms < 6:
            bandit.add_arm()
            model.add()
        elif what == "remove" and bandit.n_arms > 1:
            bandit.remove_arm(arm)
            model.remove(arm)
            flying = [[ticket, k - (k > arm)] for ticket, k in flying if k != arm]
        elif what == "reset":
            keep = [k for k in range(bandit.n_arms) if number >> k & 1]
            bandit.reset(keep=keep)
            model.reset(keep)
            flying.clear()


class History(Model):
    """All rounds, and statistics computed from them.

    The weight of a round depends on how many others followed it.
    """

    def __init__(self, n_arms, weigh=lambda age, rounds: 1.0):
        self.n_arms = n_arms
        self.weigh = weigh
        # {"ticket", "arm", "reward"}; arm None: withdrawn or forgotten; reward None: in flight
        self.rounds = []

    def pull(self, ticket, arm, among=None):
        self.rounds.append({"ticket": ticket, "arm": arm, "reward": None})

    def settle(self, ticket, arm, reward):
        next(each for each in self.rounds if each["ticket"] == ticket)["reward"] = reward

    def withdraw(self, ticket, arm):
        next(each for each in self.rounds if each["ticket"] == ticket)["arm"] = None

    def add(self):
        self.n_arms += 1

    def remove(self, arm):
        self.n_arms -= 1
        for each in self.rounds:
            if each["arm"] is not None:
                each["arm"] = None if each["arm"] == arm else each["arm"] - (each["arm"] > arm)

    def reset(self, keep):
        for each in self.rounds:
            if each["arm"] not in keep or each["reward"] is None:
                each["arm"] = None

    def weighted(self, arm=None, settled=True):
        """(weight, reward) of the rounds of one arm or of all arms."""
        ages = range(len(self.rounds) - 1, -1, -1)
        pairs = [
            (self.weigh(age, len(self.rounds)), each)
            for age, each in zip(ages, self.rounds, strict=True)
        ]
        wanted = [
            (w, each)
            for w, each in pairs
            if w and each["arm"] is not None and arm in (None, each["arm"])
        ]
        return [
            (w, each["reward"]) for w, each in wanted if each["reward"] is not None or not settled
        ]

    def count(self, arm=None):
        return math.fsum(w for w, _ in self.weighted(arm, settled=False))

    def settled(self, arm):
        return math.fsum(w for w, _ in self.weighted(arm))

    def mean(self, arm=None):
        pairs = self.weighted(arm)
        return (
            math.fsum(w * x for w, x in pairs) / math.fsum(w for w, _ in pairs)
            if pairs
            else math.nan
        )

    def mean_or_prior(self, arm):
        for mean in (self.mean(arm), self.mean()):
            if not math.isnan(mean):
                return mean
        return 0.0

    def variance(self, arm):
        pairs = self.weighted(arm)
        mean = self.mean(arm)
        return (
            math.fsum(w * (x - mean) ** 2 for w, x in pairs) / math.fsum(w for w, _ in pairs)
            if pairs
            else math.nan
        )


def of_window(size):
    """Weights of a window of `size(τ)` rounds before round τ."""
    return lambda age, rounds: float(age < size(rounds + 1))


def of_discount(discount):
    return lambda age, rounds: discount**age


def expect_same_statistics(bandit, history):
    arms = range(bandit.n_arms)
    assert bandit.counts.tolist() == pytest.approx(
        [history.count(k) for k in arms], rel=1e-9, abs=1e-12
    )
    assert bandit.means.tolist() == pytest.approx(
        [history.mean(k) for k in arms], rel=1e-9, abs=1e-9, nan_ok=True
    )
