"""Services for the tests."""

import pytest

from esbas.studies.client import Client
from studies.server.serving import ARMS, serving


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/studies.db"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A service that the tests of a file share."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('service')}/studies.db") as running:
        yield running


@pytest.fixture
def client(url):
    with Client(url) as connected:
        yield connected


@pytest.fixture
def study(client, request):
    """A study of its own for a test."""
    return client.study(request.node.name, selector="ssbas", arms=ARMS)
