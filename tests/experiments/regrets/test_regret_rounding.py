"""Exponents that are equal up to rounding are equal: 1 - 0.7 is 0.30000000000000004."""

import pytest

from esbas.experiments import regrets as regret
from esbas.experiments.regrets import Growth


@pytest.mark.parametrize("gap", [0.1, 0.2, 0.3, 0.35, 0.4, 0.45])
def test_the_logarithm_decides_where_the_exponents_are_equal(gap):
    for own in (1 - gap, round(1 - gap, 2)):
        assert (
            regret.table_1_absolute(gap, own)
            == regret.absolute_growth(gap, own)
            == Growth(pytest.approx(gap), 1.0)
        )
    assert regret.table_1_absolute(gap, 1 - gap - 0.05) == Growth(pytest.approx(gap + 0.05))
