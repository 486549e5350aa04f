"""Plug-ins by name: a registered name, or `module:Class` or `file.py:Class` for anything that can be imported."""

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, describe, unknown

_HERE = str(Path(__file__).parent)
_LIBRARY = str(Path(traceback.__file__).parent)

T = TypeVar("T")
Entry = TypeVar("Entry")


class Registry(Generic[T]):
    """Objects of one kind (bandits, selectors, ...) by name. Case, spaces, dots, dashes and underscores in names are ignored.

    An entry may be given as the text `"module:Class"`; its module is then imported when the entry is first used.

    Args:
        kind: what the entries are, for error messages.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T | str] = {}
        self._titles: dict[str, str] = {}  # short name -> name as it was registered

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """A decorator that registers a class or function under a name.

        >>> bandits: Registry[type] = Registry("bandit")
        >>> @bandits.register("moss")
        ... class MOSS: ...
        >>> bandits.find("MOSS").__name__
        'MOSS'
        """

        def decorator(entry: Entry) -> Entry:
            self.add(name, entry)  # type: ignore[arg-type]  # a subtype of T, whose own type the decorator keeps
            return entry

        return decorator

    def add(self, name: str, entry: T | str) -> None:
        """Register an entry, or the text `"module:Class"` that says where it is. A name can be registered once."""
        short = _short(name)
        if not short or ":" in name:
            raise InvalidValueError(f"a {self.kind} must be registered under a name with letters and no colon, but got {name!r}")
        known = self._entries.get(short)
        if known is not None and known != entry and _place(known) != _place(entry):
            raise InvalidValueError(f"a {self.kind} named {name!r} is registered already: choose another name")
        self._entries[short], self._titles[short] = entry, name

    def find(self, name: str) -> T:
        """The entry with this name, or the object that `module:Class` names."""
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
    """The object that "package.module:name" or "folder/file.py:name" names.

    >>> import_object("math:sqrt")(4.0)
    2.0
    """
    place, name = split_path(path)
    if not place or not name:
        raise InvalidValueError(f"a plug-in must be named as 'module:Class' or 'file.py:Class', but got {path!r}")
    found: Any = import_place(place)
    for part in name.split("."):
        if not hasattr(found, part):
            names = [known for known in dir(found) if not known.startswith("_")]
            raise unknown(f"object in module {place!r}", part, names)
        found = getattr(found, part)
    return found


def split_path(path: str) -> tuple[str, str]:
    """The module or file, and the name in it; one of them may be empty.

    >>> split_path("tasks/corridor.py:Corridor")
    ('tasks/corridor.py', 'Corridor')
    """
    if path.endswith(".py"):
        return path, ""
    file, dot, name = path.rpartition(".py:")
    if dot:
        return f"{file}.py", name
    place, colon, name = path.partition(":")
    return (place, name) if colon else ("", place)


def import_place(place: str) -> ModuleType:
    """The module "package.module", or the one in "folder/file.py". An error within it names the file and the line."""
    try:
        return _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except EsbasError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise unknown("module", place, [], "install it, or run from the folder that contains it") from error
        raise MissingExtraError(
            f"module {place!r} needs {error.name!r}, which is not installed: install it{where(error)}"
        ) from error
    except Exception as error:  # whatever the code of a plug-in raises
        problem = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else describe(error).splitlines()[0]
        message = f"module {place!r} must be importable, but {problem}"
        raise InvalidValueError(f"{message}: fix it{where(error)}") from error


def where(error: BaseException) -> str:
    """The file and line of the code outside of installed packages in which an error was raised, in parentheses; "" if none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if not each.filename.startswith(("<", _HERE)) and "site-packages" not in each.filename]
    own = [each for each in own if not each.filename.startswith(_LIBRARY)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _import_file(path: Path) -> ModuleType:
    """Import a file under its own name, from its folder, so that worker processes find it, too."""
    if not path.is_file():
        raise unknown("file", str(path), [], "check the path; it is relative to the current folder")
    name, file = path.stem, path.resolve()
    if "." in name:
        raise InvalidValueError(f"a module must not have a dot in its name, but got {path.name!r}: rename the file")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if Path(getattr(module, "__file__", None) or "/").resolve() != file:
        other = getattr(module, "__file__", None) or "a built-in module"
        raise InvalidValueError(f"a module must have a name of its own, but {name!r} is also {other}: rename {path.name}")
    return module


def _short(name: str) -> str:
    """The name as it is looked up; "#" is read as "sharp"."""
    return "".join(letter for letter in name.lower().replace("#", "sharp") if letter.isalnum())


def _place(entry: Any) -> str:
    """Where an entry lives: reloading a module registers equal entries again."""
    if isinstance(entry, str):
        return entry
    return f"{getattr(entry, '__module__', '')}:{getattr(entry, '__qualname__', repr(entry))}"
