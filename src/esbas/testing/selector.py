"""Checks the contract of a selector."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from esbas import seeding
from esbas.errors import ChoiceError
from esbas.selectors import Choice, Selector
from esbas.testing.contract import check_rules, expect, expect_refused

New = Callable[[list[str], int], Selector]
"""Builds a selector with these arms; the number chooses its random stream."""

ARMS = ["first", "second", "third"]


def check_selector(factory: Callable[..., Selector], *, seed: int = 0) -> None:
    """Raise a ContractError unless the selector keeps the contract of `esbas.Selector`.

    The rules: `ask` returns numbered tokens with the propensity of their arm; each is told or
    withdrawn once, in any order, with several open at a time, also after a round trip through JSON;
    other tokens and values that are not finite are refused without a trace; an epoch that is due is
    claimed by one caller, and starts when it is ready; `among` is respected; arms can be added and
    removed; reading does not change the selector; the state is plain data and determines everything
    that follows; same seed, same choices.

    Args:
        factory: called as `factory(arms, seed=...)`: a class, or `functools.partial(Class,
            parameter=...)`. The arms are "first", "second" and "third", or "first" alone.
        seed: seed of the selector's random stream and of the values.
    """

    def new(arms: list[str], stream: int = 0) -> Selector:
        return factory(arms, seed=seed + stream)

    check_rules(type(new(ARMS)).__name__, _RULES, new)


def _knows_its_arms(new: New) -> None:
    """A selector has the arms it was given: at least one, with different names."""
    for arms in (ARMS[:1], ARMS):
        selector = new(arms, 0)
        expect(selector.arms == tuple(arms), f"arms is {selector.arms} for {arms}")
        expect(selector.number == 0, f"number is {selector.number} before the first choice")
        expect(
            set(selector.explain()) == set(arms),
            f"explain() reports {set(selector.explain())} for {arms}",
        )
    expect_refused(new, [], 0)
    expect_refused(new, ["same", "same"], 0)


def _ask(selector: Selector, **keywords: Any) -> Choice:
    """Ask as the loop does: an epoch that is due is claimed and starts, and there is a context."""
    epoch = selector.claim_epoch()
    if epoch is not None:
        selector.epoch_ready(epoch)
    return selector.ask(context=(0.5, -1.0), **keywords)


def _numbers_its_tokens(new: New) -> None:
    """Choices are numbered from 1, and have an arm, the current epoch and a propensity.

    The propensity is in (0, 1], or None.
    """
    selector = new(ARMS, 0)
    epoch = 0
    for number in range(1, 65):
        choice = _ask(selector)
        expect(
            choice.number == number == selector.number,
            f"choice {number} has number {choice.number}",
        )
        expect(choice.arm in selector.arms, f"the arm {choice.arm!r} is not one of {selector.arms}")
        expect(epoch <= choice.epoch <= epoch + 1, f"epoch {epoch} was followed by {choice.epoch}")
        fits = choice.propensity is None or 0 < choice.propensity <= 1
        expect(fits, f"choice {number} has the propensity {choice.propensity!r}")
        epoch = choice.epoch
        selector.tell(choice, _value(choice))


def _starts_epochs(new: New) -> None:
    """Epochs follow one another, and one caller claims the one that is due.

    The old epoch continues until the new one is ready.
    """
    selector = new(ARMS, 0)
    if selector.online:
        for _ in range(5):
            expect(
                selector.claim_epoch() is None, "an online selector has no epochs, but one was due"
            )
            choice = selector.ask(context=(0.5, -1.0))
            selector.tell(choice, _value(choice))
        return
    following = 0
    for number in range(40):
        epoch = selector.claim_epoch()
        if epoch is not None:
            expect(epoch == following, f"epoch {epoch} was due where epoch {following} follows")
            following += 1
            expect(selector.claim_epoch() is None, f"epoch {epoch} was claimed twice")
            if number % 3 == 0:
                selector.release_epoch(epoch)
                again = selector.claim_epoch()
                expect(again == epoch, f"after epoch {epoch} was released, {again} was due")
            old = selector.ask(context=(0.5, -1.0))
            expect(
                old.epoch <= epoch,
                f"a choice before epoch {epoch} was ready belongs to epoch {old.epoch}",
            )
            expect_refused(selector.epoch_ready, epoch + 1)
            selector.epoch_ready(epoch)
            expect_refused(selector.epoch_ready, epoch)
            selector.tell(old, _value(old))  # late
        choice = selector.ask(context=(0.5, -1.0))
        expect(
            epoch is None or choice.epoch == epoch,
            f"the first choice of epoch {epoch} belongs to epoch {choice.epoch}",
        )
        selector.tell(choice, _value(choice))


def _closes_once(new: New) -> None:
    """Each choice is told or withdrawn once, in any order; others are refused without a trace.

    Several choices may be open at a time.
    """
    selector = new(ARMS, 0)
    choices = [_ask(selector) for _ in range(7)]
    expect(
        selector.open_choices == tuple(choices),
        f"open_choices is {selector.open_choices} after {choices}",
    )
    for choice in (choices[4], choices[0], choices[6]):
        selector.tell(Choice(**json.loads(json.dumps(asdict(choice)))), _value(choice))
    selector.withdraw(choices[2])
    still_open = (choices[1], choices[3], choices[5])
    expect(
        selector.open_choices == still_open,
        f"open_choices is {selector.open_choices} where {still_open} are open",
    )
    before = _state(selector)
    never = replace(choices[1], number=1000)
    other_arms = [arm for arm in ARMS if arm != choices[1].arm]
    wrong_arm = replace(choices[1], arm=other_arms[0])
    for choice in (choices[4], choices[2], never, wrong_arm):
        expect_refused(selector.tell, choice, 0.5, by=ChoiceError)
        expect_refused(selector.withdraw, choice, by=ChoiceError)
    for value in (math.nan, math.inf, -math.inf):
        expect_refused(selector.tell, choices[1], value)
    expect(_state(selector) == before, "what it refused left a trace")
    for choice in still_open:
        selector.tell(choice, _value(choice))


def _keeps_to_among(new: New) -> None:
    """`ask` chooses one of `among` if that is given, and refuses unknown arms and an empty list."""
    selector = new(ARMS, 0)
    for among in (None, ["second"], ["third", "first"], ("second", "third"), {"first"}) * 10:
        choice = _ask(selector, among=among)
        expect(choice.arm in (among or ARMS), f"ask(among={among}) chose {choice.arm!r}")
        selector.tell(choice, _value(choice))
    before = _state(selector)
    expect_refused(selector.ask, among=[], context=(0.5, -1.0))
    expect_refused(selector.ask, among=["unknown"], context=(0.5, -1.0))
    expect(_state(selector) == before, "what it refused left a trace")


def _arms_come_and_go(new: New) -> None:
    """Arms can be added and removed; open choices of a removed arm are told without effect."""
    selector = new(ARMS, 0)
    _play(selector, 20)
    selector.add_arm("fourth")
    expect(selector.arms == (*ARMS, "fourth"), f"arms is {selector.arms} after add_arm('fourth')")
    expect_refused(selector.add_arm, "fourth")
    opened = [_ask(selector, among=[arm]) for arm in ("second", "fourth", "second")]
    selector.remove_arm("second")
    expect(
        selector.arms == ("first", "third", "fourth"),
        f"arms is {selector.arms} after remove_arm('second')",
    )
    for choice in opened[:2]:
        selector.tell(choice, 0.5)
    selector.withdraw(opened[2])
    chosen = _play(selector, 30)
    expect(set(chosen) <= set(selector.arms), f"a removed arm was chosen: {chosen}")
    expect_refused(selector.remove_arm, "second")
    selector.add_arm("second")
    _play(selector, 10)
    for arm in ("first", "third", "second"):
        selector.remove_arm(arm)
    expect(set(_play(selector, 5)) == {"fourth"}, "the last arm was not chosen")
    expect_refused(selector.remove_arm, "fourth")


def _explains(new: New) -> None:
    """`explain` reports selections, open choices and late values by arm, and changes nothing."""
    selector = new(ARMS, 0)
    chosen = _play(selector, 33)
    opened = [_ask(selector) for _ in range(3)]
    before = _state(selector)
    report = selector.explain()
    expect(_state(selector) == before, "explain() changed it")
    for arm in ARMS:
        row = report[arm]
        numbers = all(isinstance(value, int | float) for value in row.values())
        expect(
            numbers and {"selections", "open", "late"} <= set(row),
            f"explain() reports {row} for {arm!r}",
        )
        flying = [choice.arm for choice in opened].count(arm)
        expect(
            row["open"] == flying,
            f"explain() reports {row['open']} open choices of {arm!r}, which has {flying}",
        )
        selections = chosen.count(arm) + flying
        expect(
            row["selections"] == selections,
            f"explain() reports {row['selections']} selections, but {arm!r} had {selections}",
        )


def _saves_and_loads(new: New) -> None:
    """`state_dict` is plain data, and a selector that loads it continues in the same way.

    It has the same open choices, too.
    """
    for rounds in (0, 1, 6, 50):
        selector = new(ARMS, 0)
        _play(selector, rounds)
        selector.add_arm(f"number {rounds}")
        opened = [_ask(selector) for _ in range(3)]
        fresh = new(ARMS, 1)
        used = new(ARMS, 1)
        _play(used, 20)
        text = _state(selector)
        future = _future(selector, opened)
        for twin, whose in ((fresh, "a new selector"), (used, "a selector that was used before")):
            twin.load_state_dict(json.loads(text))
            expect(_state(twin) == text, f"state_dict differs in {whose} that loaded it")
            expect(
                _future(twin, opened) == future,
                f"the future after {rounds} choices differs in {whose} that loaded it",
            )


def _is_reproducible(new: New) -> None:
    """Same seed, same choices."""
    expect(
        _play(new(ARMS, 0), 100) == _play(new(ARMS, 0), 100),
        "two selectors with the same seed chose differently",
    )


_RULES = (
    _knows_its_arms,
    _numbers_its_tokens,
    _starts_epochs,
    _closes_once,
    _keeps_to_among,
    _arms_come_and_go,
    _explains,
    _saves_and_loads,
    _is_reproducible,
)


def _value(choice: Choice) -> float:
    """Return some value of any size and sign; the longer the arm's name, the better."""
    return len(choice.arm) * 10 + float(seeding.generator(choice.number, "value").normal()) * 30


def _play(selector: Selector, rounds: int) -> list[str]:
    """Ask and close choices, several of them open at a time. Return the arms chosen."""
    rng = seeding.generator(rounds, "order")
    chosen: list[str] = []
    opened: list[Choice] = []
    for _ in range(rounds):
        choice = _ask(selector)
        opened.append(choice)
        chosen.append(choice.arm)
        while opened and rng.random() < 0.6:
            choice = opened.pop(int(rng.integers(len(opened))))
            if rng.random() < 0.1:
                selector.withdraw(choice)
            else:
                selector.tell(choice, _value(choice))
    for choice in opened:
        selector.tell(choice, _value(choice))
    return chosen


def _future(selector: Selector, opened: list[Choice]) -> tuple[Any, ...]:
    """Return all that follows once the open choices are closed."""
    selector.withdraw(opened[1])
    selector.tell(opened[2], 3.0)
    selector.tell(opened[0], -3.0)
    return _play(selector, 60), _state(selector)


def _state(selector: Selector) -> str:
    return json.dumps(selector.state_dict())
