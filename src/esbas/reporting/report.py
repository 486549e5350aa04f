"""A self-contained HTML report: style and figures are embedded."""

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

Table = tuple[Sequence[str], Sequence[Sequence[object]]]


@dataclass(frozen=True)
class Section:
    """A section of the report: a title and, if given, text, table, and figure with caption.

    Attributes:
        title: the heading.
        text: paragraphs separated by empty lines, with `code` in backticks.
        table: header and rows.
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
    versions: Mapping[str, str],
    files: Sequence[str],
) -> str:
    """The report as HTML. `svg` returns a figure by name; `files` are linked in the footer."""
    style = resources.files("esbas.reporting").joinpath("report.css").read_text("utf-8")
    body = "\n".join(_section(section, svg) for section in sections)
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
{body}
</main>
<footer>
<p>Reproduce with:</p>
<pre><code>{escape(command)}</code></pre>
<p>Data: {links}.</p>
<p>Made with {made_with}.</p>
</footer>
</body>
</html>
"""


def _section(section: Section, svg: Callable[[str], bytes]) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>", *(f"<p>{_inline(text)}</p>" for text in _paragraphs(section.text))]
    caption = _inline(section.caption)
    if section.table is not None:
        parts.append(_table(section.table, "" if section.figure else caption))
    if section.figure is not None:
        data = base64.b64encode(svg(section.figure)).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(section.caption or section.title)}">'
        parts.append(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _table(table: Table, caption: str) -> str:
    header, rows = table
    texts = [[cell(value) for value in row] for row in rows]
    numeric = [all(is_numeric(row[column]) for row in texts) for column in range(len(header))]

    def line(tag: str, cells: Sequence[str]) -> str:
        aligned = zip(cells, numeric, strict=True)
        return (
            "<tr>"
            + "".join(f"<{tag}{' class=number' if right else ''}>{_inline(text)}</{tag}>" for text, right in aligned)
            + "</tr>"
        )

    body = "\n".join(line("td", row) for row in texts)
    below = f"<p class=caption>{caption}</p>" if caption else ""
    return f"<div class=table><table>\n<thead>{line('th', header)}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>{below}"


def cell(value: object) -> str:
    """The text of a table cell: four significant digits, or a dash for an unknown value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)  # NumPy's float64 is a float


def is_numeric(text: str) -> bool:
    """Whether a cell holds a number or a dash, and so is right-aligned."""
    return re.match(r"[-+−]?[\d.]|–?$", text) is not None


def _paragraphs(text: str) -> list[str]:
    return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
