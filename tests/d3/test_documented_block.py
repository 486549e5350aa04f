"""The Python blocks of the docs that need d3rlpy run as they stand (`make test-d3rlpy`)."""

import pytest

from documentation import test_code
from documentation.test_code import folder  # noqa: F401  # a fixture

BLOCKS = [each for each in test_code.programs() if "D3Learner" in each.code]


def test_there_is_a_block():
    assert BLOCKS


@pytest.mark.parametrize("program", BLOCKS, ids=lambda program: f"{program.page}:{program.line}")
def test_documented_code_runs(program, folder, capfd):  # noqa: F811
    test_code.test_documented_code_runs(program, folder, capfd)
