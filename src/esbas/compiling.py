"""Compiling functions to machine code. This is the only module that imports numba."""

import hashlib
import inspect
import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

os.environ.setdefault("NUMBA_SLP_VECTORIZE", "1")  # off by default; numba reads it when it is imported

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function as machine code: compiled at the first call, cached on disk, and executed without the GIL.

    Division by zero gives inf or NaN as in NumPy. Functions that it calls must be compiled as well.
    """
    try:
        kernel: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # there is no folder for the cache: every process compiles
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
    else:
        # numba detects changes of the function, but not of those that it calls: their sources become part of the cache key.
        # They are read at the first call, when functions that are defined later exist, too.
        own_key, sources = kernel._cache._index_key, cache(partial(_fingerprint, function))
        kernel._cache._index_key = lambda *arguments: (*own_key(*arguments), sources())
        kernel._cache.load_overload = partial(_load, kernel._cache, kernel._cache.load_overload)
    typed: F = kernel
    return typed


def _load(cache: Any, load: Callable[..., Any], *arguments: Any) -> Any:
    """Load from the cache. An unreadable cache, such as one that names a class which was renamed since, is emptied."""
    try:
        return load(*arguments)
    except Exception:  # unpickling can raise anything
        cache.flush()
        return None


def _fingerprint(function: Callable[..., Any], known: set[Callable[..., Any]] | None = None) -> str:
    """A digest of the source of a function, of all compiled functions that it calls and of the constants that it reads."""
    seen = set() if known is None else known
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
