"""Selectors: which learner controls the next episode."""

from esbas.selectors.bandit_selector import BanditSelector, Scale, ScaleSpec
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.esbas import ESBAS
from esbas.selectors.fixed import Fixed, Uniform
from esbas.selectors.linear_thompson import LinearThompson
from esbas.selectors.recommended import default_selector
from esbas.selectors.registry import find_selector, make_selector, selector_names
from esbas.selectors.selector import SELECTORS, Selector
from esbas.selectors.shared_evidence import SharedEvidence
from esbas.selectors.ssbas import SSBAS

__all__ = [
    "ESBAS",
    "SELECTORS",
    "SSBAS",
    "BanditSelector",
    "Choice",
    "Fixed",
    "LinearThompson",
    "Pick",
    "Scale",
    "ScaleSpec",
    "Selector",
    "SharedEvidence",
    "Uniform",
    "default_selector",
    "find_selector",
    "make_selector",
    "selector_names",
]
