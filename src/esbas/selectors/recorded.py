"""Objects that record the arguments that they were created with."""

import inspect
from typing import Any, Self


class Recorded:
    """Records the arguments of the constructor, from which an equal object can be created.

    `__new__` records them, because it sees all arguments, whatever the `__init__` of a subclass
    passes on to its base class.
    """

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        made = super().__new__(cls)
        made._made_with = (arguments, options)
        return made

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor that were given, by name."""
        arguments, options = self._made_with
        signature = inspect.signature(type(self))
        return dict(signature.bind(*arguments, **options).arguments)
