"""ESBAS: the starts of epochs, the statistics of its bandits, and late values."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas import ESBAS, UCB1
from esbas.errors import InvalidValueError, UnknownNameError

TABLE = {"a": 1.0, "b": 0.5, "c": 0.0}


def play(selector, rounds, value=lambda choice: TABLE[choice.arm], starts=None):
    """Return the choices; append the numbers of those that start an epoch to `starts`."""
    choices = []
    for _ in range(rounds):
        epoch = selector.claim_epoch()
        if epoch is not None:
            selector.epoch_ready(epoch)
        choices.append(selector.ask())
        if epoch is not None and starts is not None:
            starts.append(choices[-1].number)
        selector.tell(choices[-1], value(choices[-1]))
    return choices


def test_epochs_have_the_lengths_1_2_4():
    starts = []
    choices = play(ESBAS("abc"), 31, starts=starts)
    assert [choice.epoch for choice in choices] == [0] + [1] * 2 + [2] * 4 + [3] * 8 + [4] * 16
    assert starts == [1, 2, 4, 8, 16]


def test_the_dialogue_schedule_doubles_after_its_end():
    starts = []
    play(ESBAS("abc", epochs=[20, 20, 40]), 20 * 2**8, starts=starts)
    assert starts == [1, 21, *(20 * 2**k + 1 for k in range(1, 8))]


@pytest.mark.parametrize("epochs", [[], [0], [5, -1], [1.5], ["20"]])
def test_bad_epochs_are_refused(epochs):
    with pytest.raises(
        InvalidValueError, match="`epochs` must be a list of positive whole numbers"
    ):
        ESBAS("ab", epochs=epochs)


def test_one_epoch_by_hand():
    # Epoch 3 has 8 choices: each of the 3 arms once, then the largest index; a has the mean 1, b
    # 1/2, c 0. n = 3: a 1 + sqrt(ln 3 / 4) = 1.5241, b 0.5 + sqrt(ln 3 / 4) = 1.0241 -> a n = 4: a
    # 1 + sqrt(ln 4 / 8) = 1.4163, b 0.5 + sqrt(ln 4 / 4) = 1.0887 -> a n = 5: a 1 + sqrt(ln 5 / 12)
    # = 1.3662, b 0.5 + sqrt(ln 5 / 4) = 1.1343 -> a n = 6: a 1 + sqrt(ln 6 / 16) = 1.3346, b 0.5 +
    # sqrt(ln 6 / 4) = 1.1693 -> a n = 7: a 1 + sqrt(ln 7 / 20) = 1.3119, b 0.5 + sqrt(ln 7 / 4) =
    # 1.1975 -> a
    choices = play(ESBAS("abc", scale=None), 15)
    assert "".join(choice.arm for choice in choices) == "a" + "ab" + "abca" + "abcaaaaa"


def test_every_epoch_starts_with_a_fresh_bandit():
    selector = ESBAS("abc", scale=None)
    play(selector, 7)
    assert selector.explain()["a"]["pulls"] == 2
    selector.epoch_ready(selector.claim_epoch())
    choice = selector.ask()
    report = selector.explain()
    assert [report[arm]["pulls"] for arm in "abc"] == [1, 0, 0]
    assert all(math.isnan(report[arm]["mean"]) for arm in "abc")
    assert [report[arm]["selections"] for arm in "abc"] == [5, 2, 1]
    selector.tell(choice, 1.0)
    assert selector.explain()["a"]["mean"] == 1.0


def test_a_stationary_arm_keeps_its_count_and_its_mean():
    selector = ESBAS("ab", scale=None, epochs=[4, 4], stationary=["b"])
    values = iter([1.0, 0.5, 0.75])
    first = play(selector, 4, lambda choice: next(values) if choice.arm == "b" else 0.0)
    assert "".join(choice.arm for choice in first) == "abbb"
    assert (selector.explain()["b"]["pulls"], selector.explain()["b"]["mean"]) == (3, 0.75)
    selector.epoch_ready(selector.claim_epoch())
    choice = selector.ask()  # the second epoch: a is unplayed
    report = selector.explain()
    assert choice.arm == "a"
    assert (report["a"]["pulls"], report["b"]["pulls"]) == (1, 3)
    assert report["b"]["mean"] == 0.75
    # n = 4 includes the kept pulls
    assert report["b"]["bonus"] == pytest.approx(math.sqrt(0.25 * math.log(4) / 3))


@pytest.mark.parametrize("stationary", [[], ["a"], ["a", "b"]])
def test_a_late_value_never_reaches_the_next_epochs_bandit(stationary):
    selector = ESBAS("ab", scale=None, epochs=[2, 10], stationary=stationary)
    late = [selector.ask(), selector.ask()]  # the whole first epoch
    selector.tell(selector.ask(among=["b"]), 0.25)  # the second epoch has started
    before = selector.explain()
    for choice in late:
        selector.tell(choice, 1e6)
    after = selector.explain()
    for arm in "ab":
        for key in ("pulls", "mean", "bonus", "index", "selections"):
            assert after[arm][key] == pytest.approx(before[arm][key], nan_ok=True)
        assert (before[arm]["late"], after[arm]["late"]) == (0, 1)
        assert after[arm]["open"] == 0
    assert (after["a"]["pulls"], after["b"]["pulls"]) == (0, 1)


def test_a_late_withdrawal_changes_nothing_but_the_open_choices():
    selector = ESBAS("ab", scale=None, epochs=[2, 10])
    late = [selector.ask(), selector.ask()]
    selector.tell(selector.ask(among=["b"]), 0.25)
    before = selector.explain()["b"]
    selector.withdraw(late[1])
    assert selector.explain()["b"] == pytest.approx(before | {"open": 0})


@given(
    st.lists(st.sampled_from(["ask", "tell", "withdraw"]), min_size=1, max_size=80),
    st.sampled_from([None, [3, 3], [20, 20, 40]]),
    st.sampled_from([(), ("b",), ("a", "c")]),
    st.randoms(use_true_random=False),
)
def test_the_bandit_has_the_values_of_its_epoch_and_timely_values_of_stationary_arms(
    actions, epochs, stationary, random
):
    """Pulls and means cover the current epoch, and for stationary arms also earlier ones."""
    selector = ESBAS("abc", epochs=epochs, stationary=stationary)
    opened = []
    finished = []
    epoch = 0
    for action in actions:
        if action == "ask" or not opened:
            opened.append(selector.ask())
            epoch = opened[-1].epoch
        elif action == "tell":
            choice = opened.pop(random.randrange(len(opened)))
            value = float(random.randrange(16))
            selector.tell(choice, value)
            finished.append((choice, value, choice.epoch == epoch))
        else:
            selector.withdraw(opened.pop(random.randrange(len(opened))))
    report = selector.explain()
    for arm in "abc":
        mine = [
            (choice, value) for choice, value, in_time in finished if choice.arm == arm and in_time
        ]
        known = [value for choice, value in mine if choice.epoch == epoch or arm in stationary]
        flying = sum(choice.arm == arm and choice.epoch == epoch for choice in opened)
        assert report[arm]["pulls"] == len(known) + flying
        assert report[arm]["mean"] == pytest.approx(
            sum(known) / len(known) if known else math.nan, nan_ok=True
        )
        assert report[arm]["late"] == sum(
            choice.arm == arm and not in_time for choice, _, in_time in finished
        )


def test_open_choices_count_as_pulls():
    selector = ESBAS("abc", epochs=[100])
    asked = [selector.ask() for _ in range(5)]
    assert (
        "".join(choice.arm for choice in asked) == "abcab"
        # no values yet: means are equal, so the arm with the fewest pulls is next, and the first of
        # equals
    )
    assert [selector.explain()[arm]["pulls"] for arm in "abc"] == [2, 2, 1]
    assert [selector.explain()[arm]["open"] for arm in "abc"] == [2, 2, 1]


def test_another_bandit_can_be_used_inside():
    selector = ESBAS("abc", bandit=partial(UCB1, xi=0), epochs=[50])
    choices = play(selector, 50)
    assert [choice.arm for choice in choices[3:]] == ["a"] * 47
    with pytest.raises(
        InvalidValueError, match=r"Give `xi` or `bandit`, not both: .*UCB1, xi=...\)"
    ):
        ESBAS("abc", bandit=UCB1, xi=0.5)


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidValueError, match="`xi` must be finite and at least 0, but got -1"):
        ESBAS("ab", xi=-1)
    with pytest.raises(UnknownNameError, match="There is no arm named 'dqm': did you mean 'dqn'"):
        ESBAS(["dqn", "sarsa"], stationary=["dqm"])
