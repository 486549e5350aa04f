"""A bonus for observations that were seen rarely, whichever learner saw them."""

import math

from esbas.errors import require


def count_bonus(bonus: float, visits: int) -> float:
    """Return β / sqrt(n), which is added to the reward of a step.

    n is the number of visits of the observation to which the step leads, this one included; 0
    counts as 1. Strehl and Littman (2008) add it for the visits of an observation and action, with
    a guarantee; Bellemare et al. (2016) and Tang et al. (2017) for those of an observation.

    >>> count_bonus(0.5, 4)
    0.25
    """
    return bonus / math.sqrt(max(visits, 1))


def check_bonus(bonus: float) -> None:
    """Raise an error unless this can be the factor β of a bonus."""
    require(0 <= bonus < math.inf, f"`bonus` must be finite and not negative, but got {bonus!r}.")
