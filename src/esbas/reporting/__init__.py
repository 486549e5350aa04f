"""Results of experiments: estimates with intervals, a folder that outlives a kill, tables, figures, one HTML page."""

from esbas.reporting.estimate import Estimate, estimate, estimates
from esbas.reporting.report import Section
from esbas.reporting.results import Results

__all__ = ["Estimate", "Results", "Section", "estimate", "estimates"]
