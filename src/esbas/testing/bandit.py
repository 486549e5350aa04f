"""A check of the contract that every bandit keeps."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from esbas import seeding
from esbas.bandits import Bandit, BanditFactory
from esbas.testing.contract import check_rules, expect, expect_refused

New = Callable[[int], Bandit]  # builds a bandit with so many arms, always with the same random stream


def check_bandit(factory: BanditFactory, *, seed: int = 0) -> None:
    """Raise a ContractError unless the bandit keeps the contract of `esbas.Bandit`.

    It is fed rewards in [0, 1]. The rules: a new bandit has no pulls and no means; `choose` and the properties only look;
    `among` is kept to; a reward counts for its own arm, also when it comes late; `withdraw` undoes a pull; `reset` forgets all
    but the arms to keep, and every round in flight; arms come and go; rewards that are not finite and arms that do not exist are
    refused, without a trace; the state is plain data and tells the whole future; same seed, same choices; nothing becomes NaN in
    the long run.

    Args:
        factory: called as `factory(n_arms, rng=generator)`: a class, or `functools.partial(Class, parameter=...)`.
        seed: of the bandit's random stream and of the rewards.
    """

    def new(n_arms: int) -> Bandit:
        return factory(n_arms, rng=seeding.generator(seed, "bandit"))

    check_rules(type(new(2)).__name__, _RULES, new)


def _starts_empty(new: New) -> None:
    """A new bandit has n_arms arms without pulls and without means."""
    for n_arms in (1, 2, 5):
        bandit = new(n_arms)
        expect(bandit.n_arms == n_arms, f"n_arms is {bandit.n_arms!r} and not {n_arms}")
        _expect_shapes(bandit)
        _expect_empty(bandit, range(n_arms), "a new one")


def _only_looks(new: New) -> None:
    """`choose` and all that tells something change nothing; only `choose` may draw from the generator."""
    for rounds in (0, 1, 30):
        bandit = new(3)
        _play(bandit, rounds)
        before, generator = _state(bandit), seeding.state_of(bandit.rng)
        bandit.indices(), bandit.counts, bandit.means  # read, and leave no trace
        expect(_state(bandit) == before, f"indices(), counts or means changed it after {rounds} rounds")
        expect(seeding.state_of(bandit.rng) == generator, "indices(), counts or means drew from the generator")
        bandit.choose()
        expect(_state(bandit) == before, f"choose() changed it after {rounds} rounds")


def _keeps_to_among(new: New) -> None:
    """`choose` returns one of the arms, out of `among` where that is given."""
    bandit = new(4)
    for among in (None, [2], [0, 3], (1, 2), {3}, range(4)) * 10:
        arm = bandit.choose(among)
        expect(isinstance(arm, int | np.integer) and arm in (among or range(4)), f"choose({among}) returned {arm!r}")
        bandit.update(arm, 0.5)


def _rewards_its_arm(new: New) -> None:
    """A reward counts for its own arm alone, at once or late."""
    for late in (False, True):
        bandit = new(3)
        rounds = [(1, 0.25, bandit.pull(1)), (2, 0.75, bandit.pull(2))]
        for arm, reward, ticket in reversed(rounds) if late else rounds:
            bandit.update(arm, reward, pull=ticket)
        expect(np.isnan(bandit.means[0]), f"arm 0 has the mean {bandit.means[0]} without a pull")
        for arm, reward, _ in rounds:
            mean, count = bandit.means[arm], bandit.counts[arm]
            known = abs(mean - reward) < 1e-9 if count else np.isnan(mean)  # a short memory may have forgotten it
            expect(bool(known), f"arm {arm} has the mean {mean} with {count} pulls after the reward {reward}")
        before = _state(bandit)
        bandit.update(1, 1.0, pull=rounds[0][2])
        expect(_state(bandit) == before, "a second reward of the same round had an effect")
    bandit = new(3)
    _play(bandit, 60)
    arm = int(np.argmin(bandit.counts))
    for _ in range(60):
        bandit.pull(arm)
    expect(bandit.counts[arm] > 0, f"60 rounds in flight count as {bandit.counts[arm]} pulls")
    _expect_shapes(bandit)


def _withdraws(new: New) -> None:
    """`withdraw` undoes a pull: the round leaves no trace, and a later reward of it has no effect."""
    bandit = new(3)
    tickets = [bandit.pull(arm) for arm in (0, 2, 2)]
    for ticket in tickets:
        bandit.withdraw(ticket)
    _expect_empty(bandit, range(3), "one whose rounds were all withdrawn")
    before = _state(bandit)
    bandit.update(2, 1.0, pull=tickets[1])
    bandit.withdraw(tickets[2])
    expect(_state(bandit) == before, "a reward or a second withdrawal of a withdrawn round had an effect")
    ticket = bandit.pull(1)
    bandit.update(1, 0.5, pull=ticket)
    before = _state(bandit)
    bandit.withdraw(ticket)
    expect(_state(bandit) == before, "the withdrawal of a round that had its reward had an effect")


def _resets(new: New) -> None:
    """`reset` forgets all arms but those to keep, and every round in flight: a reward of such a round has no effect."""
    for keep in ((), (1,), (0, 2)):
        bandit = new(3)
        _play(bandit, 40)
        counts, means = bandit.counts, bandit.means
        tickets = [bandit.pull(arm) for arm in range(3)]
        bandit.reset(keep=keep)
        _expect_empty(bandit, sorted({0, 1, 2} - set(keep)), "one that was reset")
        for arm in keep:
            kept, before = bandit.counts[arm], counts[arm]
            expect(kept <= before, f"a kept arm has {kept} pulls after a reset and had {before} without its round in flight")
            expect(bool(kept > 0) or before < 4, f"a kept arm has no pulls after a reset and had {before}")
            same = (
                abs(bandit.means[arm] - means[arm]) <= 0.5
            )  # the three rounds in flight may have pushed old ones out of a window
            expect(bool(same) or not kept, f"a kept arm has the mean {bandit.means[arm]} after a reset and had {means[arm]}")
        before_late = _state(bandit)
        for arm, ticket in enumerate(tickets):
            bandit.update(arm, 1.0, pull=ticket)
        expect(_state(bandit) == before_late, "a reward that came after a reset had an effect")
        again = bandit.pull(0)
        expect(again not in tickets, f"the ticket {again} was handed out again after a reset")
    bandit = new(2)
    _play(bandit, 40)
    counts, means = bandit.counts, bandit.means
    bandit.reset(keep=[0, 1])
    expect(_same(bandit.counts, counts) and _same(bandit.means, means), "keeping all arms changed counts or means")


def _arms_come_and_go(new: New) -> None:
    """Arms can be added and removed: a new one is unplayed, those behind a removed one move up with all they know."""
    bandit = new(3)
    _play(bandit, 40)
    counts, means = bandit.counts, bandit.means
    bandit.add_arm()
    expect(bandit.n_arms == 4, f"n_arms is {bandit.n_arms} with one more than 3")
    _expect_empty(bandit, [3], "a new arm")
    expect(_same(bandit.counts[:3], counts) and _same(bandit.means[:3], means), "add_arm changed what is known of the others")
    _play(bandit, 40)
    tickets = [bandit.pull(arm) for arm in range(4)]
    counts, means = bandit.counts, bandit.means
    bandit.remove_arm(1)
    expect(bandit.n_arms == 3, f"n_arms is {bandit.n_arms} with one less than 4")
    stay = [0, 2, 3]
    expect(_same(bandit.counts, counts[stay]) and _same(bandit.means, means[stay]), "remove_arm mixed up the others")
    before = _state(bandit)
    bandit.update(1, 1.0, pull=tickets[1])
    expect(_state(bandit) == before, "the reward of a removed arm had an effect")
    bandit.update(2, 1.0, pull=tickets[3])  # pulled as arm 3, which has moved up
    expect(_same(bandit.means[:2], means[[0, 2]]), "the reward of an arm that moved up went to another arm")
    _play(bandit, 40)
    _expect_shapes(bandit)
    for arm in (-1, 3):
        expect_refused(bandit.remove_arm, arm)
    bandit.remove_arm(0)
    bandit.remove_arm(1)
    _play(bandit, 3)
    expect_refused(bandit.remove_arm, 0)  # the last one


def _refuses_nonsense(new: New) -> None:
    """Rewards that are not finite and arms that do not exist are refused, without a trace."""
    bandit = new(3)
    _play(bandit, 10)
    ticket = bandit.pull(0)
    before = _state(bandit)
    for reward in (float("nan"), float("inf"), -float("inf")):
        expect_refused(bandit.update, 1, reward)
        expect_refused(bandit.update, 0, reward, pull=ticket)
    for arm in (-1, 3):
        expect_refused(bandit.pull, arm)
        expect_refused(bandit.update, arm, 0.5)
    expect(_state(bandit) == before, "what it refused left a trace")
    for n_arms in (0, -1):
        expect_refused(new, n_arms)


def _saves_and_loads(new: New) -> None:
    """`state_dict` is plain data, and a bandit that loads it has the same future, rounds in flight included."""
    for rounds in (0, 1, 7, 100):
        bandit = new(4)
        _play(bandit, rounds)
        bandit.remove_arm(1)
        tickets = [bandit.pull(arm) for arm in range(3)]
        fresh, used = new(4), new(2)
        _play(used, 20)
        text, generator = _state(bandit), seeding.state_of(bandit.rng)
        future = _future(bandit, tickets)
        for twin, whose in ((fresh, "a new bandit"), (used, "a bandit that was used before")):
            twin.load_state_dict(json.loads(text))
            seeding.restore(twin.rng, generator)
            expect(_state(twin) == text, f"state_dict differs in {whose} that loaded it")
            expect(_future(twin, tickets) == future, f"the future after {rounds} rounds differs in {whose} that loaded it")


def _is_reproducible(new: New) -> None:
    """Same seed, same choices: all randomness comes from the generator passed in."""
    expect(_play(new(3), 150) == _play(new(3), 150), "two bandits with the same seed chose differently")


def _lasts(new: New) -> None:
    """In the long run counts stay finite, means stay within the rewards, indices never become NaN."""
    bandit = new(5)
    for _ in range(20):
        _play(bandit, 60)
        _expect_shapes(bandit)
    for reward in (0.0, 1.0):  # extremes only
        for _ in range(200):
            bandit.update(bandit.choose(), reward)
        _expect_shapes(bandit)


_RULES = (
    _starts_empty,
    _only_looks,
    _keeps_to_among,
    _rewards_its_arm,
    _withdraws,
    _resets,
    _arms_come_and_go,
    _refuses_nonsense,
    _saves_and_loads,
    _is_reproducible,
    _lasts,
)


def _play(bandit: Bandit, rounds: int) -> list[int]:
    """Rounds with up to three in flight at a time, some of them withdrawn; returns who was chosen. Larger arms are better."""
    rng = seeding.generator(rounds, "rewards")
    chosen, flying = [], []
    for _ in range(rounds):
        chosen.append(int(bandit.choose()))
        flying.append((chosen[-1], bandit.pull(chosen[-1])))
        while flying and rng.random() < 0.6:
            arm, ticket = flying.pop(int(rng.integers(len(flying))))
            if rng.random() < 0.1:
                bandit.withdraw(ticket)
            else:
                bandit.update(arm, rng.random() ** (1 / (arm + 1)), pull=ticket)
    for arm, ticket in flying:
        bandit.update(arm, float(rng.integers(2)), pull=ticket)
    return chosen


def _future(bandit: Bandit, tickets: list[int]) -> str:
    """All that follows once the rounds in flight have ended."""
    bandit.withdraw(tickets[0])
    bandit.update(2, 0.25, pull=tickets[2])
    told = {"chosen": _play(bandit, 60), "counts": bandit.counts.tolist(), "means": bandit.means.tolist()}
    return json.dumps(told) + _state(bandit)


def _state(bandit: Bandit) -> str:
    return json.dumps(bandit.state_dict())


def _same(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def _expect_empty(bandit: Bandit, arms: Any, which: str) -> None:
    counts, means = bandit.counts[list(arms)], bandit.means[list(arms)]
    expect(not counts.any() and bool(np.isnan(means).all()), f"{which} has counts {counts} and means {means}")


def _expect_shapes(bandit: Bandit) -> None:
    """Counts, means and indices have one entry per arm, and only such values as they may have."""
    columns = {"counts": bandit.counts, "means": bandit.means, "indices": bandit.indices()}
    for name, column in columns.items():
        shape = np.shape(column)
        expect(
            isinstance(column, np.ndarray) and shape == (bandit.n_arms,), f"{name} has shape {shape} with {bandit.n_arms} arms"
        )
    counts, means, indices = columns.values()
    expect(bool(np.isfinite(counts).all() and (counts >= 0).all()), f"counts are {counts}")
    known = means[~np.isnan(means)]
    expect(bool(((known >= -1e-9) & (known <= 1 + 1e-9)).all()), f"means are {means} with all rewards in [0, 1]")
    expect(not np.isnan(indices).any(), f"indices are {indices}")
