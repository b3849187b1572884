"""Promoting a plan that is promoted already is a success."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.toy import FIRST, LAST

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def test_a_promoted_plan_says_when_and_by_whom_it_was_and_ends_with_0(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", FIRST, LAST)
    asked = f"toy.sales:{FIRST}..{FIRST}"
    plan_id = backfill("plan", "--restate", asked, "--reason", "wrong", "--json").json["plan_id"]
    with opened_run("prod") as run:
        run.store.plans.set_plan_status(plan_id, PlanStatus.PROPOSED, PlanStatus.PROMOTED)
        told = run.store.plans.tell(
            plan_id, PlanEventKind.PROMOTED, who="grace", detail={"number": 7}
        )

    said = backfill("promote", plan_id)
    plain = backfill("promote", plan_id, "--json")

    assert said.code == plain.code == 0
    assert f"{plan_id}: nothing to do: it was promoted on {told.at:%Y-%m-%d}" in said.out
    assert "by grace" in said.out
    assert (plain.json["promoted_by"], plain.json["number"]) == ("grace", 7)
