"""Compiling functions to machine code. Only this module and `lanes.py` import numba."""

import gc
import hashlib
import inspect
import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

# This is off by default, and numba reads it when it is imported.
os.environ.setdefault("NUMBA_SLP_VECTORIZE", "1")

import numba
from numba.core import event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from esbas._internal.compile_notice import announce_compilation

F = TypeVar("F", bound=Callable[..., Any])

# These have no types, or not those of all options.
_njit: Any = numba.njit
_NumbaLibrary: Any = JITCodeLibrary
_NumbaCompiler: Any = Compiler
_NumbaListener: Any = event.Listener
_register: Any = event.register

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: F) -> F:
    """Return the function as machine code.

    It is compiled at the first call, cached on disk, and executed without the GIL. Division by zero
    gives inf or NaN as in NumPy. Functions that it calls must be compiled as well.
    """
    python_function = _python_function(function)
    try:
        kernel = _njit(cache=True, pipeline_class=_Compiler, **_OPTIONS)(python_function)
    except RuntimeError:  # there is no folder for the cache: every process compiles
        kernel = _njit(pipeline_class=_Compiler, **_OPTIONS)(python_function)
    else:
        _extend_cache(kernel._cache, python_function)
    typed: F = kernel
    return typed


def compiled_part(function: F) -> F:
    """Return a function for compiled functions to call. Python can not call it.

    This compiles in half the time: the machine code is optimized and cached only as a part of the
    functions that call it, and nothing converts objects of Python. The function may also be one
    that `compiled` returned.
    """
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    part = _njit(pipeline_class=_PartCompiler, **wrappers, **_OPTIONS)
    typed: F = part(_python_function(function))
    return typed


def inlined(function: F) -> F:
    """Return a function that is copied into compiled functions wherever they call it.

    This is for a few lines: of a longer function, each copy would be compiled.
    """
    typed: F = _njit(inline="always", **_OPTIONS)(_python_function(function))
    return typed


def _python_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself, also of one that is compiled."""
    python_function: Callable[..., Any] = getattr(function, "py_func", function)
    return python_function


class _PartLibrary(_NumbaLibrary):  # type: ignore[misc]
    """The code of a part, which is optimized in the functions that call it."""

    def _optimize_final_module(self) -> None:
        pass


class _Library(_NumbaLibrary):  # type: ignore[misc]
    """The code of a function with the parts that it calls, all of it optimized."""

    def _optimize_final_module(self) -> None:
        if any(isinstance(each, _PartLibrary) for each in self._linking_libraries):
            for each in self._final_module.functions:
                # Otherwise, this process would call the code of the parts that is not optimized,
                # since it was loaded before.
                if each.linkage.name == "linkonce_odr":
                    each.linkage = "internal"
        super()._optimize_final_module()


class _Compiler(_NumbaCompiler):  # type: ignore[misc]
    """numba's compiler with another class for the code."""

    library_class: type[Any] = _Library

    def define_pipelines(self) -> Any:
        state = self.state
        if state.library is None:
            codegen = state.targetctx.codegen()
            state.library = self.library_class(codegen, state.func_id.func_qualname)
            state.library.enable_object_caching()  # as numba does when it creates a library
        return super().define_pipelines()


class _PartCompiler(_Compiler):
    library_class = _PartLibrary


class _CompilationListener(_NumbaListener):  # type: ignore[misc]
    """Announces compilations, and turns the garbage collector off while they last.

    It would take an eighth of the time, since they create many objects and hardly any cycles.
    """

    def __init__(self) -> None:
        self._depth = 0  # a function may be compiled while its caller is
        self._collects = False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            dispatcher = event.data["dispatcher"]
            function = getattr(dispatcher, "py_func", None)  # None: a loop of a function
            if function is not None:
                announce_compilation(
                    f"{function.__module__}.{function.__qualname__}",
                    is_stored=not isinstance(dispatcher._cache, NullCache),
                )
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        del event
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()


_register("numba:compile", _CompilationListener())


def _extend_cache(kernel_cache: Any, function: Callable[..., Any]) -> None:
    """Make numba notice changes of the functions that a function calls.

    Its own cache detects changes of the function itself. Here, the sources of all functions that it
    calls become part of the key. They are read at the first call, when functions that are defined
    later exist, too.
    """
    own_key = kernel_cache._index_key
    sources = cache(partial(_fingerprint, function))

    def index_key(*arguments: Any) -> tuple[Any, ...]:
        return (*own_key(*arguments), sources())

    kernel_cache._index_key = index_key
    kernel_cache.load_overload = partial(_load, kernel_cache, kernel_cache.load_overload)


def _load(cache: Any, load: Callable[..., Any], *arguments: Any) -> Any:
    """Load from the cache.

    An unreadable cache, such as one with the name of a class that was renamed, is emptied.
    """
    try:
        return load(*arguments)
    except Exception:  # unpickling can raise anything
        cache.flush()
        return None


def _fingerprint(function: Callable[..., Any], known: set[Callable[..., Any]] | None = None) -> str:
    """Return a digest of the source of a function and of all that it uses.

    That is, of the compiled functions that it calls and of the constants that it reads.
    """
    seen = set() if known is None else known
    seen.add(function)
    digest = hashlib.sha256(inspect.getsource(function).encode())
    for name in sorted(function.__code__.co_names):
        value = function.__globals__.get(name)
        callee = getattr(value, "py_func", None)
        instruction = getattr(value, "_defn", None)  # of `lanes.py`
        if instruction is not None:
            digest.update(inspect.getsource(instruction).encode())
        elif callee is not None and callee not in seen:
            digest.update(_fingerprint(callee, seen).encode())
        elif isinstance(value, np.ndarray):
            digest.update(value.tobytes())
        elif isinstance(value, int | float | str | tuple | np.generic):
            digest.update(repr(value).encode())
    return digest.hexdigest()
