"""The selector to start with."""

from collections.abc import Iterable

from esbas.bandits.kalman_thompson import KalmanThompson
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.esbas import ESBAS
from esbas.selectors.selector import Selector

RECOMMENDED = "kalman-thompson"
"""The recommended selector for learners that learn all the time: the default of `esbas train`."""


def default_selector(arms: Iterable[str], *, online: bool = True, seed: int = 0) -> Selector:
    """Return the recommended selector.

    It is Kalman Thompson sampling online, and ESBAS if learners learn by epochs. The recommendation
    may change with the version, in particular that for epochs. To keep a selector, name it.

    Args:
        arms: the names of the learners.
        online: whether learners learn all the time. If not, they learn when an epoch starts, after
            1, 2, 4, ... episodes.
        seed: seed of the selector's random stream.
    """
    if online:
        # Kalman Thompson sampling does not depend on the scale of values.
        return BanditSelector(arms, bandit=KalmanThompson, scale=None, seed=seed)
    return ESBAS(arms, seed=seed)
