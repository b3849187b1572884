"""Every page of the runbook is played: its commands are called, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli.verbs import metrics
from backfill_assets.state.database import StateUnavailableError
from backfill_assets_tests.toy import raw_sales

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

DOCS = Path(__file__).parents[2] / "docs"
WHY = "audit 'amount_not_negative' of 'toy.sales' failed"


def absent(shop: Prepared, backfill: Backfill, _: pytest.MonkeyPatch) -> None:
    del shop
    backfill("run", "--select", "toy.sales")


def failed(shop: Prepared, _: Backfill, __: pytest.MonkeyPatch) -> None:
    shop.fail("toy.sales", "2024-01-31", "2024-02-01", WHY)


def stale(shop: Prepared, _: Backfill, __: pytest.MonkeyPatch) -> None:
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    shop.fill("toy.sales_of_three_days", "2024-01-28", "2024-02-03")
    shop.change("toy.sales", "2024-01-29", "2024-01-29")


def waiting(shop: Prepared, _: Backfill, __: pytest.MonkeyPatch) -> None:
    shop.claim("toy.sales", "2024-01-28", "2024-01-28")


def down(_: Prepared, __: Backfill, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StateUnavailableError("postgresql://host/name", "it does not answer")

    monkeypatch.setattr(metrics, "looking", away)


def died(shop: Prepared, _: Backfill, __: pytest.MonkeyPatch) -> None:
    shop.claim("toy.sales", "2024-01-28", "2024-01-29")


def planned(shop: Prepared, backfill: Backfill, _: pytest.MonkeyPatch) -> None:
    shop.land_nothing(raw_sales)
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    asked = ("--select", "toy.sales", "--restate", "toy.sales:2024-01-29..2024-01-30")
    backfill("plan", *asked, "--reason", "counted twice")


SCENES: dict[str, Callable[[Prepared, Backfill, pytest.MonkeyPatch], None]] = {
    "A source is late or absent": absent,
    "A batch failed": failed,
    "Published cells are stale": stale,
    "Batches wait": waiting,
    "The state can't be read": down,
    "A process died": died,
    "A backfill, step by step": planned,
}


def pages() -> dict[str, str]:
    """Give the pages by their headings."""
    _, *found = re.split(
        r"^## ", (DOCS / "runbook.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return {page.partition("\n")[0]: page for page in found}


def steps(page: str) -> Iterator[tuple[list[str], str]]:
    """Give the commands of a page, each with what it is said to print."""
    for block in re.findall(r"^```console\n(.+?)^```", page, re.MULTILINE | re.DOTALL):
        for step in re.split(r"^\$ backfill ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            yield command.split(), printed


def as_pattern(printed: str) -> str:
    """Let dots stand for anything within a line, and any blanks for any others."""
    words = re.split(r"[^\S\n]+", printed.strip())
    return r"[^\S\n]+".join(re.escape(word).replace("…", r".*") for word in words)


@pytest.mark.parametrize("heading", SCENES)
def test_a_page_prints_what_it_says(
    heading: str, shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    SCENES[heading](shop, backfill, monkeypatch)

    played = [*steps(pages()[heading])]

    assert played
    for command, printed in played:
        out = re.sub(r"[^\S\n]+\n", "\n", backfill(*command).out.strip() + "\n").strip()
        assert re.fullmatch(as_pattern(printed), out), f"{command}\n{out}"


def test_every_page_is_played():
    assert pages().keys() == SCENES.keys()


def test_every_alert_has_a_page_and_watches_what_is_measured(backfill: Backfill):
    rules = (DOCS / "examples" / "alerts.yml").read_text(encoding="utf-8")
    runbook = (DOCS / "runbook.md").read_text(encoding="utf-8")
    links = {re.sub(r"[^a-z ]", "", heading.lower()).replace(" ", "-") for heading in SCENES}

    alerts = re.findall(r"alert: (\w+)", rules)
    pages_named = set(re.findall(r"page: ([a-z-]+)", rules))
    measured = set(re.findall(r"# TYPE (backfill_\w+)", backfill("metrics").out))

    assert all(f"`{alert}`" in runbook for alert in alerts)
    assert pages_named <= links
    assert set(re.findall(r"backfill_\w+", rules + runbook)) <= measured
