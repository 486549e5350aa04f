"""Results of experiments: estimates with intervals, a crash-safe results folder, tables, figures, and an HTML report."""

from esbas.reporting.estimate import Estimate, estimate, estimates
from esbas.reporting.report import Section
from esbas.reporting.results import Results

__all__ = ["Estimate", "Results", "Section", "estimate", "estimates"]
