"""Every report in a real browser: on a desktop and on a phone, light and dark.

Nothing is cut off, and everything can be read.
"""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from browser.conftest import COMMANDS
from esbas._internal.links import DOCUMENTATION
from esbas.reporting.colors import DARK_TEXT, LIGHT_TEXT
from esbas.reporting.results import ReportFolder
from esbas.training.folder import open_folder
from esbas.training.reports.training_report import publish
from training.written_runs import write_training

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
WIDTHS = {"desktop": 1280, "phone": 400}
KINDS = ("corrected", "uncorrected")
LINES = """() => [...document.querySelectorAll("td:first-child")].map(cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return [cell.textContent, text.getClientRects().length];
})"""
SCHEMES = ("light", "dark")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_report(
    name: str, device: str, scheme: str, reports: Path, browser: Browser, tmp_path: Path
) -> None:
    page = browser.new_page(viewport={"width": WIDTHS[device], "height": 900}, color_scheme=scheme)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request",
        lambda request: (
            trouble.append(request.url) if not request.url.startswith(("file:", "data:")) else None
        ),
    )
    page.goto((reports / name / "report.html").as_uri())
    found = page.evaluate((HERE / "page.js").read_text("utf-8"))
    _check_colors(page, dark=scheme == "dark")
    shots = Path(os.environ.get("ESBAS_SCREENSHOTS", tmp_path))
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"{name}-{device}-{scheme}.png", full_page=True)
    page.close()
    assert found == []
    assert trouble == []


@pytest.mark.parametrize("name", COMMANDS)
def test_links_lead_to_files(name: str, reports: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((reports / name / "report.html").as_uri())
    links = page.eval_on_selector_all(
        "a[href]", "links => links.map(each => each.getAttribute('href'))"
    )
    page.close()
    assert links
    pages = [link for link in links if link.startswith(f"{DOCUMENTATION}/")]
    for link in pages:
        assert (DOCS / link.removeprefix(f"{DOCUMENTATION}/")).is_file(), link
    files = [link for link in links if link not in pages]
    assert [link for link in files if not (reports / name / link).is_file()] == []


def test_names_of_learners_are_not_broken_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    names = [f"DQN rate {rate}, {kind}" for rate in (0.0003, 0.0025) for kind in KINDS]
    folder = write_training(
        tmp_path / "it", [1.0] * 30, learners=[f"random(name='{name}')" for name in names]
    )
    publish(ReportFolder(folder), open_folder(folder))
    page = browser.new_page(viewport={"width": WIDTHS["phone"], "height": 900})
    page.goto((folder / "report.html").as_uri())
    lines = dict(page.evaluate(LINES))  # of the name in each first cell
    page.close()
    assert {name: lines[name] for name in names} == dict.fromkeys(names, 1)


def _check_colors(page: Page, *, dark: bool) -> None:
    """The page and its figures have the same background; texts have a contrast of 4.5 to it, and
    lines of 3 (WCAG 2).
    """
    colors = page.evaluate((HERE / "colors.js").read_text("utf-8"))
    (background,) = colors["page"]
    assert (_luminance(background) < 0.1) == dark
    assert colors["figures"] == [background]
    anywhere = {_rgb(DARK_TEXT), _rgb(LIGHT_TEXT)}  # on areas of the same color in both modes
    texts = [color for color in colors["text"] + colors["labels"] if color not in anywhere]
    assert [color for color in texts if _contrast(color, background) < 4.5] == []
    grids = {
        "rgb(227, 231, 236)",
        "rgb(241, 243, 246)",
        "rgb(42, 49, 59)",
        "rgb(31, 37, 45)",
        "none",
    }
    lines = [color for color in colors["lines"] if color not in grids]
    assert lines
    assert [color for color in lines if _contrast(color, background) < 3] == []


def _rgb(color: str) -> str:
    return f"rgb({', '.join(str(int(color[k : k + 2], 16)) for k in (1, 3, 5))})"


def _luminance(color: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, two: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(two)))
    return (lighter + 0.05) / (darker + 0.05)
