"""Links to the pages of the documentation, for helps, messages and reports.

An installed package has no folder `docs`: paths in it would lead nowhere.
"""

import re

DOCUMENTATION = "https://github.com/esbas/esbas/blob/main/docs"
_LINK = re.compile(re.escape(DOCUMENTATION) + r"/([\w-]+\.md)")
_PATH = re.compile(r"(?<![\w/])docs/([\w-]+)\.md")


def page(name: str) -> str:
    """Return the address of a page of the documentation.

    >>> page("safety")
    'https://github.com/esbas/esbas/blob/main/docs/safety.md'
    """
    return f"{DOCUMENTATION}/{name}.md"


def with_links(text: str) -> str:
    """Return the text of a docstring with addresses instead of paths, for a help.

    >>> with_links("They can run any code: docs/safety.md.")
    'They can run any code: https://github.com/esbas/esbas/blob/main/docs/safety.md.'
    """
    return _PATH.sub(lambda found: page(found[1]), text)


def links_in(text: str) -> list[str]:
    """Return the addresses of pages in a text, each of them once."""
    return list(dict.fromkeys(found[0] for found in _LINK.finditer(text)))


def without_links(text: str) -> str:
    """Return the text with the names of pages instead of their addresses.

    >>> without_links(with_links("They can run any code: docs/safety.md."))
    'They can run any code: safety.md.'
    """
    return _LINK.sub(r"\1", text)
