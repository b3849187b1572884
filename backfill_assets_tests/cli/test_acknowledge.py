"""What `acknowledge`, `notices`, `results` and `promote --at` say, and what they refuse without a traceback."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals.instants import minute_text
from backfill_assets.snapshots.plan_check import PlanCheck
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.toy import FIRST, LAST

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = "toy.sales"
REPORT = "report of January"


@pytest.fixture
def plan_id(shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch) -> str:
    """A plan that counts as built; nothing of it is."""
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    shop.fill(SALES, FIRST, LAST)
    made = backfill("plan", "--restate", f"{SALES}:{FIRST}..{FIRST}", "--json").json["plan_id"]
    with opened_run("prod") as run:
        run.store.plans.set_plan_status(made, PlanStatus.PROPOSED, PlanStatus.BUILT)
    return made


def test_a_plan_that_changes_nothing_for_a_consumer_is_not_acknowledged(
    plan_id: str, backfill: Backfill
):
    said = backfill("acknowledge", plan_id, "counter report")
    unknown = backfill("acknowledge", plan_id, "counter reports", "--json")

    assert (said.code, unknown.code, unknown.out) == (1, 1, "")
    assert "changes nothing that consumer 'counter report' reads; expected no answer" in said.err
    assert "did you mean 'counter report'" in unknown.err
    assert backfill("approvals", plan_id, "--json").json["awaits"] == []


def test_a_plan_that_a_check_stops_is_not_offered_for_promotion(plan_id: str, backfill: Backfill):
    diff, abandon = f"backfill diff {plan_id}", f"backfill abandon {plan_id}"
    assert backfill("show", plan_id, "--json").json["next"] == [
        diff,
        f"backfill promote {plan_id}",
        abandon,
    ]
    found = PlanCheck(SALES, "no row differs", passed=False, text="found 3 rows")
    with opened_run("prod") as run:
        run.store.checks.keep(plan_id, [found])

    accept = f"backfill accept {plan_id} {SALES} 'no row differs' --reason TEXT"
    assert backfill("show", plan_id, "--json").json["next"] == [diff, accept, abandon]
    assert f"Next: {diff}, or {accept}, or {abandon}" in backfill("show", plan_id).out
    (waiting,) = backfill("status", "--json").json["plans"]
    assert waiting["next"] == [accept, abandon]


def test_no_notice_is_listed_where_no_consumer_asks_for_one(plan_id: str, backfill: Backfill):
    assert backfill("notices", plan_id, "--send").lines == [
        "0 notices, 0 not delivered yet, 0 given up."
    ]
    assert backfill("notices", "--json").json == {"notices": []}


def test_an_appointment_is_told_by_promote_and_show_until_it_is_taken_back(
    plan_id: str, backfill: Backfill
):
    made = backfill("promote", plan_id, "--yes", "--at", "Sun 03:00 Europe/Berlin")
    assert made.code == 0, made.err
    assert made.lines[-1].startswith(f"{plan_id} is to be promoted on ")
    assert "Promotes  is to be promoted on" in backfill("show", plan_id).out
    at = datetime.fromisoformat(backfill("show", plan_id, "--json").json["appointment"]["at"])
    assert f"; to be promoted on {minute_text(at)}; " in backfill("status").out

    wrong = backfill("promote", plan_id, "--yes", "--at", "soon")
    past = backfill("promote", plan_id, "--yes", "--at", "2024-01-01T00:00:00Z")
    assert (wrong.code, past.code) == (1, 1)
    assert "--at 'soon' can't be read; expected a weekday and a time" in wrong.err
    assert "is in the past; expected an instant in the future" in past.err

    gone = backfill("promote", plan_id, "--yes", "--at", "never", "--json").json
    assert gone == {"plan_id": plan_id, "appointment": None}
    assert "Promotes" not in backfill("show", plan_id).out


def test_results_are_registered_named_by_plans_listed_and_forgotten(
    plan_id: str, backfill: Backfill
):
    made = backfill("results", "add", REPORT, SALES, f"{FIRST}..{LAST}", "--rerun")
    assert made.lines == [f"{REPORT}: rests on {SALES} {FIRST}..{LAST} (7)."]
    strange = backfill("results", "add", REPORT, SALES, "2030-01-01")
    assert (strange.code, strange.out) == (1, "")
    assert f"prod has no data of {SALES} in 2030-01-01" in strange.err

    planned = " ".join(backfill("plan", "--restate", f"{SALES}:{FIRST}..{FIRST}").out.split())
    assert f"May invalidate: {REPORT}, which rests on {SALES} {FIRST}; it has to be" in planned
    listed = backfill("results", "list")
    assert (listed.code, listed.lines[-1]) == (0, "prod: 1 result, 0 outdated.")
    (result,) = backfill("results", "list", "--json").json["results"]
    assert result["name"] == REPORT
    assert minute_text(datetime.fromisoformat(result["at"])) in listed.out
    assert "said" not in result

    assert backfill("results", "remove", REPORT).lines == [f"{REPORT}: forgotten, 1 registration."]
    again = backfill("results", "remove", REPORT)
    assert again.code == 1
    assert (
        f"there is no result '{REPORT}' in prod; expected a registered result; there is none"
        in again.err
    )
