"""Results of experiments: estimates, tables, figures, an HTML report, a crash-safe folder."""

from esbas.reporting.columns import Columns
from esbas.reporting.estimate import Estimate, estimate, estimates
from esbas.reporting.report import Section
from esbas.reporting.results import ReportFolder, Results
from esbas.reporting.table import Table

__all__ = [
    "Columns",
    "Estimate",
    "ReportFolder",
    "Results",
    "Section",
    "Table",
    "estimate",
    "estimates",
]
