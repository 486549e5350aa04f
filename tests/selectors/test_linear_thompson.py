"""Linear Thompson sampling: by hand, against brute force, and on a task with contexts.

In this task, only the context distinguishes the arms.
"""

import copy
import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas import LinearThompson
from esbas.errors import InvalidValueError

EXAMPLE = Path(__file__).parents[2] / "examples" / "contextual.py"
HISTORY = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-8, 8), st.integers(-50, 50)), max_size=25
)


class NoNoise:
    """A generator whose normal numbers are all equal."""

    def __init__(self, value):
        self.value = value

    def standard_normal(self, size):
        return np.full(size, self.value)


def test_a_choice_by_hand():
    # One feature, 1, and λ = 1. Arm a has the values 1 and 3, b has 5: mean 3, variance (4 + 0 + 4)
    # / 3, deviation 1.63299.
    # Standardized: a -1.22474 and 0, b 1.22474. a: A = 3, b = -1.22474, θ = -0.40825; b: A = 2, b =
    # 1.22474, θ = 0.61237.
    # Residuals with the prior's one: 1 + (1.5 - 0.5) + (1.5 - 0.75) = 2.75 over 1 + 3 values: s =
    # 0.82916.
    # With all normal numbers -1: a -0.40825 - 0.82916 / √3 = -0.88696, b 0.61237 - 0.82916 / √2 =
    # 0.02606, c -0.82916.
    selector = LinearThompson("abc", features=lambda context: [1.0])
    for arm, value in (("a", 1.0), ("a", 3.0), ("b", 5.0)):
        selector.tell(selector.ask(among=[arm], context=()), value)
    selector.rng = NoNoise(-1.0)
    assert selector.ask(context=()).arm == "b"
    assert selector.ask(context=(), among=["a", "c"]).arm == "c"
    selector.rng = NoNoise(0.0)
    assert selector.ask(context=(), among=["a", "c"]).arm == "c"  # 0 is above -0.40825
    selector.rng = NoNoise(3.0)  # a 1.02788, b 2.37131, c 2.48748: what is unknown may be best
    assert selector.ask(context=()).arm == "c"


def sampled(history, context, draws):
    """Return the samples of all arms from the whole history.

    They are those of least squares with a ridge of 1 on standardized values.
    """
    values = np.array([value for _, _, value in history], float)
    mean, deviation = (values.mean(), values.std()) if len(values) else (0.0, 1.0)
    deviation = deviation if deviation > 0 else 1.0
    squares = 1.0
    fits = {}
    for arm in "abc":
        mine = [(x, y) for name, x, y in history if name == arm]
        phi = np.array([[1.0, x] for x, _ in mine]).reshape(-1, 2)
        y = (np.array([y for _, y in mine], float) - mean) / deviation
        precision = np.eye(2) + phi.T @ phi
        theta = np.linalg.inv(precision) @ phi.T @ y
        fits[arm] = precision, theta
        # the ridge counts as data at 0
        squares += float(((y - phi @ theta) ** 2).sum() + theta @ theta)
    noise = math.sqrt(squares / (1 + len(history)))
    samples = {}
    for (arm, (precision, theta)), draw in zip(fits.items(), draws, strict=True):
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        samples[arm] = float((theta + noise * root @ draw) @ [1.0, context])
    return samples


@given(HISTORY, st.integers(-8, 8), st.integers(0, 1000))
def test_choices_equal_brute_force_on_the_whole_history(history, context, seed):
    selector = LinearThompson("abc", seed=seed)
    for arm, x, value in history:
        selector.tell(selector.ask(among=[arm], context=[x]), float(value))
    draws = copy.deepcopy(selector.rng).standard_normal(6).reshape(3, 2)
    samples = sampled(history, context, draws)
    chosen = selector.ask(context=[context]).arm
    assert samples[chosen] == pytest.approx(max(samples.values()), rel=1e-6, abs=1e-9)


@given(HISTORY, st.integers(-20, 20), st.integers(-1000, 1000))
def test_the_unit_of_the_values_does_not_matter(history, power, shift):
    choices = []
    for factor, offset in ((1.0, 0.0), (2.0**power, shift * 2.0**power)):
        selector = LinearThompson("abc", seed=5)
        for arm, x, value in history:
            selector.tell(selector.ask(among=[arm], context=[x]), value * factor + offset)
        choices.append([selector.ask(context=[x]).arm for x in (-3, 0, 5)])
    assert choices[0] == choices[1]


def test_a_large_offset_leaves_the_differences():
    choices = []
    for offset in (0.0, 2.0**40):
        selector = LinearThompson("ab", seed=3)
        for number in range(60):
            choice = selector.ask(context=[number % 2])
            selector.tell(choice, offset + (choice.arm == "ab"[number % 2]) + (number % 7) / 8)
            choices.append(choice.arm)
    assert choices[:60] == choices[60:]


def test_late_values_and_forgotten_epochs():
    selector = LinearThompson("ab", epochs=[2, 4], stationary=["b"])
    selector.epoch_ready(selector.claim_epoch())
    late = selector.ask(among=["a"], context=[1.0])
    selector.tell(selector.ask(among=["b"], context=[1.0]), 2.0)
    selector.epoch_ready(selector.claim_epoch())
    selector.tell(late, 100.0)
    # b is stationary: its value counts
    assert [row["pulls"] for row in selector.explain().values()] == [0, 1]


def test_features_must_have_the_same_length():
    selector = LinearThompson("ab")
    selector.tell(selector.ask(context=[1.0, 2.0]), 1.0)
    with pytest.raises(InvalidValueError, match="Features must be 3 finite numbers"):
        selector.ask(context=[1.0])
    with pytest.raises(InvalidValueError, match=r"`ridge` must be greater than 0, but got 0.0"):
        LinearThompson("ab", ridge=0.0)


def test_the_state_is_json_and_continues():
    selector = LinearThompson("ab", seed=1)
    twin = LinearThompson("ab", seed=2)
    for number in range(20):
        selector.tell(selector.ask(context=[number % 3, 1]), float(number % 5))
    twin.load_state_dict(json.loads(json.dumps(selector.state_dict(), allow_nan=False)))
    assert [twin.ask(context=[k, 0]).arm for k in range(20)] == [
        selector.ask(context=[k, 0]).arm for k in range(20)
    ]


def test_it_beats_every_selector_without_a_context_where_the_start_state_matters():
    example = runpy.run_path(str(EXAMPLE))
    shares = {
        name: np.mean([example["success"](name, seed=seed, episodes=150) for seed in (1, 2)])
        for name in example["SELECTORS"]
    }
    assert shares.pop("linear-thompson") > 0.9
    assert len(shares) >= 6
    assert max(shares.values()) < 0.65
