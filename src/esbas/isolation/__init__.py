"""Isolation: a learner in a separate process, which may hang or crash without ending the run."""

from esbas.isolation.isolated import Isolated, IsolatedPolicy

__all__ = ["Isolated", "IsolatedPolicy"]
