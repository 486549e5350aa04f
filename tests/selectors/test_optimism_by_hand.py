"""The optimism of shared evidence, by hand: V_k + sqrt(ln(τ + 1) C_kk) before choice τ + 1."""

import math

import pytest

from esbas import SharedEvidence
from esbas.selectors.evidence_formulas import optimistic


@pytest.mark.parametrize(
    ("number", "bound"),
    [
        (0, 1.0),  # ln 1 = 0
        (math.e - 1, 3.0),  # 1 + sqrt(1 * 4)
        (math.e**4 - 1, 5.0),  # 1 + sqrt(4 * 4)
    ],
)
def test_an_upper_bound(number: float, bound: float) -> None:
    assert optimistic(1.0, 4.0, number) == pytest.approx(bound)


# Both arms play once in the first epoch, with the values 0 and 2, and only the stationary one keeps
# what is known about it: the value 2 with the variance 4. In the second epoch, arm a has the value
# z. Choice 4 follows, so τ = 3. Nothing is known about actions, so each arm is judged by its own
# values. For z = 1.05:
#   s² = 1/2 + (z - 1)² / 4 = 0.500625, V_a = z = 1.05 and C_aa = 4 s² = 2.0025.
#   Without a value of its own, b has the mean 1 + (z - 1) / 2 = 1.025 of all values and the
#   variance 4 s² = 2.0025. Given the value 2 with the variance 4,
#   V_b = 1.025 + 2.0025 / 6.0025 * 0.975 = 1.3503 and C_bb = 2.0025 * 4 / 6.0025 = 1.3344.
# V_k + sqrt(x C_kk) is equal for both at sqrt(x) = (V_b - V_a) / (sqrt(C_aa) - sqrt(C_bb)) = 1.155,
# x = 1.335. Above, arm a has the larger bound. For z = 1.025, they are equal at x = 1.4885.
# ln 4 = 1.386 is on one side of x; with one choice less or more, ln 3 = 1.099 or ln 5 = 1.609 is on
# the other side.
@pytest.mark.parametrize(
    ("z", "equal_at", "chosen"),
    [(1.05, 1.3346, "a"), (1.025, 1.4885, "b")],
)
def test_the_number_of_choices_before_this_one_decides(
    z: float, equal_at: float, chosen: str
) -> None:
    selector = SharedEvidence("ab", epochs=[2, 100], stationary=["b"])
    for arm, value in (("a", 0.0), ("b", 2.0), ("a", z)):
        choice = selector.ask()
        assert choice.arm == arm
        selector.tell(choice, value)
    report = selector.explain()
    a = report["a"]
    b = report["b"]
    root = (b["value"] - a["value"]) / (a["spread"] - b["spread"])
    assert root**2 == pytest.approx(equal_at, abs=1e-4)
    assert selector.ask().arm == chosen
