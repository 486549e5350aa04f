"""Shared settings: property tests always use the same examples, and an option rewrites the golden files."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

if importlib.util.find_spec("d3rlpy") is None:
    collect_ignore = ["d3"]  # `make test-d3rlpy` runs them, in a separate environment


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests that need a browser unless they are asked for: `make test-browser` installs one and runs them."""
    if collection_path != Path(__file__).parent / "browser":
        return None
    places = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(collection_path in (place, *place.parents) for place in places) else True


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the files in tests/golden instead of comparing with them"
    )
