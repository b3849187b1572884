"""Promoting a plan that is promoted already is a success."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backfill_assets.evidence.manifest import REFUSED
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

    watched = backfill("promote", plan_id, "--watch", "2d")
    assert f"Watched until {told.at + timedelta(days=2):%Y-%m-%d %H:%M} UTC" in watched.out
    until = datetime.fromisoformat(backfill("promote", plan_id, "--json").json["watched_until"])
    assert until == told.at + timedelta(days=2)

    late = backfill("promote", plan_id, "--at", "Sun 03:00")
    assert (late.code, late.out) == (1, "")
    assert f"plan {plan_id} is promoted already, so --at 'Sun 03:00' has no effect" in late.err


def test_a_plan_says_when_and_why_its_promotion_was_refused(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", FIRST, LAST)
    asked = f"toy.sales:{FIRST}..{FIRST}"
    plan_id = backfill("plan", "--restate", asked, "--reason", "wrong", "--json").json["plan_id"]
    with opened_run("prod") as run:
        run.store.plans.tell(plan_id, PlanEventKind.APPLYING, who="grace")
        at = run.store.evidence.owe(plan_id, REFUSED, "10 rows of others would change").at
        run.store.plans.tell(plan_id, PlanEventKind.PAUSED, who="grace")

    shown = backfill("show", plan_id)
    plain = backfill("show", plan_id, "--json")

    told = [line.strip() for line in shown.lines if " UTC  " in line]
    words = [line.split("UTC  ")[1] for line in told]
    refused = "promotion refused: 10 rows of others would change"
    assert words == ["applying by grace", refused, "paused by grace"]
    assert plain.json["refused"] == [
        {"at": at.isoformat(), "why": "10 rows of others would change"}
    ]


def test_what_can_not_be_promoted_is_not_watched_either(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", FIRST, LAST)
    asked = f"toy.sales:{FIRST}..{FIRST}"
    plan_id = backfill("plan", "--restate", asked, "--json").json["plan_id"]
    assert backfill("abandon", plan_id).code == 0

    refused = backfill("promote", plan_id, "--yes", "--watch", "2d")

    assert (refused.code, "is abandoned already, nothing was written" in refused.err) == (1, True)
    told = backfill("show", plan_id, "--json").json["events"]
    assert "watch" not in [event["event"] for event in told]


def test_an_appointment_is_asked_for_by_its_time_and_taken_back_without_a_question(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", FIRST, LAST)
    asked = f"toy.sales:{FIRST}..{FIRST}"
    plan_id = backfill("plan", "--restate", asked, "--json").json["plan_id"]

    asking = backfill("promote", plan_id, "--at", "Sun 03:00")
    assert asking.code == 1
    assert (
        "reads 3 models with other data from Sun 03:00 on, and there is no terminal" in asking.err
    )
    never = backfill("promote", plan_id, "--at", "never")
    assert (never.code, never.err) == (0, "")
    empty = backfill("promote", plan_id, "--yes", "--at", "")
    assert empty.code == 1
    assert "--at '' can't be read" in empty.err
