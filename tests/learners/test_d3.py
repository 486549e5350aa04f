"""Members of d3rlpy where it is not installed; tests/d3 has the others (`make test-d3rlpy`)."""

import subprocess
import sys


def test_the_extra_is_named_where_it_is_missing():
    code = """
import sys
sys.modules["d3rlpy"] = None
try:
    import esbas.learners.d3
except ModuleNotFoundError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "members of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'"
