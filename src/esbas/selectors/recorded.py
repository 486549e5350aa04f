"""Objects that remember how they were made."""

import inspect
from typing import Any, Self


class Recorded:
    """Keeps the arguments of the constructor, from which an equal object can be made."""

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        made = super().__new__(cls)
        made._made_with = arguments, options
        return made

    def arguments(self) -> dict[str, Any]:
        """The arguments of the constructor that were given, by name."""
        given, options = self._made_with
        return dict(inspect.signature(type(self)).bind(*given, **options).arguments)
