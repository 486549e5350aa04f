"""Selectors: which learner controls the next episode."""

from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.epochs import Epochs
from esbas.selectors.esbas import ESBAS
from esbas.selectors.fixed import Fixed, Uniform
from esbas.selectors.registry import make_selector
from esbas.selectors.scale import Scale, ScaleSpec
from esbas.selectors.selector import Choice, Selector
from esbas.selectors.ssbas import SSBAS

__all__ = [
    "ESBAS",
    "SSBAS",
    "BanditSelector",
    "Choice",
    "Epochs",
    "Fixed",
    "Scale",
    "ScaleSpec",
    "Selector",
    "Uniform",
    "make_selector",
]
