"""The pages that this project writes, as a browser shows them: readable for all, without network or scripts."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from backfill_assets.intervals import Daily
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.history_map import MappedModel
from backfill_assets.render.history_map_html import map_html
from backfill_assets.render.plan_words import Naming
from backfill_assets.render.report.page import report_html
from backfill_assets_tests.render.report_parts import START, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
OFFLINE = ("--disable-background-networking", "--disable-component-update", "--disable-sync")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *OFFLINE])
        yield found
        found.close()


def a_map() -> str:
    cadence = Daily(start="2024-01-01")
    cells = IntervalSet((int(START.timestamp()), int(START.timestamp()) + 10 * 86_400))
    model = MappedModel(model="web.visits", missing=cells)
    return map_html(
        [model], Naming({"web.visits": cadence}), "prod", datetime(2024, 2, 1, tzinfo=UTC)
    )


PAGES = {
    "a good plan": lambda: report_html(parts_of(cells=30, columns=2), {}),
    "a bad plan": lambda: report_html(parts_of(ended="built", passed=False), {}),
    "a plan that lacks parts": lambda: report_html(
        {"timeline.json": parts_of()["timeline.json"]}, {"diff.json": "it could not be made"}
    ),
    "the map of snapshots": a_map,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_for_all_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, name: str
):
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    page, asked = browser.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))

    page.goto(file.as_uri())

    assert page.locator("script").count() == 0
    found = Axe().run(page)
    assert asked == [file.as_uri()]
    assert found.violations_count == 0, found.generate_report()


def test_a_report_fits_a_narrow_screen(browser: Browser, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(report_html(parts_of(cells=30), {}), encoding="utf-8")
    page = browser.new_page(viewport={"width": 420, "height": 800})

    page.goto(file.as_uri())

    assert page.evaluate("document.querySelector('.verdict').scrollWidth") <= 420
