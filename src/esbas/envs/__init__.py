"""Preprocessing and wrappers that trainings use."""

from esbas.envs.normalizing import NormalizedObservations
from esbas.envs.wrappers import DiscreteActions, DiscreteObservations

__all__ = ["DiscreteActions", "DiscreteObservations", "NormalizedObservations"]
