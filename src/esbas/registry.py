"""Plug-ins by name: a registered name, or `module:Class` for anything that can be imported."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from esbas.errors import InvalidValueError, unknown

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
    """The object that "package.module:name" names.

    >>> import_object("math:sqrt")(4.0)
    2.0
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise InvalidValueError(f"a plug-in must be named as 'module:Class', but got {path!r}")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, but something that it imports is not
        raise unknown("module", module, [], "install it, or run from the folder that contains it") from error
    for part in name.split("."):
        if not hasattr(found, part):
            names = [known for known in dir(found) if not known.startswith("_")]
            raise unknown(f"object in module {module!r}", part, names)
        found = getattr(found, part)
    return found


def _short(name: str) -> str:
    """The name as it is looked up; "#" is read as "sharp"."""
    return "".join(letter for letter in name.lower().replace("#", "sharp") if letter.isalnum())


def _place(entry: Any) -> str:
    """Where an entry lives: reloading a module registers equal entries again."""
    if isinstance(entry, str):
        return entry
    return f"{getattr(entry, '__module__', '')}:{getattr(entry, '__qualname__', repr(entry))}"
