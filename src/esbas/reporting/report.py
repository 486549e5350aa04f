"""A self-contained HTML report: style and figures are part of the page, and it has no scripts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib import resources

from esbas.reporting.cells import is_numeric, table_texts
from esbas.reporting.inline_svg import inline_svg

FOLDED = 40
"""Tables with more rows are folded."""
LONG = 24
"""Characters of a cell from which on the texts of a column are wrapped."""
Table = tuple[Sequence[str], Sequence[Sequence[object]]]


@dataclass(frozen=True)
class Section:
    """A section of the report: a title and, if given, text, figure with caption, and table.

    Attributes:
        title: the heading.
        text: paragraphs separated by empty lines, with `code` in backticks.
        table: header and rows. The numbers of a column get common decimals; long tables are folded.
        figure: the name of a figure that `Results.figure` has written.
        caption: the caption of the figure, or of the table if there is no figure.
    """

    title: str
    text: str = ""
    table: Table | None = None
    figure: str | None = None
    caption: str = ""


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
    """The report as HTML. `svg` returns a figure by name; `files` are linked in the footer. `started` is in UTC."""
    style = resources.files("esbas.reporting").joinpath("report.css").read_text("utf-8")
    body = "\n".join(_section(section, svg, f"figure-{number}") for number, section in enumerate(sections, 1))
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
    parts = [f"<h2>{escape(section.title)}</h2>", *(f"<p>{_inline(text)}</p>" for text in _paragraphs(section.text))]
    caption = _inline(section.caption)
    if section.figure is not None:
        image = inline_svg(svg(section.figure), prefix=prefix, label=section.caption or section.title)
        parts.append(f"<figure>{_scrolling(image)}<figcaption>{caption}</figcaption></figure>")
    if section.table is not None:
        parts.append(_table(section.table, "" if section.figure else caption))
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _scrolling(content: str) -> str:
    """The content in a box of its own, which shows a hint if the content is wider (report.css)."""
    hint = '<div class=hint><span aria-hidden="true">scroll sideways →</span></div>'
    return f'<div class=scroll tabindex="0"><div class=wide>{hint}{content}</div></div>'


def _table(table: Table, caption: str) -> str:
    header, rows = table
    texts = table_texts(rows)
    kinds = [_kind([row[column] for row in texts]) for column in range(len(header))]

    def line(tag: str, cells: Sequence[str]) -> str:
        return (
            "<tr>" + "".join(f"<{tag}{kind}>{_inline(text)}</{tag}>" for text, kind in zip(cells, kinds, strict=True)) + "</tr>"
        )

    body = "\n".join(line("td", row) for row in texts)
    whole = _scrolling(f"<table>\n<thead>{line('th', header)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>")
    if len(rows) > FOLDED:
        whole = f"<details><summary>Show the table: {len(rows)} rows</summary>{whole}</details>"
    return whole + (f"<p class=caption>{caption}</p>" if caption else "")


def _kind(column: Sequence[str]) -> str:
    """The class of the cells: numbers are right-aligned, and long texts wrapped."""
    if all(map(is_numeric, column)):
        return " class=number"
    return " class=long" if max(map(len, column)) > LONG else ""


def _paragraphs(text: str) -> list[str]:
    return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def _inline(text: str) -> str:
    unbroken = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", escape(text))
    return re.sub(r"`([^`]+)`", lambda found: f"<code>{_whole_flags(found[1])}</code>", unbroken)


def _whole_flags(command: str) -> str:
    """Keep lines from breaking at the hyphens of options."""
    return re.sub(r"(?<!\S)--[\w-]+", r"<span>\g<0></span>", command)
