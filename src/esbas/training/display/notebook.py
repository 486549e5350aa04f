"""One output area of a notebook that is updated in place.

IPython is used if it is imported, and never needed.
"""

import importlib
import io
import sys
import threading
from typing import Any

from rich.console import Console, RenderableType

WIDTH = 100
"""Columns of a picture in a notebook."""
_FORMAT = (
    '<pre style="white-space: pre; overflow-x: auto; line-height: 1.2;'
    " font-family: Menlo, 'DejaVu Sans Mono', Consolas, 'Courier New', monospace\">{code}</pre>"
)


class NotebookArea:
    """The output area of the cell that runs now.

    Args:
        display: `IPython.display.display`.
    """

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None
        self._thread = threading.get_ident()

    @property
    def is_reachable(self) -> bool:
        """Whether this is the thread of the cell.

        The output of other threads could end up in any cell.
        """
        return threading.get_ident() == self._thread

    def show(self, picture: RenderableType) -> None:
        """Show a picture instead of the one before."""
        bundle = _rendered(picture)
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def find_notebook() -> NotebookArea | None:
    """Return the output area of the current cell; None outside of a notebook.

    IPython is not imported unless the program has done so: without it, this is no notebook. A shell
    of IPython in a terminal is no notebook either: only a kernel has a front end that shows HTML.
    """
    ipython = sys.modules.get("IPython")
    get_shell = getattr(ipython, "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    if getattr(shell, "kernel", None) is None:
        return None
    return NotebookArea(importlib.import_module("IPython.display").display)


def _rendered(picture: RenderableType) -> dict[str, str]:
    """Return the picture as HTML with inline styles, and as text for front ends without HTML.

    Text without a style has the color of the notebook, so that it is readable in dark mode.
    """
    console = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
    )
    console.print(picture)
    html = console.export_html(inline_styles=True, code_format=_FORMAT, clear=False)
    return {"text/html": html, "text/plain": console.export_text()}
