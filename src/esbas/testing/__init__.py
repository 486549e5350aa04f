"""For authors of plug-ins: checks of the contracts, and toy environments.

Call a check from a test: it raises a ContractError (also an AssertionError) that says in one
sentence which rule is broken. `esbas.engine.check_engine` checks an engine.
"""

from esbas.testing.bandit import check_bandit
from esbas.testing.learner import check_learner
from esbas.testing.objective import check_objective
from esbas.testing.policy import check_policy
from esbas.testing.selector import check_selector
from esbas.testing.toys import Corridor, OneStep

__all__ = [
    "Corridor",
    "OneStep",
    "check_bandit",
    "check_learner",
    "check_objective",
    "check_policy",
    "check_selector",
]
