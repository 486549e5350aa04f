"""What all tests share: examples of property tests are always the same ones, and golden files can be written anew."""

import importlib.util

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

if importlib.util.find_spec("d3rlpy") is None:
    collect_ignore = ["d3"]  # `make test-d3rlpy` runs them, in an environment of its own


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the files in tests/golden anew, instead of comparing with them"
    )
