"""Selectors: which learner controls the next episode."""

from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.choosing import OpenChoice, Retraining, SelectorChoice
from esbas.selectors.esbas import ESBAS
from esbas.selectors.fixed import Fixed, Uniform
from esbas.selectors.given import SelectorLike, as_selector
from esbas.selectors.linear_thompson import LinearThompson
from esbas.selectors.recommended import default_selector
from esbas.selectors.registry import find_selector, make_selector, selector_names
from esbas.selectors.scale import Scale, ScaleSpec
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
    "OpenChoice",
    "Pick",
    "Retraining",
    "Scale",
    "ScaleSpec",
    "Selector",
    "SelectorChoice",
    "SelectorLike",
    "SharedEvidence",
    "Uniform",
    "as_selector",
    "default_selector",
    "find_selector",
    "make_selector",
    "selector_names",
]
