"""What `choose` and `retraining` do, for selectors and studies alike: functions of a new one
with epochs of 2, 4, ... choices.
"""

import math

import numpy as np
import pytest

from esbas.errors import ChoiceError, InvalidValueError

ARMS = ["rules", "small", "large"]


def selections(owner):
    return {arm: row["selections"] for arm, row in owner.explain().items()}


def open_of(owner):
    """The number of open choices, also of a study of a service."""
    return sum(int(row["open"]) for row in owner.explain().values())


def means(owner):
    return {arm: row["mean"] for arm, row in owner.explain().items() if not math.isnan(row["mean"])}


def a_value_is_told(owner):
    with owner.choose(among=["small"]) as choice:
        assert (choice.number, choice.arm, choice.epoch, choice.context, choice.propensity) == (
            1,
            "small",
            0,
            None,
            1.0,
        )
        assert choice.value is None
        choice.value = 0.25
        assert open_of(owner) == 1
        choice.value = np.float32(0.5)  # the last one counts
    assert choice.value == 0.5
    assert (open_of(owner), means(owner), selections(owner)["small"]) == (0, {"small": 0.5}, 1)


def fail(owner, error):
    with owner.choose() as choice:
        choice.value = 1.0  # set, but the episode failed afterwards
        raise error


def fail_to_retrain(owner, error):
    with owner.retraining() as epoch:
        assert epoch == 0
        raise error


def an_exception_withdraws_and_passes(owner):
    for error in (ZeroDivisionError("mine"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)) as caught:
            fail(owner, error)
        assert caught.value is error
        assert not hasattr(error, "__notes__")
    assert (open_of(owner), means(owner)) == (0, {})


def a_generator_that_is_closed_withdraws(owner):
    def episodes():
        with owner.choose() as choice:
            yield choice.arm
            choice.value = 1.0

    started = episodes()
    assert next(started) in ARMS
    assert open_of(owner) == 1
    started.close()
    assert (open_of(owner), means(owner)) == (0, {})


def a_block_without_a_value_is_an_error(owner):
    message = (
        r"^Choice 1 \('rules'\) was left without a value and is withdrawn: "
        "set `choice.value` in the `with` block"
    )
    with pytest.raises(ChoiceError, match=message), owner.choose(among=["rules"]):
        pass
    assert (open_of(owner), means(owner)) == (0, {})


def a_refused_value_is_withdrawn(owner):
    for value in (math.nan, math.inf, "many", "0.7", None, [1.0, 2.0]):
        with (
            pytest.raises(InvalidValueError, match="A value must be finite, but got"),
            owner.choose() as choice,
        ):
            choice.value = value
        assert (open_of(owner), means(owner)) == (0, {})
    with owner.choose(among=["rules"]) as choice:
        with pytest.raises(InvalidValueError, match="A value must be finite"):
            choice.value = math.nan
        choice.value = 0.0
    assert (open_of(owner), means(owner)) == (0, {"rules": 0.0})


def a_choice_can_be_withdrawn_in_the_block(owner):
    with owner.choose() as choice:
        choice.value = 3.0
        choice.withdraw()
        assert choice.value is None
        with pytest.raises(
            ChoiceError, match=r"Choice 1 .* has been told or withdrawn already: set its value, or"
        ):
            choice.value = 2.0
    assert (open_of(owner), means(owner)) == (0, {})


def an_object_is_for_one_block(owner):
    block = owner.choose()
    with pytest.raises(
        ChoiceError, match=r"The choice has not been made yet: write `with study\.choose"
    ):
        _ = block.arm
    with pytest.raises(ChoiceError, match="has not been made yet"):
        block.value = 1.0
    with block as choice:
        assert choice is block
        with (
            pytest.raises(ChoiceError, match="for one `with` block, but this one was used before"),
            block,
        ):
            pass
        choice.value = 1.0
    with pytest.raises(
        ChoiceError,
        match=r"for one `with` block, but this one was used before: call choose\(\) again",
    ):
        block.__enter__()
    with pytest.raises(ChoiceError, match=r"Choice 1 .* has been told or withdrawn already"):
        choice.value = 2.0
    with pytest.raises(ChoiceError, match=r"Choice 1 .* has been told or withdrawn already"):
        choice.withdraw()
    assert (choice.number, choice.value, sum(selections(owner).values()), open_of(owner)) == (
        1,
        1.0,
        1,
        0,
    )


def blocks_may_be_nested_and_end_in_any_order(owner):
    with owner.choose(among=["small"]) as outer:
        with owner.choose(among=["large"]) as inner:
            assert [outer.number, inner.number, open_of(owner)] == [1, 2, 2]
            inner.value = 1.0
        assert open_of(owner) == 1
        outer.value = 2.0
    assert (open_of(owner), means(owner)) == (0, {"small": 2.0, "large": 1.0})
    first = owner.choose(among=["rules"])
    second = owner.choose(among=["rules"])
    first.__enter__().value = 4.0
    second.__enter__().value = 6.0
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert (open_of(owner), means(owner)) == (0, {"rules": 5.0})  # of the second epoch


def a_mistyped_attribute_is_an_error(owner):
    with pytest.raises(AttributeError, match="valeu"), owner.choose() as choice:
        choice.valeu = 1.0
    assert open_of(owner) == 0


def bad_arguments_leave_nothing(owner):
    with (
        pytest.raises(ValueError, match="There is no arm named 'smal'"),
        owner.choose(among=["smal"]),
    ):
        pytest.fail("not entered")
    assert sum(selections(owner).values()) == 0


def an_epoch_is_ready_when_the_block_ends(owner):
    with owner.retraining() as epoch:
        assert epoch == 0
        with owner.retraining() as other:
            assert other is None
    with owner.retraining() as epoch:
        assert epoch is None
    for _ in range(2):
        with owner.choose() as choice:
            choice.value = 1.0
    with owner.retraining() as epoch:
        assert epoch == 1
        with owner.choose() as choice:  # belongs to the old epoch meanwhile
            choice.value = 1.0
        assert choice.epoch == 0
    with owner.choose() as choice:
        choice.value = 1.0
    assert choice.epoch == 1


def a_failed_retraining_releases_the_epoch(owner):
    for error in (ZeroDivisionError("mine"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            fail_to_retrain(owner, error)
        assert caught.value is error
        assert not hasattr(error, "__notes__")
    with owner.retraining() as epoch:
        assert epoch == 0
    with pytest.raises(ZeroDivisionError), owner.retraining():  # nothing is due
        raise ZeroDivisionError


def a_retraining_that_is_no_longer_claimed_is_an_error(owner):
    with pytest.raises(ValueError, match="must be claimed") as caught, owner.retraining() as epoch:
        owner.release_epoch(epoch)
    assert not hasattr(caught.value, "__notes__")
    assert owner.claim_epoch() == 0


def a_retraining_is_for_one_block(owner):
    block = owner.retraining()
    with block:
        pass
    with pytest.raises(
        InvalidValueError,
        match=r"for one `with` block, but this one was used before: call retraining\(\)",
    ):
        block.__enter__()


def reprs_are_short(owner):
    block = owner.choose(among=["small"])
    retraining = owner.retraining()
    kind = type(block).__name__
    assert [repr(block), repr(retraining)] == [
        f"<{kind}, not made yet>",
        "<Retraining, not claimed yet>",
    ]
    with retraining, block:
        assert [repr(block), repr(retraining)] == [
            f"<{kind} 1: 'small', open>",
            "<Retraining of epoch 0>",
        ]
        block.value = 2.5
    assert repr(block) == f"<{kind} 1: 'small', closed, value 2.5>"
    with owner.retraining() as epoch:
        assert epoch is None


RULES = [
    a_value_is_told,
    an_exception_withdraws_and_passes,
    a_generator_that_is_closed_withdraws,
    a_block_without_a_value_is_an_error,
    a_refused_value_is_withdrawn,
    a_choice_can_be_withdrawn_in_the_block,
    an_object_is_for_one_block,
    blocks_may_be_nested_and_end_in_any_order,
    a_mistyped_attribute_is_an_error,
    bad_arguments_leave_nothing,
    an_epoch_is_ready_when_the_block_ends,
    a_failed_retraining_releases_the_epoch,
    a_retraining_that_is_no_longer_claimed_is_an_error,
    a_retraining_is_for_one_block,
    reprs_are_short,
]
