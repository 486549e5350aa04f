"""Figures inside the HTML page: an SVG file of matplotlib as elements of the page.

Their colors follow the color scheme of the page.
"""

import re
from xml.etree import ElementTree as ET

from esbas.errors import require
from esbas.reporting.colors import VARIABLES

_ELEMENTS = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "image"}
_ATTRIBUTES = {
    "clip-path",
    "d",
    "height",
    "href",
    "id",
    "opacity",
    "style",
    "transform",
    "viewBox",
    "width",
    "x",
    "y",
}
_HREF = re.compile(r"#[\w-]+|data:image/png;base64,[\w+/=\s]+")
_COLOR = re.compile(r"#[0-9a-f]{6}\b")
_UNSAFE = re.compile(r"url\((?!#[\w-]+\))|expression|@import|[<>\\]", re.IGNORECASE)
MIN_SCALE = 1.0
MAX_SCALE = 1.45
"""CSS pixels per point of the figure: texts of 10 points are 10 to 14.5 pixels large."""


def inline_svg(svg: bytes, *, prefix: str, label: str) -> str:
    """Return the `<svg>` element for a page.

    Only elements and attributes that matplotlib needs for drawings are kept, so nothing in the file
    can run code or load anything. Ids begin with `prefix`, so that several figures can be on a
    page.

    Args:
        svg: the file, with texts as paths.
        prefix: different for each figure of the page; letters, digits and hyphens.
        label: what the figure shows, for screen readers.
    """
    root = ET.fromstring(svg)  # noqa: S314 (written by Results.figure in this process)
    require(_local(root.tag) == "svg", f"A figure must be an SVG file, but got {root.tag!r}.")
    _clean(root, prefix)
    width = float(root.attrib["viewBox"].split()[2])  # in points
    style = f"min-width: {MIN_SCALE * width:.0f}px; max-width: {MAX_SCALE * width:.0f}px"
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": label,
        "style": style,
    }
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, prefix: str) -> None:
    element.tag = _local(element.tag)
    element.text = None
    element.tail = None
    attributes: dict[str, str] = {}
    for full_name, value in element.attrib.items():
        name = _local(full_name)
        if name in _ATTRIBUTES and _is_safe(name, value):
            attributes[name] = _value(name, value, prefix)
    element.attrib = attributes
    for child in list(element):
        if isinstance(child.tag, str) and _local(child.tag) in _ELEMENTS:
            _clean(child, prefix)
        else:
            element.remove(child)


def _is_safe(name: str, value: str) -> bool:
    if name == "href":
        return _HREF.fullmatch(value) is not None
    return _UNSAFE.search(value) is None


def _value(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return f"#{prefix}-{value[1:]}" if value.startswith("#") else value
    value = value.replace("url(#", f"url(#{prefix}-")
    if name == "style":
        return _COLOR.sub(lambda found: VARIABLES.get(found[0], found[0]), value)
    return value


def _local(name: str) -> str:
    """Return the name without its namespace."""
    return name.rpartition("}")[2]
