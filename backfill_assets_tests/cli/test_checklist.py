from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.testing import time_passed
from backfill_assets_tests.toy import FIRST, LAST, raw_sales

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def planned(shop: Prepared, backfill: Backfill, *reason: str) -> str:
    shop.fill("toy.sales", FIRST, LAST)
    asked = ("--select", "toy.sales", "--restate", "toy.sales:2024-01-29..2024-01-30")
    return backfill("plan", *asked, *reason, "--json").json["plan_id"]


def test_a_checklist_is_one_page_with_the_count_last(shop: Prepared, backfill: Backfill):
    shop.land_nothing(raw_sales)
    plan = planned(shop, backfill, "--reason", "counted twice")

    ended = backfill("checklist", plan)

    assert ended.code == 0
    assert [line for line in ended.lines if not line.startswith(" ")][:3] == [
        "before it computes",
        "before it is published",
        "afterwards",
    ]
    assert "  met       window: toy.sales: 2024-01-29..2024-01-30 (2)" in ended.lines
    assert "  not met   built: nothing is built yet" in ended.lines
    assert ended.lines[-2] == f"Next: backfill apply {plan}"
    assert ended.lines[-1].startswith(f"{plan}: ")
    assert ended.lines[-1].endswith(" not met.")


def test_a_plan_without_a_reason_has_a_hole(shop: Prepared, backfill: Backfill):
    shop.land_nothing(raw_sales)
    plan = planned(shop, backfill)

    items = {item["name"]: item for item in backfill("checklist", plan, "--json").json["items"]}

    assert items["asked by and why"]["standing"] == "not met"
    assert items["asked by and why"]["todo"] == "make the plan again with `--reason TEXT`"


def test_check_ends_with_1_while_an_item_is_not_met(shop: Prepared, backfill: Backfill):
    shop.land_nothing(raw_sales)
    plan = planned(shop, backfill)

    assert backfill("checklist", plan, "--check").code == 1


def test_a_plan_that_was_given_up_is_not_called_built_and_nothing_is_to_do(
    shop: Prepared, backfill: Backfill
):
    shop.land_nothing(raw_sales)
    plan = planned(shop, backfill, "--reason", "counted twice")
    backfill("abandon", plan)

    ended = backfill("checklist", plan)

    assert "  not met   built: the plan is abandoned" in ended.lines
    assert "  not met   audits: none has run" in ended.lines
    assert "backfill apply" not in ended.out
    assert backfill("checklist", plan, "--check").code == 1


def test_the_next_step_is_one_that_is_not_refused(shop: Prepared, backfill: Backfill):
    shop.land_nothing(raw_sales)
    plan = planned(shop, backfill, "--reason", "counted twice")
    backfill("pause", plan)
    assert backfill("checklist", plan).lines[-2] == f"Next: backfill resume {plan}"
    backfill("resume", plan)

    with time_passed(timedelta(days=8)):
        assert "backfill apply" not in backfill("checklist", plan).out


def test_an_unknown_plan_is_a_clear_error(backfill: Backfill):
    ended = backfill("checklist", "pnone")

    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert "Traceback" not in ended.err
