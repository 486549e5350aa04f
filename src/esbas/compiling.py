"""The one place where numba is imported."""

import hashlib
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

os.environ.setdefault("NUMBA_SLP_VECTORIZE", "1")  # off by default and read once, when numba is imported

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function as machine code, compiled at its first call and cached on disk; it runs without the GIL.

    Division by zero gives inf or NaN as in NumPy. Plain functions that it calls must be compiled ones, too.
    """
    try:
        kernel: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # nowhere to write: every process compiles for itself
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
    else:
        # numba notices a change of the function itself but not of those it calls: their sources become part of the cache's key.
        own_key, sources = kernel._cache._index_key, _fingerprint(function, set())
        kernel._cache._index_key = lambda *arguments: (*own_key(*arguments), sources)
    typed: F = kernel
    return typed


def _fingerprint(function: Callable[..., Any], seen: set[Callable[..., Any]]) -> str:
    """A digest of the source of a function, of all compiled functions that it calls and of the constants that it reads."""
    seen.add(function)
    digest = hashlib.sha256(inspect.getsource(function).encode())
    for name in sorted(function.__code__.co_names):
        value = function.__globals__.get(name)
        callee = getattr(value, "py_func", None)
        if callee is not None and callee not in seen:
            digest.update(_fingerprint(callee, seen).encode())
        elif isinstance(value, np.ndarray):
            digest.update(value.tobytes())
        elif isinstance(value, int | float | str | tuple | np.generic):
            digest.update(repr(value).encode())
    return digest.hexdigest()
