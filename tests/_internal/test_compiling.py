import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esbas._internal.compiling import compiled, compiled_part

KERNEL = """
import formula
from esbas._internal.compiling import compiled
helper = compiled(formula.helper)

@compiled
def twice(x):
    return 2.0 * helper(x)
"""

LATER = """
import formula
from esbas._internal.compiling import compiled

@compiled
def twice(x):
    return 2.0 * helper(x)

helper = compiled(formula.helper)
"""


PAIR = """
from typing import NamedTuple
from esbas._internal.compiling import compiled

class Pair(NamedTuple):
    first: float
    second: float

@compiled
def twice(pair):
    return 2.0 * pair.first

def call():
    return twice(Pair(1.0, 2.0))
"""

BOTH = """
from esbas._internal.compiling import compiled, compiled_part

@compiled
def half(x):
    return x / 2

_half = compiled_part(half)

@compiled
def twice(x):
    return 4.0 * _half(x)

def call():
    return twice(1.0) + half(1.0) - 0.5
"""


def _twice_one(folder: Path, call: str = "twice(1.0)") -> float:
    command = [sys.executable, "-B", "-c", f"import kernel; print(kernel.{call})"]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


@pytest.mark.parametrize("kernel", [KERNEL, LATER], ids=["defined before", "defined after"])
def test_changing_a_called_function_invalidates_the_cached_caller(
    tmp_path: Path, kernel: str
) -> None:
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
    # without a file there is no place for a cache, as in a read-only installation
    exec("def half(x): return x / 2", names)
    assert compiled(names["half"])(3) == 1.5


def test_a_function_can_also_be_a_part_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(BOTH)
    for _ in range(2):  # compiled, and from the cache
        assert _twice_one(tmp_path, "call()") == 2.0
    assert list(tmp_path.rglob("kernel.half*.nbi")), "nothing was cached"


PARTED = """
@compiled_part
def add(values):
    for i in range(1, len(values)):
        values[i] += values[i - 1]

@compiled
def add_twice(values):
    add(values)
    add(values[::2])
"""


def test_compiled_code_has_its_own_copies_of_its_parts() -> None:
    # The code of a part alone is not optimized, and must not be used instead of the copy.
    names: dict[str, Any] = {"compiled": compiled, "compiled_part": compiled_part}
    exec(PARTED, names)  # without a file, it is never taken from the cache
    kernel = names["add_twice"]
    values = np.ones(5)
    kernel(values)
    assert values.tolist() == [1, 2, 4, 4, 9]
    (code,) = kernel.inspect_llvm().values()
    assert "define " in code
    assert "define linkonce_odr" not in code


def test_the_garbage_collector_works_after_a_compilation() -> None:
    assert gc.isenabled()

    @compiled
    def collects(x: Any) -> Any:
        return x + 1

    assert collects(1) == 2
    assert gc.isenabled()
    with pytest.raises(Exception, match="No implementation"):
        collects("text")
    assert gc.isenabled()
