"""For authors of bandits, selectors and learners: checks of the contracts, and toy environments."""

from esbas.testing.bandit import check_bandit

__all__ = ["check_bandit"]
