"""Names of learners: what identifies them in results, and how they are derived from options."""

from collections.abc import Mapping
from typing import Any, ClassVar


class Named:
    """The base of learners: a name, and a title for names that are derived."""

    title: ClassVar[str] = ""
    """What the algorithm is called in derived names. Without a title, it is the class name."""
    name: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '')!r}>"


def title_of(learner_class: type) -> str:
    """Return the title that a class defines itself, or its name."""
    title: str = vars(learner_class).get("title", "")
    return title or learner_class.__name__


def derived_name(title: str, options: Mapping[str, Any]) -> str:
    """Return the title, followed by the options and their values.

    >>> derived_name("tabular Q", {"learning_rate": 0.02, "epsilon": (1.0, 0.1, 500)})
    'tabular Q learning_rate 0.02, epsilon (1, 0.1, 500)'
    """
    listed = ", ".join(f"{option} {in_words(value)}" for option, value in options.items())
    return f"{title} {listed}".strip()


def in_words(value: Any) -> str:
    """Return the value of an option as it is written in a name: the same in every process."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(in_words, value))})"
    if isinstance(value, str | int | Mapping):
        return str(value)
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__)).strip("<>")
    text = " ".join(str(value).split())
    # The default text of an object contains its address in memory.
    return type(value).__name__ if " at 0x" in text else text
