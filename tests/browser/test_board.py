"""The board in a real browser: live, explained, by keyboard, with tokens, light and dark, wide
and narrow.
"""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from esbas.reporting import estimate
from esbas.studies.client import Client
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.tokens import TokenFile
from esbas.studies.server.training_files import watch
from esbas.studies.server.training_routes import create_training_app
from studies.server.serving import free_port, running_app, serving
from training.written_runs import write_run, write_training

WIDTHS = {"desktop": 1280, "phone": 400}
HOSTILE = "<img src=x onerror=alert(1)>'\"&lt;/{}%"
TOKEN = "a-token-of-the-board"
LIMITS = ServiceLimits(poll_seconds=0.05)
expect.set_options(timeout=30_000)  # the machine may be busy


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with three studies."""
    with (
        serving(
            f"sqlite:///{tmp_path_factory.mktemp('board')}/studies.db", limits=LIMITS
        ) as running,
        Client(running) as client,
    ):
        for name, selector, arms in (
            ("support", "ssbas", "abc"),
            ("drawn", "exp3", "xy"),
            (HOSTILE, "esbas", [HOSTILE, "b"]),
        ):
            study = client.study(name, selector=selector, arms=list(arms))
            for k in range(12):
                study.tell(study.ask(context=[0.5, k]), k % 4, key=f"{HOSTILE} {k}")
            study.ask()
        yield running


@contextmanager
def opened(browser: Browser, url: str, *, expected: str = "", **options: object) -> Iterator[Page]:
    """A page.

    Messages in its console other than the `expected` ones, and requests to elsewhere, are errors.
    """
    page = browser.new_page(**options)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(url.partition("#")[0]) else trouble.append(request.url)
        ),
    )
    page.goto(url)
    yield page
    page.close()
    assert [text for text in trouble if not (expected and re.search(expected, text))] == []


def test_choices_are_live_and_explained(url, browser):
    with opened(browser, f"{url}/#show=support", expected="409") as page, Client(url) as client:
        study = client.existing_study("support")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        choice = study.ask(among=["a", "c"], key="live")
        row = page.locator(".choices button").first
        expect(row).to_have_text(re.compile(rf"^{choice.number}\s+{choice.arm}\s+open"))
        study.tell(choice, 2.625)
        expect(row).to_contain_text("2.625")
        row.click()
        why = page.locator(".explanation")
        expect(why.get_by_role("heading")).to_have_text(
            f"Choice {choice.number}: why {choice.arm}?"
        )
        expect(why).to_contain_text("among the arms that were available")
        expect(why.locator("tr.marked")).to_contain_text(f"{choice.arm} chosen")
        facts = dict(
            zip(
                why.locator("dt").all_inner_texts(),
                why.locator("dd").all_inner_texts(),
                strict=True,
            )
        )
        assert facts["value"].startswith("2.625")
        assert (facts["available"], facts["key"], facts["probability"]) == ("a, c", "live", "1")
        page.get_by_label("Any choice").fill("2")
        page.get_by_role("button", name="Why this arm?").click()
        expect(why.get_by_role("heading")).to_contain_text("Choice 2: why")
        expect(why).to_contain_text("0.5, 1")  # its context
        page.get_by_label("Any choice").evaluate("""field => {  // faster than the page is drawn
          field.value = "99999";
          field.dispatchEvent(new Event("input", { bubbles: true }));
          field.form.requestSubmit();
        }""")
        expect(page.locator("[aria-live=polite]")).to_contain_text("99999")


def test_names_are_text(url, browser):
    with opened(browser, url) as page:
        page.get_by_label(HOSTILE).check()
        panel = page.get_by_role("region", name=HOSTILE, exact=True)
        expect(panel.locator(".choices button").first).to_contain_text(HOSTILE)
        panel.locator(".choices button").last.click()
        expect(panel.locator(".explanation")).to_contain_text("key")
        panel.locator("summary").first.click()
        expect(panel.get_by_role("columnheader", name=HOSTILE).first).to_be_visible()
        assert page.locator("img").count() == 0
        page.reload()  # the selection is in the address
        expect(page.get_by_role("heading", name=HOSTILE, exact=True)).to_be_visible()


def test_tokens_are_asked_for_and_kept(browser, tmp_path):
    (tmp_path / "tokens.toml").write_text(
        f'[[token]]\nname = "board"\nscope = "read"\ntoken = "{TOKEN}"\n'
    )
    store = f"sqlite:///{tmp_path}/studies.db"
    tokens = TokenFile(tmp_path / "tokens.toml")
    with serving(store, tokens=tokens) as url, opened(browser, url, expected="401") as page:
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("token of the request is unknown")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.get_by_text("There are no studies yet.")).to_be_visible()
        page.reload()
        expect(page.get_by_text("There are no studies yet.")).to_be_visible()
        page.get_by_role("button", name="Forget the token").click()
        expect(page.get_by_label("Token")).to_be_focused()


def test_everything_can_be_reached_by_keyboard(url, browser):
    with opened(browser, f"{url}/#show=drawn") as page:
        rows = page.locator(".choices button")
        expect(rows.first).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the studies")).to_be_focused()
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "document.activeElement.closest('.choices') "
                    "? 'row' : document.activeElement.tagName"
                )
            )
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            if reached[-1] == "row":
                break
        assert {"A", "BUTTON", "INPUT", "SUMMARY", "row"} <= set(reached)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(rows.nth(2)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".explanation")).to_contain_text("drawn at random, with a probability")
        expect(page.locator("[aria-live=polite]")).to_contain_text(
            "drawn at random, with a probability"
        )
        expect(rows.nth(2)).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("Tab")
        # the list is one stop
        assert page.evaluate("document.activeElement.closest('.choices')") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
def test_light_and_dark_wide_and_narrow(device, scheme, url, browser, tmp_path):
    address = f"{url}/#show=support&show=drawn"
    with opened(
        browser, address, viewport={"width": WIDTHS[device], "height": 900}, color_scheme=scheme
    ) as page:
        expect(page.locator("canvas")).to_have_count(4)
        page.locator(".choices button").nth(3).click()
        expect(page.locator(".explanation")).to_be_visible()
        for label in page.eval_on_selector_all(
            "canvas", "all => all.map(each => [each.getAttribute('role'), each.ariaLabel])"
        ):
            assert label[0] == "img"
            assert re.match(
                r"(Share of control|Value) \(.*window.*\) up to choice \d+\. Last: ", label[1]
            )
        for details in page.locator("details").all():
            details.locator("summary").click()
            expect(details.locator("tbody tr").nth(11)).to_be_attached()  # a row for each choice
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        _check_contrast(page, dark=scheme == "dark")
        shots = Path(os.environ.get("ESBAS_SCREENSHOTS", tmp_path))
        shots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=shots / f"board-{device}-{scheme}.png", full_page=True)
        page.get_by_role("button", name="Dark").click()
        _check_contrast(page, dark=scheme != "dark")
        page.reload()
        expect(page.get_by_role("button", name="Dark")).to_have_attribute(
            "aria-pressed", str(scheme != "dark").lower()
        )


def test_a_lost_connection_is_shown_and_comes_back(browser, tmp_path):
    store = f"sqlite:///{tmp_path}/studies.db"
    port = free_port()
    with serving(store, port=port) as url, Client(url) as client:
        client.study("support", selector="ssbas", arms=["a", "b"]).ask()
        page_of = opened(browser, url, expected="Failed to load|ERR_")
        page = page_of.__enter__()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.get_by_text("connection lost")).to_be_visible()
    with serving(store, port=port) as url, Client(url) as client:
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        number = client.existing_study("support").ask().number
        expect(page.locator(".choices button").first).to_contain_text(f"{number}")
        page_of.__exit__(None, None, None)


def test_trainings_are_followed(browser, tmp_path):
    one = write_training(
        tmp_path / "one", [1.0, 2.0], [3.0, 4.0], learners=("random", "random(name='<b>other</b>')")
    )
    two = write_training(tmp_path / "two", [1.0] * 60)
    app = create_training_app(watch([one, two], trust=False))
    with running_app(app) as url, opened(browser, f"{url}/#show=1&show=2") as page:
        panel = page.get_by_role("region", name="one", exact=True)
        expect(panel.locator("canvas")).to_have_count(3)  # control, values, and values by learner
        expect(panel.get_by_role("status")).to_have_text("live")
        expect(
            page.get_by_role("region", name="two", exact=True).get_by_role("status")
        ).to_have_text("finished")
        expect(panel.get_by_role("rowheader", name="<b>other</b>", exact=True)).to_have_count(1)
        write_run(one, 0, [1.0, 2.0, 6.5], learners=["random", "<b>other</b>"])
        expect(
            panel.get_by_role("region", name="Last episodes").locator("tbody tr").first
        ).to_contain_text("6.5")
        assert page.locator("main b").count() == 0


def test_curves_are_means_and_intervals_of_the_last_choices(url, browser):
    values = [3 * math.sin(k) + 1e6 for k in range(1000)]
    events = [
        {"kind": kind, "number": k + 1, "arm": "ab"[k % 3 == 0], "value": values[k]}
        for k in range(1000)
        for kind in ("asked", "told")
    ]
    with opened(browser, url) as page:
        found = page.evaluate(
            """async events => {
              const { Totals } = await import("/static/totals.js");
              const totals = new Totals({ width: 1, origin: 0, totals: [] });
              events.forEach(each => totals.add(each));
              const { x, arms } = totals.curves(new Map([["a", ["a"]], ["others", ["b", "c"]]]));
              const last = name => Object.fromEntries(
                Object.entries(arms.get(name)).map(([key, all]) => [key, all.at(-1)]));
              return [totals.window, totals.width, x.length, x.at(-1), last("a"), last("others")];
            }""",
            events,
        )
    window, width, points, last, of_a, of_others = found
    assert (width, points, last) == (4, 250, 1000)
    assert window == 52  # 5 % of the rounds, in parts of 4
    for curve, own in (
        (of_a, [k % 3 > 0 for k in range(1000)]),
        (of_others, [k % 3 == 0 for k in range(1000)]),
    ):
        told = [value for value, mine in list(zip(values, own, strict=True))[-window:] if mine]
        expected = estimate(told)
        assert curve["share"] == pytest.approx(len(told) / window)
        assert curve["mean"] == pytest.approx(expected.mean, abs=1e-6)
        assert curve["high"] - curve["low"] == pytest.approx(2 * expected.ci95, rel=1e-3)


def _check_contrast(page: Page, *, dark: bool) -> None:
    """Texts have a contrast of at least 4.5 to the background, and lines of 3 (WCAG 2)."""
    found = page.evaluate("""() => {
      const color = (element, name) =>
        getComputedStyle(element)[name].match(/\\d+/g).slice(0, 3).map(Number);
      return [color(document.body, "backgroundColor"), color(document.body, "color"),
              color(document.querySelector(".panel .quiet"), "color"),
              color(document.querySelector("summary"), "color"),
              ...[...document.querySelectorAll(".swatch")].map(
                each => color(each, "backgroundColor"))];
    }""")
    paper, *texts = map(_luminance, found)
    assert (paper < 0.1) == dark
    contrasts = [(max(each, paper) + 0.05) / (min(each, paper) + 0.05) for each in texts]
    assert min(contrasts[:3]) >= 4.5
    assert min(contrasts[3:]) >= 3


def _luminance(color: list[int]) -> float:
    linear = [
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in color
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
