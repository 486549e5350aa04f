"""Every report in a real browser: on a desktop and on a phone, light and dark. Nothing is cut off, and everything can be read."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from browser.conftest import COMMANDS
from esbas.reporting.colours import DARK_TEXT, LIGHT_TEXT

HERE = Path(__file__).parent
WIDTHS = {"desktop": 1280, "phone": 400}
SCHEMES = ("light", "dark")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_report(name: str, device: str, scheme: str, reports: Path, browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTHS[device], "height": 900}, color_scheme=scheme)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
    page.goto((reports / name / "report.html").as_uri())
    found = page.evaluate((HERE / "page.js").read_text("utf-8"))
    _check_colours(page, dark=scheme == "dark")
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
    links = page.eval_on_selector_all("a[href]", "links => links.map(each => each.getAttribute('href'))")
    page.close()
    assert links
    assert [link for link in links if not (reports / name / link).is_file()] == []


def _check_colours(page: Page, *, dark: bool) -> None:
    """The page and its figures have the same background; texts have a contrast of 4.5 to it, and lines of 3 (WCAG 2)."""
    colours = page.evaluate((HERE / "colours.js").read_text("utf-8"))
    (background,) = colours["page"]
    assert (_luminance(background) < 0.1) == dark
    assert colours["figures"] == [background]
    anywhere = {_rgb(DARK_TEXT), _rgb(LIGHT_TEXT)}  # on areas of the same colour in both modes
    texts = [colour for colour in colours["text"] + colours["labels"] if colour not in anywhere]
    assert [colour for colour in texts if _contrast(colour, background) < 4.5] == []
    grids = {"rgb(227, 231, 236)", "rgb(241, 243, 246)", "rgb(42, 49, 59)", "rgb(31, 37, 45)", "none"}
    lines = [colour for colour in colours["lines"] if colour not in grids]
    assert lines
    assert [colour for colour in lines if _contrast(colour, background) < 3] == []


def _rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))})"


def _luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, two: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(two)))
    return (lighter + 0.05) / (darker + 0.05)
