"""A self-contained HTML report: style and figures are part of the page, and it has no scripts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib import resources

from esbas._internal.links import DOCUMENTATION
from esbas.reporting.cells import is_numeric, table_texts
from esbas.reporting.inline_svg import inline_svg

FOLDED = 40
"""Tables with more rows are folded."""
LONG = 32
"""Characters of a cell from which on the texts of a column are wrapped, as in the legends."""
_LINK = re.compile(r"https://[\w./-]*\w")
_PAGES = DOCUMENTATION.removesuffix("docs")
Table = tuple[Sequence[str], Sequence[Sequence[object]]]


@dataclass(frozen=True)
class Section:
    """A section of the report: a title and, if given, text, figure with caption, terms and table.

    Attributes:
        title: the heading.
        text: paragraphs separated by empty lines, with `code` in backticks. Addresses are links.
        table: header and rows. The numbers of a column get common decimals; long tables are folded.
        figure: the name of a figure that `Results.figure` has written.
        caption: the caption of the figure, or of the table if there is no figure.
        terms: names and what they are, as a list, which needs no scrolling on a narrow screen.
    """

    title: str
    text: str = ""
    table: Table | None = None
    figure: str | None = None
    caption: str = ""
    terms: Sequence[tuple[str, str]] = ()


def page(
    title: str,
    sections: Sequence[Section],
    *,
    svg: Callable[[str], bytes],
    command: str,
    started: datetime,
    versions: Mapping[str, str],
    files: Sequence[str],
) -> str:
    """Return the report as HTML.

    Args:
        title: the heading.
        sections: in their order.
        svg: returns a figure by name.
        command: what gives the same results.
        started: when the first results were made, in UTC.
        versions: of packages, by name.
        files: linked in the footer.
    """
    style = resources.files("esbas.reporting").joinpath("report.css").read_text("utf-8")
    parts: list[str] = []
    for number, section in enumerate(sections, 1):
        parts.append(_section(section, svg, f"figure-{number}"))
    body = "\n".join(parts)
    links = ", ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in files)
    made_with = ", ".join(f"{escape(name)} {escape(version)}" for name, version in versions.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class=caption>Started on {started:%Y-%m-%d at %H:%M} UTC.</p>
{body}
</main>
<footer>
<p>Reproduce with:</p>
<pre><code>{_whole_flags(escape(command))}</code></pre>
<p>Data: {links}.</p>
<p>Made with {made_with}.</p>
</footer>
</body>
</html>
"""


def _section(section: Section, svg: Callable[[str], bytes], prefix: str) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    parts += [f"<p>{_inline(text)}</p>" for text in _paragraphs(section.text)]
    caption = _inline(section.caption)
    if section.figure is not None:
        label = section.caption or section.title
        image = inline_svg(svg(section.figure), prefix=prefix, label=label)
        parts.append(f"<figure>{_scrolling(image)}<figcaption>{caption}</figcaption></figure>")
    if section.terms:
        parts.append(_terms(section.terms))
    if section.table is not None:
        parts.append(_table(section.table, "" if section.figure else caption))
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _terms(terms: Sequence[tuple[str, str]]) -> str:
    lines = [f"<dt>{_inline(name)}</dt><dd>{_inline(about)}</dd>" for name, about in terms]
    return "<dl>\n" + "\n".join(lines) + "\n</dl>"


def _scrolling(content: str) -> str:
    """Return the content in a box that shows a hint if the content is wider (report.css)."""
    hint = '<div class=hint><span aria-hidden="true">scroll sideways →</span></div>'
    return f'<div class=scroll tabindex="0"><div class=wide>{hint}{content}</div></div>'


def _table(table: Table, caption: str) -> str:
    header, rows = table
    texts = table_texts(rows)
    kinds = [_kind([row[column] for row in texts]) for column in range(len(header))]

    head = _row("th", header, kinds)
    body = "\n".join(_row("td", row, kinds) for row in texts)
    whole = _scrolling(f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>")
    if len(rows) > FOLDED:
        whole = f"<details><summary>Show the table: {len(rows)} rows</summary>{whole}</details>"
    if caption:
        whole += f"<p class=caption>{caption}</p>"
    return whole


def _row(tag: str, cells: Sequence[str], kinds: Sequence[str]) -> str:
    written: list[str] = []
    for text, kind in zip(cells, kinds, strict=True):
        written.append(f"<{tag}{kind}>{_inline(text)}</{tag}>")
    return f"<tr>{''.join(written)}</tr>"


def _kind(column: Sequence[str]) -> str:
    """Return the class of the cells: numbers are right-aligned, and long texts wrapped."""
    if all(is_numeric(text) for text in column):
        return " class=number"
    if any(len(text) > LONG for text in column):
        return " class=long"
    return ""


def _paragraphs(text: str) -> list[str]:
    found = [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text)]
    return [paragraph for paragraph in found if paragraph]


def _inline(text: str) -> str:
    """Return the text as HTML, with `code` in backticks, and links."""
    unbroken = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", escape(text))
    unbroken = _LINK.sub(_link, unbroken)
    return re.sub(r"`([^`]+)`", lambda found: f"<code>{_whole_flags(found[1])}</code>", unbroken)


def _link(found: re.Match[str]) -> str:
    """Return a link. Pages of the documentation are shown without the address of the repository."""
    return f'<a href="{found[0]}">{found[0].removeprefix(_PAGES)}</a>'


def _whole_flags(command: str) -> str:
    """Keep lines from breaking at the hyphens of options."""
    return re.sub(r"(?<!\S)--[\w-]+", r"<span>\g<0></span>", command)
