import doctest

import pytest

from esbas import errors


def test_a_condition_that_does_not_hold_raises_its_sentence():
    with pytest.raises(errors.InvalidValueError, match=r"^`xi` must be at least 0, but got -1\.$"):
        errors.require(False, "`xi` must be at least 0, but got -1.")
    errors.require(True, "`xi` must be at least 0, but got 1.")


def test_the_nearest_name_is_suggested():
    error = errors.unknown("arm", "dqm", ["dqn", "sarsa"])
    assert str(error) == "There is no arm named 'dqm': did you mean 'dqn'?"
    assert (
        str(errors.unknown("arm", "zzz", ["dqn", "sarsa"]))
        == "There is no arm named 'zzz': choose one of 'dqn', 'sarsa'."
    )
    assert str(errors.unknown("arm", "zzz", [])) == "There is no arm named 'zzz': there are none."
    assert (
        str(errors.unknown("arm", "zzz", ["dqn"], "look them up"))
        == "There is no arm named 'zzz': look them up."
    )


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("ucb", ["ducb", "ucbtuned", "ucb1", "ucbv"], "ucb1"),  # the shortest that starts with it
        ("UCB", ["ducb", "ucb1"], "ucb1"),
        ("sac", ["sb3.sac", "sad"], "sb3.sac"),  # after a dot
        ("saac", ["sb3.td3", "sac"], "sac"),
    ],
)
def test_completions_are_suggested_before_similar_names(name, known, nearest):
    assert str(errors.unknown("arm", name, known)).endswith(f"did you mean {nearest!r}?")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidValueError, ValueError),
        (errors.UnknownNameError, KeyError),
        (errors.UnknownNameError, ValueError),
        (errors.ChoiceError, ValueError),
        (errors.SpaceError, TypeError),
        (errors.SpaceError, ValueError),
        (errors.NotEpisodicError, RuntimeError),
        (errors.TimeLimitError, TimeoutError),
        (errors.IsolationError, RuntimeError),
        (errors.SaveFileError, ValueError),
        (errors.MissingExtraError, ImportError),
        (errors.ContractError, AssertionError),
    ],
)
def test_each_error_is_also_the_builtin_that_a_caller_expects(kind, builtin):
    assert issubclass(kind, errors.EsbasError)
    assert issubclass(kind, builtin)


def test_the_docstring_examples_are_correct():
    assert doctest.testmod(errors, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed == 0
