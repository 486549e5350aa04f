"""For authors of bandits, selectors and learners: checks of the contracts, and toy environments.

Call a check from a test: it raises a ContractError (an AssertionError, too) that tells in one sentence which rule is broken.
"""

from esbas.testing.bandit import check_bandit
from esbas.testing.learner import check_learner
from esbas.testing.selector import check_selector
from esbas.testing.toys import Corridor, OneStep

__all__ = ["Corridor", "OneStep", "check_bandit", "check_learner", "check_selector"]
