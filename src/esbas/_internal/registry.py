"""Plug-ins by name.

A name is a registered one, or `module:Class` or `file.py:Class` for anything that can be imported.
"""

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, describe, unknown

_ESBAS = str(Path(__file__).parent.parent)
_STANDARD_LIBRARY = str(Path(traceback.__file__).parent)

T = TypeVar("T")
Entry = TypeVar("Entry")


class Registry(Generic[T]):
    """Objects of one kind (bandits, selectors, ...) by name.

    Case, spaces, dots, dashes and underscores in names are ignored. An entry may be given as the
    text `"module:Class"`; its module is then imported when the entry is first used.

    Args:
        kind: what the entries are, for error messages.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T | str] = {}
        self._titles: dict[str, str] = {}  # short name -> name as it was registered

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """Return a decorator that registers a class or function under a name.

        >>> bandits: Registry[type] = Registry("bandit")
        >>> @bandits.register("moss")
        ... class MOSS: ...
        >>> bandits.find("MOSS").__name__
        'MOSS'
        """

        def decorator(entry: Entry) -> Entry:
            # An entry is a subtype of T, and the decorator keeps its own type.
            self.add(name, entry)  # type: ignore[arg-type]
            return entry

        return decorator

    def add(self, name: str, entry: T | str) -> None:
        """Register an entry, or the text `"module:Class"` to import it by.

        A name can be registered once. When a module is reloaded, its entries are registered again.
        """
        short = _short(name)
        if not short or ":" in name:
            raise InvalidValueError(
                f"A {self.kind} must be registered under a name with letters and no colon, "
                f"but got {name!r}."
            )
        known = self._entries.get(short)
        if known is not None and known != entry and _path_of(known) != _path_of(entry):
            raise InvalidValueError(
                f"A {self.kind} named {name!r} is registered already: choose another name."
            )
        self._entries[short] = entry
        self._titles[short] = name

    def find(self, name: str) -> T:
        """Return the entry with this name, or the object that `module:Class` names."""
        if ":" in name:
            found: T = import_object(name)
            return found
        entry = self._entries.get(_short(name))
        if entry is None:
            raise unknown(self.kind, name, self)
        return import_object(entry) if isinstance(entry, str) else entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._titles.values())

    def __len__(self) -> int:
        return len(self._titles)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (":" in name or _short(name) in self._entries)


def import_object(path: str) -> Any:
    """Import the object that "package.module:name" or "folder/file.py:name" names.

    >>> import_object("math:sqrt")(4.0)
    2.0
    """
    source, name = split_path(path)
    if not source or not name:
        raise InvalidValueError(
            f"A plug-in must be named as 'module:Class' or 'file.py:Class', but got {path!r}."
        )
    found: Any = import_source(source)
    for part in name.split("."):
        if not hasattr(found, part):
            names = [known for known in dir(found) if not known.startswith("_")]
            raise unknown(f"object in module {source!r}", part, names)
        found = getattr(found, part)
    return found


def split_path(path: str) -> tuple[str, str]:
    """Return the module or file, and the name in it; one of them may be empty.

    >>> split_path("tasks/corridor.py:Corridor")
    ('tasks/corridor.py', 'Corridor')
    """
    if path.endswith(".py"):
        return path, ""
    file, dot, name = path.rpartition(".py:")
    if dot:
        return f"{file}.py", name
    module, colon, name = path.partition(":")
    return (module, name) if colon else ("", path)


def import_source(source: str) -> ModuleType:
    """Import the module "package.module", or the one in "folder/file.py".

    The message of an error within it has the file and the line.
    """
    try:
        if source.endswith(".py"):
            return _import_file(Path(source))
        return importlib.import_module(source)
    except EsbasError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and f"{source}.".startswith(f"{error.name}."):
            remedy = "install it, or run from the folder that contains it"
            raise unknown("module", source, [], remedy) from error
        raise MissingExtraError(
            f"Module {source!r} needs {error.name!r}, which is not installed: "
            f"install it{where(error)}."
        ) from error
    except (Exception, SystemExit) as error:  # whatever the code of a plug-in raises
        problem = describe(error).splitlines()[0]
        if isinstance(error, SyntaxError):  # its text would repeat the file and the line
            problem = f"{type(error).__name__}: {error.msg}"
        raise InvalidValueError(
            f"Module {source!r} must be importable, but {problem}: fix it{where(error)}."
        ) from error


def where(error: BaseException) -> str:
    """Return the file and line in which the user's code raised an error, in parentheses.

    Installed packages are not the user's code. If there is no such line, the text is empty.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(("<", _ESBAS, _STANDARD_LIBRARY)):
            continue
        if "site-packages" in frame.filename:
            continue
        return f" ({frame.filename}, line {frame.lineno})"
    return ""


def _import_file(path: Path) -> ModuleType:
    """Import a file under its own name, from its folder, so that worker processes find it, too."""
    if not path.is_file():
        raise unknown("file", str(path), [], "check the path; it is relative to the current folder")
    name = path.stem
    file = path.resolve()
    if "." in name:
        raise InvalidValueError(
            f"A module must not have a dot in its name, but got {path.name!r}: rename the file."
        )
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != file:
        raise InvalidValueError(
            f"The name of a module must be unique, but {name!r} is also "
            f"{found or 'a built-in module'}: rename {path.name}."
        )
    return module


def _short(name: str) -> str:
    """Return the name as it is looked up; "#" is read as "sharp"."""
    letters = name.lower().replace("#", "sharp")
    return "".join(letter for letter in letters if letter.isalnum())


def _path_of(entry: Any) -> str:
    """Return the `module:Class` of an entry."""
    if isinstance(entry, str):
        return entry
    module = getattr(entry, "__module__", "")
    name = getattr(entry, "__qualname__", repr(entry))
    return f"{module}:{name}"
