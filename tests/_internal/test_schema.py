"""Plain data that is read back has the right shape, or one sentence says where it does not."""

import itertools
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from esbas._internal import schema
from esbas._internal.schema import COUNT, AnyOf, ArrayOf, Number
from esbas.errors import InvalidValueError

GOOD = [
    (1, int),
    (-(2**63) + 1, int),
    (1, float),
    (1.5, float),
    ("a", str),
    (True, bool),
    (None, None),
    ("run", "run"),
    ([1, 2], [int]),
    ((1, "a"), (int, str)),
    ({"a": {"b": [1.5]}}, {"a": {"b": [float]}}),
    ({"x": 1, "y": 2}, {str: COUNT}),
    ({}, {str: COUNT}),
    ([], [COUNT]),
    (None, AnyOf(None, COUNT)),
    (3, AnyOf(None, COUNT)),
    ({"any": [None, float("nan"), 10**100, np.arange(3)]}, Any),
    (2**100, Number(max=2**128, whole=True)),
    (np.arange(3), ArrayOf("iu", (None,))),
    (np.zeros((2, 3)), ArrayOf("f", (2, None))),
]
BAD = [
    (True, int, "be a whole number, but got True"),
    (1.0, int, "be a whole number, but got 1.0"),
    (2**63, int, "be a whole number, but got 9223372036854775808"),
    (10**5000, int, "be a whole number, but got an integer of more than 60 digits"),
    (10**400, float, "be a finite number, but got an integer"),
    (float("nan"), float, "be a finite number, but got nan"),
    (float("inf"), Number(min=0), "be a finite number >= 0, but got inf"),
    (-1, COUNT, "be a whole number >= 0, but got -1"),
    (5, Number(min=1, max=4, whole=True), "be a whole number >= 1 and <= 4, but got 5"),
    (1, bool, "be true or false, but got 1"),
    (None, str, "be text, but got None"),
    ("study", "run", "be 'run', but got 'study'"),
    ("x" * 1000, float, "be a finite number, but got '" + "x" * 60 + "...'"),
    (
        {"a": [[1, 2], [3, "4"]]},
        {"a": [(int, int)]},
        r"have a whole number at `a\[1\]\[1\]`, but got '4'",
    ),
    ({"a": 1}, {"a": int, "b": int}, "have the keys a, b, but got 'a'"),
    ({"a": 1, "c": 2}, {"a": int}, "have the keys a, but got 'a, c'"),
    ({1: 2}, {str: int}, "be a dictionary with text as keys"),
    ([1, 2, 3], (int, int), r"be a list of length 2, but got \[1, 2, 3\]"),
    ("ab", [str], "be a list, but got 'ab'"),
    (object(), Number(), "be a finite number, but got a value of type object"),
    ("no", AnyOf(None, COUNT), "be None or a whole number >= 0, but got 'no'"),
    ({"a": -1}, AnyOf(None, {"a": COUNT}), "have a whole number >= 0 at `a`, but got -1"),
    ([1], ArrayOf("f", (None,)), r"be an array of kind 'f' and shape \(any,\), but got \[1\]"),
    (np.arange(3), ArrayOf("f", (None,)), "be an array of kind"),
    (np.zeros(3), ArrayOf("f", (2,)), "be an array of kind"),
]


@pytest.mark.parametrize(("value", "shape"), GOOD, ids=map(str, itertools.count()))
def test_data_of_the_shape_passes(value, shape):
    schema.check(value, shape, "the state")


@pytest.mark.parametrize(("value", "shape", "message"), BAD, ids=map(str, itertools.count()))
def test_other_data_is_refused_with_place_rule_and_value(value, shape, message):
    with pytest.raises(InvalidValueError, match=f"^The state must {message}") as caught:
        schema.check(value, shape, "the state")
    assert str(caught.value).endswith(": go back to an earlier copy.")
    assert len(str(caught.value)) < 500


def nested(depth, leaf=1):
    value = leaf
    for _ in range(depth):
        value = [value]
    return value


def test_deep_nesting_is_refused():
    schema.check(nested(schema.MAX_DEPTH - 1), Any, "it")
    with pytest.raises(InvalidValueError, match="at most 64 nested levels"):
        schema.check(nested(50_000), Any, "it")


def test_keys_of_any_text_stay_on_one_line():
    with pytest.raises(InvalidValueError) as caught:
        schema.check({"a\n\ud800": "x"}, {str: int}, "it")
    assert str(caught.value).isprintable()


def test_a_record_gives_the_shape_of_its_state():
    @dataclass
    class Record:
        pulls: schema.NonNegative = 0
        seen: schema.Count = 0
        mean: float = 0.0
        done: bool = False
        other: "list[float]" = ()

    shape = schema.fields_of(Record)
    good = {"pulls": 0.5, "seen": 1, "mean": -1, "done": True, "other": [1]}
    schema.check(good, shape, "it")
    for wrong in ({"pulls": -0.5}, {"seen": 0.5}, {"mean": "1"}, {"done": 1}):
        with pytest.raises(InvalidValueError):
            schema.check(good | wrong, shape, "it")


@pytest.mark.parametrize("value", [True, 1, 1.5, "a", {"a": 1}, [1]])
def test_like_accepts_values_of_the_same_type_alone(value):
    schema.check(value, schema.like(value), "it")
    for other in (
        "text" if value != "a" else 1,
        None,
        [None] if not isinstance(value, list) else {},
    ):
        with pytest.raises(InvalidValueError):
            schema.check(other, schema.like(value), "it")


def test_json_is_parsed():
    value = {"a": [1, -2.5e300, None, True, "x", 2**100]}
    assert schema.read_json(json.dumps(value), "it") == value
    assert schema.read_json(json.dumps(value).encode(), "it") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff\xfe\x00",
        "9" * 5_000,
        "[0." + "1" * 5_000 + "]",
        "-" + "9" * 10_000_000,
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=map(str, itertools.count()),
)
def test_text_that_is_not_harmless_json_is_refused_quickly(text):
    start = time.monotonic()
    with pytest.raises(
        InvalidValueError, match=r"^The file must be JSON, but .*: go back to an earlier copy\.$"
    ) as caught:
        schema.read_json(text, "the file")
    assert len(str(caught.value)) < 500
    assert time.monotonic() - start < 60


LONG = [
    [1] * 200,
    [1.5] * 200,
    [1, 1.5] * 100,
    [None, 1.5] * 100,
    ["a"] * 200,
    [True] * 200,
    [[1]] * 200,
    [-1] * 200,
]
ODD = [1.5, float("nan"), float("inf"), True, None, "a", 2**70, -1, [1], {"a": 1}, np.float64(1)]


@pytest.mark.parametrize(
    "item",
    [int, float, str, bool, COUNT, Number(min=0), Number(finite=False), AnyOf(float, None), Any],
)
def test_long_lists_are_checked_as_each_of_their_items(item):
    def fits(value, shape):
        try:
            schema.check(value, shape, "it")
        except InvalidValueError:
            return False
        return True

    for values in [*LONG, *([*long, odd] for long in LONG for odd in ODD)]:
        assert fits(values, [item]) == all(fits(value, item) for value in values), values[-2:]
