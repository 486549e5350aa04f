"""Figures in the page: safe, with ids of their own, and in the colors of the page."""

import io
import re
from importlib import resources
from xml.etree import ElementTree as ET

import pytest

from esbas.reporting import figures
from esbas.reporting.colors import COLORS, DARK_TEXT, INK, VARIABLES
from esbas.reporting.inline_svg import inline_svg

HOSTILE = b"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
viewBox="0 0 72 72" onload="alert(1)">
<script>alert(1)</script><style>* { display: none }</style><foreignObject><p>x</p></foreignObject>
<a xlink:href="javascript:alert(1)"><path d="M 0 0"/></a><text>words</text>
<image xlink:href="https://example.org/x.png"/><use xlink:href="other.svg#x"/>
<g onclick="alert(1)" style="fill: url(https://example.org/x)">
<path id="p" d="M 0 0" style="fill: #1d2430"/></g>
<use xlink:href="#p" clip-path="url(#c)"/></svg>"""


def drawn(name: str = "a") -> bytes:
    figure, axes = figures.new_figure()
    figures.curve_with_band(axes, [1, 2], [1, 2], [0.1, 0.1], name)
    axes.text(1, 1, "x", color=DARK_TEXT)
    figures.legend(axes)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def test_only_drawings_are_kept():
    kept = inline_svg(HOSTILE, prefix="f", label='a "label" <b>')
    for word in (
        "alert",
        "script",
        "example.org",
        "other.svg",
        "words",
        "style>",
        "foreign",
        "onload",
        "onclick",
    ):
        assert word not in kept
    root = ET.fromstring(kept)
    assert root.attrib["aria-label"] == 'a "label" <b>'
    assert "<b>" not in kept
    assert [
        (each.tag, each.attrib.get("href")) for each in root.iter() if each.tag in ("use", "image")
    ] == [
        ("image", None),
        ("use", None),
        ("use", "#f-p"),
    ]
    assert root[-1].attrib["clip-path"] == "url(#f-c)"
    assert 'style="fill: var(--ink)"' in kept


@pytest.mark.parametrize("name", ["--><script>alert(1)</script>", "<!-- -->", "]]>", "&lt;"])
def test_names_in_a_figure_do_not_reach_the_page(name):
    kept = inline_svg(drawn(name), prefix="f", label="x")
    assert "alert" not in kept
    assert not re.search(r"<!|&", kept)
    ET.fromstring(kept)


def test_the_ids_of_two_figures_differ_and_references_are_kept():
    first, second = (inline_svg(drawn(), prefix=prefix, label="x") for prefix in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    referred = set(re.findall(r'href="#([^"]+)"', first)) | set(
        re.findall(r"url\(#([^)]+)\)", first)
    )
    assert referred
    assert referred <= ids[0]


def test_colors_follow_the_page():
    kept = inline_svg(drawn(), prefix="f", label="x")
    assert not re.search("|".join(VARIABLES), kept)
    assert {"var(--ink)", "var(--paper)", "var(--grid)", "var(--series-1)"} <= set(
        re.findall(r"var\([\w-]+\)", kept)
    )
    assert DARK_TEXT in kept
    assert DARK_TEXT != INK


def test_figures_are_large_enough_to_read_and_no_posters():
    (least, most) = map(
        int, re.findall(r"(?:min|max)-width: (\d+)px", inline_svg(drawn(), prefix="f", label="x"))
    )
    # 8 inches of 72 points: texts of 10 points have 10 to 14.5 pixels
    assert (least, most) == (576, 835)


def luminance(color: str) -> float:
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_color_has_enough_contrast_in_both_modes():
    style = resources.files("esbas.reporting").joinpath("report.css").read_text("utf-8")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6})\b", part)) for part in style.split("@media")[:2]
    )
    for mode in (light, dark):
        paper = luminance(mode["paper"])
        for number in range(1, len(COLORS) + 1):
            darker, lighter = sorted((paper, luminance(mode[f"series-{number}"])))
            assert (lighter + 0.05) / (darker + 0.05) >= 3
        assert {variable[6:-1] for variable in VARIABLES.values()} <= set(mode)
