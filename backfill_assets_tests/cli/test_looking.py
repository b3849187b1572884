"""An answer never rests on a source that was not looked at without saying so."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.cli import project
from backfill_assets.cli.project import now
from backfill_assets.engine.fill.outstanding import Outstanding
from backfill_assets.engine.plans.making import make_plan
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.cli.prepared import opened_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from backfill_assets.engine.plans.making import MadePlan
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = ("--select", "toy.sales")


def land(shop: Prepared, sales: Mapping[int, str]) -> Path:
    """Overwrite the sales, one for each day of January, by one file."""
    path = shop.data / "sources" / "raw_sales"
    path.mkdir(parents=True, exist_ok=True)
    rows = pa.table(
        {
            "ds": pa.array([date(2024, 1, day) for day in sales], pa.date32()),
            "shop": ["north"] * len(sales),
            "amount": pa.array(
                [Decimal(amount) for amount in sales.values()], pa.decimal128(18, 2)
            ),
        }
    )
    write_deltalake(str(path), rows, mode="overwrite")
    return path


@pytest.fixture
def filled(shop: Prepared, backfill: Backfill) -> Prepared:
    land(shop, {28: "1.00"})
    backfill("status", *SALES)  # the first look
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    assert backfill("status", *SALES).code == backfill("plan", *SALES).code == 0
    return shop


def plan_of_sales(project: Project, request: PlanRequest, told: Callable[[str], None]) -> MadePlan:
    return make_plan(project, replace(request, select=SALES[1:]), told=told)


def test_an_overwritten_source_is_looked_at_by_status_and_by_plan_without_spark(
    filled: Prepared, backfill: Backfill
):
    land(filled, {28: "1.00", 29: "2.00", 31: "3.00"})

    planned = backfill("plan", *SALES)
    looked = backfill("status", *SALES)

    assert planned.code == 2
    assert planned.lines[-1].endswith(" 2 stale: 2 need a plan.")
    assert (looked.code, planned.err) == (0, "")
    plan_id = planned.lines[0].split()[1]
    assert looked.lines[-2:] == [
        f"Next: backfill show {plan_id}",
        f"prod: 1 model, 0 cells missing, 2 stale: 2 wait for plan {plan_id}.",
    ]
    assert "late     toy.sales: 2024-01-29, 2024-01-31" in looked.out


def test_a_plan_that_waits_is_in_the_way_of_another_until_it_has_waited_for_too_long(
    filled: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    land(filled, {28: "1.00", 29: "2.00", 31: "3.00"})
    plan_id = backfill("plan", *SALES, "--json").json["plan_id"]
    with opened_run("prod") as run:
        run.store.plans.set_plan_status(plan_id, (PlanStatus.PROPOSED,), PlanStatus.BUILT)

    conflict = f"toy.sales 2024-01-29, 2024-01-31: plan {plan_id}; this plan can't be applied"
    blocked = backfill("plan", *SALES).out
    assert conflict in blocked
    assert f"Next: backfill show {plan_id}\n" in blocked
    assert "backfill apply" not in blocked

    monkeypatch.setattr(project, "now", lambda: now() + timedelta(days=8))
    assert plan_id not in backfill("plan", *SALES).out


@pytest.mark.parametrize(
    ("left", "code"),
    [
        (Outstanding(missing=2), 0),
        (Outstanding(stale=1, waits={"wait": 1}), 3),
        (Outstanding(unlooked=("toy.raw_sales",)), 3),
    ],
    ids=["what nobody asked for", "stale cells", "a source that was not looked at"],
)
def test_a_plan_of_nothing_ends_with_0_only_where_nothing_waits_and_everything_was_looked_at(
    filled: Prepared,
    backfill: Backfill,
    monkeypatch: pytest.MonkeyPatch,
    left: Outstanding,
    code: int,
):
    del filled
    monkeypatch.setattr("backfill_assets.cli.verbs.plan.left_before", lambda *_: left)
    monkeypatch.setattr("backfill_assets.cli.verbs.apply.left_before", lambda *_: left)
    assert backfill("plan", *SALES).code == code
    monkeypatch.setattr("backfill_assets.cli.verbs.apply.make_plan", plan_of_sales)
    applied = backfill("apply", "--yes")
    assert (applied.code, applied.out) == (code, backfill("plan", *SALES).out)


def test_what_could_not_be_looked_at_is_named_and_does_not_end_with_0(
    filled: Prepared, backfill: Backfill
):
    for file in land(filled, {28: "1.00", 29: "2.00"}).glob("*.parquet"):
        file.unlink()

    ended = backfill("status", *SALES)

    assert ended.code == 3
    assert (
        "source 'toy.raw_sales' has commits that were not looked at, so there may be more to do; "
        "`backfill plan` looks at the rows"
    ) in " ".join(ended.out.split())
    assert backfill("status", *SALES, "--json").json["left"]["not_looked_at"] == ["toy.raw_sales"]
