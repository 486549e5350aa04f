"""`esbas demo`: which of three Q-learners should control the next episode, answered by SSBAS and by ESBAS on a small task."""

from esbas.experiments.demo.command import Demo, main

__all__ = ["Demo", "main"]
