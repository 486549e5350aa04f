"""A notice before networks are compiled, which takes seconds once after an installation.

This module does not import numba: `compiling.py` calls it when a function is compiled.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SLOW = "esbas.learners.dqn.compiled.dense_group.update"  # other functions take a moment
ONCE = (
    "The networks are compiled for this computer: once after an installation, for about 5 seconds."
)
ALWAYS = (
    "The networks are compiled for about 5 seconds, and again at the next start, because no "
    "folder for the result is writable: set the environment variable NUMBA_CACHE_DIR to one."
)

_is_wanted = False  # in all threads: learners may be built in any of them


@contextmanager
def announcing_compilation(*, enabled: bool = True) -> Iterator[None]:
    """Print a sentence before networks are compiled within the block, at most once.

    Without `enabled`, nothing is printed. Blocks are not nested.
    """
    global _is_wanted
    _is_wanted = enabled
    try:
        yield
    finally:
        _is_wanted = False


def announce_compilation(function: str, *, is_stored: bool) -> None:
    """Print the notice, if one is wanted.

    Args:
        function: the one that is about to be compiled, with its module.
        is_stored: whether the result is kept for the next start.
    """
    global _is_wanted
    if _is_wanted and function == SLOW:
        _is_wanted = False
        print(ONCE if is_stored else ALWAYS, file=sys.stderr, flush=True)
