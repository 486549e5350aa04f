"""Shared settings: property tests always use the same examples, and an option rewrites the golden files."""

import importlib.util

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

if importlib.util.find_spec("d3rlpy") is None:
    collect_ignore = ["d3"]  # `make test-d3rlpy` runs them, in a separate environment


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the files in tests/golden instead of comparing with them"
    )
