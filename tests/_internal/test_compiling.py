import os
import subprocess
import sys
from pathlib import Path

import pytest

from esbas.compiling import compiled

KERNEL = """
import formula
from esbas.compiling import compiled
helper = compiled(formula.helper)

@compiled
def twice(x):
    return 2.0 * helper(x)
"""

LATER = """
import formula
from esbas.compiling import compiled

@compiled
def twice(x):
    return 2.0 * helper(x)

helper = compiled(formula.helper)
"""


PAIR = """
from typing import NamedTuple
from esbas.compiling import compiled

class Pair(NamedTuple):
    first: float
    second: float

@compiled
def twice(pair):
    return 2.0 * pair.first

def call():
    return twice(Pair(1.0, 2.0))
"""


def _twice_one(folder: Path, call: str = "twice(1.0)") -> float:
    command = [sys.executable, "-B", "-c", f"import kernel; print(kernel.{call})"]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.parametrize("kernel", [KERNEL, LATER], ids=["defined before", "defined after"])
def test_changing_a_called_function_invalidates_the_cached_caller(tmp_path: Path, kernel: str) -> None:
    (tmp_path / "kernel.py").write_text(kernel)
    (tmp_path / "formula.py").write_text("def helper(x):\n    return x + 1.0\n")
    assert _twice_one(tmp_path) == 4.0
    assert list(tmp_path.rglob("kernel.twice*.nbi")), "nothing was cached"
    (tmp_path / "formula.py").write_text("def helper(x):\n    return x + 5.5\n")
    assert _twice_one(tmp_path) == 13.0


def test_a_cache_that_names_a_renamed_class_is_replaced(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    for text in (PAIR, PAIR.replace("Pair", "Two")):
        stamp = kernel.stat() if kernel.exists() else None
        kernel.write_text(text.ljust(500))
        if stamp:  # numba compares time and size of the source
            os.utime(kernel, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert _twice_one(tmp_path, "call()") == 2.0
        assert list(tmp_path.rglob("kernel.twice*.nbi")), "nothing was cached"


def test_a_function_that_cannot_be_cached_is_still_compiled() -> None:
    names: dict[str, float] = {}
    exec("def half(x): return x / 2", names)  # without a file there is no place for a cache, as in a read-only installation
    assert compiled(names["half"])(3) == 1.5
