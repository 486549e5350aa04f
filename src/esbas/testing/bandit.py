"""A check of the bandit contract."""

import json
from collections import Counter
from collections.abc import Callable

import numpy as np

from esbas import seeding
from esbas.bandits import Bandit, BanditFactory
from esbas.testing.bandit_rounds import expect_empty, expect_shapes, play, same, state_text
from esbas.testing.contract import check_rules, expect, expect_refused

New = Callable[[int], Bandit]
"""Builds a bandit with this number of arms, always with the same random stream."""


def check_bandit(factory: BanditFactory, *, seed: int = 0) -> None:
    """Raise a ContractError unless the bandit satisfies the contract of `esbas.Bandit`.

    The check uses rewards in [0, 1]. The rules: a new bandit has no pulls and no means; `choose`,
    `propensity` and the properties do not change it; `choose(among)` returns one of these arms;
    `propensity` is the frequency with which `choose` returns an arm, or None; a reward counts for
    its own arm, also if it arrives late; `withdraw` undoes a pull; `reset` forgets everything
    except the arms to keep, and every round in flight; arms can be added and removed; rewards that
    are not finite and arms that do not
    exist raise an error and change nothing; the state is plain data and determines all later
    choices; the same seed gives the same choices; nothing becomes NaN in a long run.

    Args:
        factory: called as `factory(n_arms, rng=generator)`: a class, or `functools.partial(Class,
            parameter=...)`.
        seed: for the bandit's random stream and the rewards.
    """

    def new(n_arms: int) -> Bandit:
        return factory(n_arms, rng=seeding.generator(seed, "bandit"))

    check_rules(type(new(2)).__name__, _RULES, new)


def _starts_empty(new: New) -> None:
    """A new bandit has n_arms arms without pulls and without means."""
    for n_arms in (1, 2, 5):
        bandit = new(n_arms)
        expect(bandit.n_arms == n_arms, f"n_arms is {bandit.n_arms!r} and not {n_arms}")
        expect_shapes(bandit)
        expect_empty(bandit, range(n_arms), "a new bandit")


def _reads_without_changes(new: New) -> None:
    """`choose`, `propensity`, `indices`, `counts` and `means` do not change the bandit.

    Only `choose` may draw random numbers.
    """
    for rounds in (0, 1, 30):
        bandit = new(3)
        play(bandit, rounds)
        before = state_text(bandit)
        generator = seeding.state_of(bandit.rng)
        bandit.indices()
        bandit.counts  # noqa: B018  # reading them is the test
        bandit.means  # noqa: B018
        bandit.propensity(0)
        expect(
            state_text(bandit) == before,
            f"indices(), counts, means or propensity() changed it after {rounds} rounds",
        )
        expect(
            seeding.state_of(bandit.rng) == generator,
            "indices(), counts, means or propensity() drew random numbers",
        )
        bandit.choose()
        expect(state_text(bandit) == before, f"choose() changed it after {rounds} rounds")


def _respects_among(new: New) -> None:
    """`choose` returns one of the arms, one of `among` if that is given."""
    bandit = new(4)
    for among in (None, [2], [0, 3], (1, 2), {3}, range(4)) * 10:
        arm = bandit.choose(among)
        expect(
            isinstance(arm, int | np.integer) and arm in (among or range(4)),
            f"choose({among}) returned {arm!r}",
        )
        bandit.update(arm, 0.5)


def _knows_its_propensities(new: New) -> None:
    """`propensity` returns None, or the frequency with which `choose` returns the arm."""
    draws = 1000
    for rounds, among in ((0, None), (40, None), (40, [0, 2])):
        bandit = new(3)
        play(bandit, rounds)
        counts = Counter(int(bandit.choose(among)) for _ in range(draws))
        for arm, count in counts.items():
            chance = bandit.propensity(arm, among)
            frequency = count / draws
            if chance is None:
                continue
            expect(
                isinstance(chance, float) and 0 < chance <= 1,
                f"propensity({arm}, {among}) is {chance!r} for a chosen arm",
            )
            deviation = 5 * (chance * (1 - chance) / draws) ** 0.5  # five standard deviations
            expect(
                abs(frequency - chance) <= deviation + 1e-9,
                f"propensity({arm}, {among}) is {chance} for an arm that choose returned in "
                f"{count} of {draws} draws",
            )


def _records_a_probability(new: New) -> None:
    """`pull(probability=...)` is accepted; its default is the probability among all arms."""
    for rounds in (0, 40):
        bandit = new(3)
        twin = new(3)
        play(bandit, rounds)
        play(twin, rounds)
        arm = bandit.choose()
        expect(twin.choose() == arm, "two bandits with the same seed chose differently")
        bandit.update(arm, 0.25, pull=bandit.pull(arm))
        twin.update(arm, 0.25, pull=twin.pull(arm, probability=twin.propensity(arm)))
        expect(
            state_text(bandit) == state_text(twin),
            "pull(arm) differs from pull(arm, probability=propensity(arm))",
        )
        bandit.update(arm, 0.25, pull=bandit.pull(arm, probability=0.5))


def _rewards_its_arm(new: New) -> None:
    """A reward counts only for its own arm, immediately or late."""
    for late in (False, True):
        bandit = new(3)
        rounds = [(1, 0.25, bandit.pull(1)), (2, 0.75, bandit.pull(2))]
        for arm, reward, ticket in reversed(rounds) if late else rounds:
            bandit.update(arm, reward, pull=ticket)
        expect(np.isnan(bandit.means[0]), f"arm 0 has the mean {bandit.means[0]} without a pull")
        for arm, reward, _ in rounds:
            mean = bandit.means[arm]
            count = bandit.counts[arm]
            # A short memory may have forgotten the round.
            fits = abs(mean - reward) < 1e-9 if count else np.isnan(mean)
            expect(
                bool(fits),
                f"arm {arm} has the mean {mean} with {count} pulls after the reward {reward}",
            )
        before = state_text(bandit)
        bandit.update(1, 1.0, pull=rounds[0][2])
        expect(state_text(bandit) == before, "a second reward of the same round had an effect")
    bandit = new(3)
    play(bandit, 60)
    arm = int(np.argmin(bandit.counts))
    for _ in range(60):
        bandit.pull(arm)
    expect(bandit.counts[arm] > 0, f"60 rounds in flight count as {bandit.counts[arm]} pulls")
    expect_shapes(bandit)


def _withdraws(new: New) -> None:
    """`withdraw` undoes a pull, and a later reward of the round has no effect."""
    bandit = new(3)
    tickets = [bandit.pull(arm) for arm in (0, 2, 2)]
    for ticket in tickets:
        bandit.withdraw(ticket)
    expect_empty(bandit, range(3), "a bandit whose rounds were all withdrawn")
    before = state_text(bandit)
    bandit.update(2, 1.0, pull=tickets[1])
    bandit.withdraw(tickets[2])
    expect(
        state_text(bandit) == before,
        "a reward or a second withdrawal of a withdrawn round had an effect",
    )
    ticket = bandit.pull(1)
    bandit.update(1, 0.5, pull=ticket)
    before = state_text(bandit)
    bandit.withdraw(ticket)
    expect(state_text(bandit) == before, "withdrawing a round that had a reward had an effect")


def _resets(new: New) -> None:
    """`reset` forgets all arms except those to keep, and every round in flight.

    A reward of such a round has no effect.
    """
    for keep in ((), (1,), (0, 2)):
        bandit = new(3)
        play(bandit, 40)
        counts = bandit.counts
        means = bandit.means
        tickets = [bandit.pull(arm) for arm in range(3)]
        bandit.reset(keep=keep)
        expect_empty(bandit, sorted({0, 1, 2} - set(keep)), "an arm that was reset")
        for arm in keep:
            kept = bandit.counts[arm]
            before = counts[arm]
            expect(
                kept <= before,
                f"a kept arm has {kept} pulls after a reset and had {before} without its round "
                "in flight",
            )
            expect(
                bool(kept > 0) or before < 4,
                f"a kept arm has no pulls after a reset and had {before}",
            )
            # Rounds in flight may have moved old ones out of a window.
            close = abs(bandit.means[arm] - means[arm]) <= 0.5
            expect(
                bool(close) or not kept,
                f"a kept arm has the mean {bandit.means[arm]} after a reset and had {means[arm]}",
            )
        before_late = state_text(bandit)
        for arm, ticket in enumerate(tickets):
            bandit.update(arm, 1.0, pull=ticket)
        expect(
            state_text(bandit) == before_late, "a reward that arrived after a reset had an effect"
        )
        again = bandit.pull(0)
        expect(again not in tickets, f"the ticket {again} was used again after a reset")
    bandit = new(2)
    play(bandit, 40)
    counts = bandit.counts
    means = bandit.means
    bandit.reset(keep=[0, 1])
    expect(
        same(bandit.counts, counts) and same(bandit.means, means),
        "keeping all arms changed counts or means",
    )


def _adds_and_removes_arms(new: New) -> None:
    """Arms can be added and removed; all others keep their statistics.

    A new arm is unplayed, and the arms after a removed one move up.
    """
    bandit = new(3)
    play(bandit, 40)
    counts = bandit.counts
    means = bandit.means
    bandit.add_arm()
    expect(bandit.n_arms == 4, f"n_arms is {bandit.n_arms} after an arm was added to 3")
    expect_empty(bandit, [3], "a new arm")
    expect(
        same(bandit.counts[:3], counts) and same(bandit.means[:3], means),
        "add_arm changed counts or means of the other arms",
    )
    play(bandit, 40)
    tickets = [bandit.pull(arm) for arm in range(4)]
    counts = bandit.counts
    means = bandit.means
    bandit.remove_arm(1)
    expect(bandit.n_arms == 3, f"n_arms is {bandit.n_arms} after one of 4 arms was removed")
    stay = [0, 2, 3]
    expect(
        same(bandit.counts, counts[stay]) and same(bandit.means, means[stay]),
        "remove_arm changed counts or means of the other arms",
    )
    before = state_text(bandit)
    bandit.update(1, 1.0, pull=tickets[1])
    expect(state_text(bandit) == before, "the reward of a removed arm had an effect")
    bandit.update(2, 1.0, pull=tickets[3])  # pulled as arm 3, which has moved up
    expect(
        same(bandit.means[:2], means[[0, 2]]),
        "the reward of an arm that moved up went to another arm",
    )
    play(bandit, 40)
    expect_shapes(bandit)
    for arm in (-1, 3):
        expect_refused(bandit.remove_arm, arm)
    bandit.remove_arm(0)
    bandit.remove_arm(1)
    play(bandit, 3)
    expect_refused(bandit.remove_arm, 0)  # the last one


def _rejects_bad_input(new: New) -> None:
    """Bad rewards and arms that do not exist raise an error and change nothing.

    Rewards must be finite.
    """
    bandit = new(3)
    play(bandit, 10)
    ticket = bandit.pull(0)
    before = state_text(bandit)
    for reward in (float("nan"), float("inf"), -float("inf")):
        expect_refused(bandit.update, 1, reward)
        expect_refused(bandit.update, 0, reward, pull=ticket)
    for arm in (-1, 3):
        expect_refused(bandit.pull, arm)
        expect_refused(bandit.update, arm, 0.5)
    expect(state_text(bandit) == before, "rejected input changed it")
    for n_arms in (0, -1):
        expect_refused(new, n_arms)


def _saves_and_loads(new: New) -> None:
    """`state_dict` is plain data, and a bandit that loads it continues identically.

    It has the same rounds in flight, too.
    """
    for rounds in (0, 1, 7, 100):
        bandit = new(4)
        play(bandit, rounds)
        bandit.remove_arm(1)
        tickets = [bandit.pull(arm) for arm in range(3)]
        fresh = new(4)
        used = new(2)
        play(used, 20)
        text = state_text(bandit)
        generator = seeding.state_of(bandit.rng)
        future = _future(bandit, tickets)
        for twin, whose in ((fresh, "a new bandit"), (used, "a used bandit")):
            twin.load_state_dict(json.loads(text))
            seeding.restore(twin.rng, generator)
            expect(state_text(twin) == text, f"state_dict differs in {whose} that loaded it")
            expect(
                _future(twin, tickets) == future,
                f"later choices differ in {whose} that loaded the state after {rounds} rounds",
            )


def _is_reproducible(new: New) -> None:
    """The same seed gives the same choices: all randomness comes from the generator passed in."""
    expect(
        play(new(3), 150) == play(new(3), 150), "two bandits with the same seed chose differently"
    )


def _lasts(new: New) -> None:
    """In a long run counts are finite, means are in the range of the rewards, indices never NaN."""
    bandit = new(5)
    for _ in range(20):
        play(bandit, 60)
        expect_shapes(bandit)
    for reward in (0.0, 1.0):  # extremes only
        for _ in range(200):
            bandit.update(bandit.choose(), reward)
        expect_shapes(bandit)


_RULES = (
    _starts_empty,
    _reads_without_changes,
    _respects_among,
    _knows_its_propensities,
    _records_a_probability,
    _rewards_its_arm,
    _withdraws,
    _resets,
    _adds_and_removes_arms,
    _rejects_bad_input,
    _saves_and_loads,
    _is_reproducible,
    _lasts,
)


def _future(bandit: Bandit, tickets: list[int]) -> str:
    """Return everything that happens after the rounds in flight have ended."""
    bandit.withdraw(tickets[0])
    bandit.update(2, 0.25, pull=tickets[2])
    later = {
        "chosen": play(bandit, 60),
        "counts": bandit.counts.tolist(),
        "means": bandit.means.tolist(),
    }
    return json.dumps(later) + state_text(bandit)
