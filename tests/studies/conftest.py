"""Stores for the tests."""

from pathlib import Path

import pytest

from studies.servers import postgresql


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/studies.db"


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL that the tests may stop and start."""
    with postgresql(sync=False) as running:
        yield running
