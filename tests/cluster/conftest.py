"""A Ray cluster of two nodes with one CPU each, on this machine.

All tests in this folder have the marker `ray`.
"""

import os
import uuid
from pathlib import Path

import pytest

from cluster.recording import Recording
from processes import wait_until

MARK = "ESBAS_TEST_OF_RAY"  # an environment variable that every process of a test inherits
OPTIONS = {"num_cpus": 1, "object_store_memory": 200 * 2**20, "include_dashboard": False}
HEALTH = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.ray)


def marked_processes():
    """The processes that descend from this test session, except this one."""
    mark = f"{MARK}={os.environ.get(MARK)}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int(path.name) != os.getpid() and mark in (path / "environ").read_bytes().split(
                b"\0"
            ):
                found.append(int(path.name))
        except OSError:  # it ended, or belongs to somebody else
            continue
    return found


class TwoNodes:
    """The cluster. A second node that was killed is replaced when a test asks for it again."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self._cluster.add_node(**OPTIONS, _system_config=HEALTH)
        self.second = None
        self.address = self._cluster.address
        self.engine = f"ray:{self.address}"
        self.restore()

    def restore(self):
        if self.second is None:
            self.second = self._cluster.add_node(**OPTIONS)
            self._cluster.wait_for_nodes()

    def kill_second(self):
        """As if its power failed: all of its processes end at once."""
        node = self.second
        self.second = None
        self._cluster.remove_node(node, allow_graceful=False)

    def shutdown(self):
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def _mark():
    """Set what Ray reads when it is imported; afterwards, no process of a test may be left."""
    os.environ[MARK] = uuid.uuid4().hex
    # loopback; no statistics
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    yield
    wait_until(lambda: not marked_processes(), "the end of all Ray processes")


@pytest.fixture(scope="session")
def _two_nodes(_mark):
    cluster = TwoNodes()
    yield cluster
    cluster.shutdown()


@pytest.fixture
def cluster(_two_nodes):
    _two_nodes.restore()
    Recording.clear(_two_nodes.engine)
    return _two_nodes
