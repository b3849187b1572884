from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from backfill_assets.cli import project
from backfill_assets.cli.exits import CHANGES
from backfill_assets.cli.project import now
from backfill_assets.cli.verbs.status import _remedy
from backfill_assets.intervals.instants import minute_text
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.tables import PLANS
from backfill_assets_tests import toy
from backfill_assets_tests.cli.prepared import opened_run

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

TAGGED = """
from dataclasses import replace
from backfill_assets_tests import toy
SOURCES = toy.SOURCES
MODELS = tuple(replace(m, tags={"tier": "gold"}) if m is toy.sales else m for m in toy.MODELS)
"""


SMALLER = """
from backfill_assets_tests import toy
SOURCES = toy.SOURCES
MODELS = [toy.sales]
"""


def test_what_is_missing_is_shown_as_ranges_and_the_count_comes_last(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")

    ended = backfill("status", "--select", "toy.sales")

    assert ended.code == 0
    assert ended.lines == [
        "model                  ready  required  missing  stale",
        "toy.sales  ████░░░░░░      3         7        4      0",
        "missing  toy.sales: 2024-01-31..2024-02-03 (4)",
        "Next: backfill run",
        "prod: 1 model, 4 cells missing, 0 stale.",
    ]


def test_models_are_listed_upstream_first_and_sources_not_at_all(backfill: Backfill):
    models = [row["model"] for row in backfill("status", "--json").json["models"]]

    assert models.index("toy.sales") < models.index("toy.sales_of_three_days")
    assert "toy.raw_sales" not in models


def test_models_are_selected_by_glob_tag_and_readers_and_listed_upstream_first(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "tagged_shop.py").write_text(TAGGED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "tagged_shop")
    monkeypatch.setenv("BACKFILL_CACHE_DIR", str(tmp_path / "cache"))

    def names(*select: str) -> list[str]:
        asked = [part for model in select for part in ("--select", model)]
        return [row["model"] for row in backfill("status", *asked, "--json").json["models"]]

    assert names("toy.click*") == ["toy.clicks", "toy.clicks_daily"]
    assert names("tag:tier=g*") == ["toy.sales"]
    assert names("toy.clicks_daily,toy.raw_clicks+") == ["toy.clicks", "toy.clicks_daily"]
    assert names("toy.shops", "tag:tier=gold") == [
        name for name in names() if name in ("toy.shops", "toy.sales")
    ]


def test_a_cell_is_stale_once_what_it_read_has_changed(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")
    shop.fill("toy.sales_of_three_days", "2024-01-30", "2024-01-31")
    shop.change("toy.sales", "2024-01-29", "2024-01-29")

    ended = backfill("status", "--select", "toy.sales_of_three_days", "--json")

    (row,) = ended.json["models"]
    assert (row["ready"], row["stale"]) == (2, 2)
    assert row["stale_ranges"] == "2024-01-30..2024-01-31 (2)"
    assert row["stale_because"] == {"toy.sales": "2024-01-29"}


def test_what_is_stale_is_said_with_what_changed(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")
    shop.fill("toy.sales_of_three_days", "2024-01-30", "2024-01-31")
    shop.change("toy.sales", "2024-01-29", "2024-01-29")

    said = backfill("status", "--select", "toy.sales_of_three_days").out

    assert (
        "stale    toy.sales_of_three_days: 2024-01-30..2024-01-31 (2); "
        "toy.sales changed in 2024-01-29; needs a plan (beyond the late window of "
        "toy.sales_of_three_days)\n" in said
    )


def test_the_watermark_is_the_end_of_the_last_ready_cell(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")

    marks = {row["model"]: row["watermark"] for row in backfill("status", "--json").json["models"]}

    assert marks["toy.sales"] == "2024-01-31T00:00:00+00:00"
    assert marks["toy.sales_monthly"] is None


def test_cells_of_a_live_batch_are_said_to_be_at_work(shop: Prepared, backfill: Backfill):
    shop.claim("toy.sales", "2024-01-28", "2024-01-29")

    said = backfill("status", "--select", "toy.sales").lines[-1]

    assert said == "prod: 1 model, 7 cells missing, 2 of them at work, 0 stale."


def test_what_the_next_run_refreshes_needs_no_plan():
    assert [_remedy(3, 0), _remedy(3, 3, ["toy.sales"]), _remedy(3, 2)] == [
        "needs a plan",
        "the next run refreshes them",
        "the next run refreshes 2; else a plan",
    ]
    assert [_remedy(3, 0, ["toy.sales"], "p1"), _remedy(3, 2, (), "p1")] == [
        "waits for plan p1",
        "the next run refreshes 2; else waits for plan p1",
    ]


def test_cells_that_plans_needed_not_build_are_counted(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    shop.serve("p1", "toy.sales", "2024-01-28", "2024-01-28", reason="restated")
    with opened_run("prod") as run:
        for _ in range(2):  # applied twice: the last count is the one
            run.store.plans.tell(
                "p1", PlanEventKind.BUILT, who="ana", detail={"spared": {"toy.sales": 3}}
            )

    said = backfill("status", "--select", "toy.sales").out

    assert "spared   toy.sales: 3 cells in 7 days; what they read was built again" in said


def test_a_plan_that_waits_is_named_with_until_when_late_data_waits_for_it(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    plan_id = backfill("plan", "--select", "toy.sales", "--json").json["plan_id"]
    assert backfill("status", "--json").json["plans"] == []
    with opened_run("prod") as run:
        run.store.plans.set_plan_status(plan_id, (PlanStatus.PROPOSED,), PlanStatus.BUILT)

    (row,) = backfill("status", "--json").json["plans"]
    assert (row["plan"], row["status"], row["outwaited"]) == (plan_id, "built", False)
    said = backfill("status").out
    assert f"plan     {plan_id} (built, asked for by " in said
    assert f"; backfill promote {plan_id} or backfill abandon {plan_id}\n" in said

    monkeypatch.setattr(project, "now", lambda: now() + timedelta(days=8))
    said = backfill("status").out
    since, until = (datetime.fromisoformat(row[word]) for word in ("since", "until"))
    assert since < until
    assert f"waited until {minute_text(until)}: it no longer blocks late data" in said
    assert f"promoted; backfill abandon {plan_id}\n" in said


def test_a_plan_that_can_not_be_read_is_named_with_what_ends_it(backfill: Backfill):
    plan_id = backfill("plan", "--select", "toy.sales", "--json").json["plan_id"]
    with opened_run("prod") as run:
        run.store.plans.set_plan_status(plan_id, (PlanStatus.PROPOSED,), PlanStatus.BUILT)
        of_another_release = sa.update(PLANS).values(content="{}")
        run.store.plans._database.write(lambda connection: connection.execute(of_another_release))

    assert "can't be read: it does not say" in (said := backfill("status").out)
    assert f"; backfill abandon {plan_id}\n" in said
    assert backfill("plan", "--select", "toy.sales").code == CHANGES


def test_what_is_required_is_told_as_of_the_instant_that_is_named(backfill: Backfill):
    def required(*options: str) -> int:
        said = backfill("status", "--select", "toy.sales", *options, "--json").json
        return said["models"][0]["required"]

    assert required("--now", "2024-01-31T00:00:00Z") == 3
    assert required() == 7


def test_an_instant_without_an_offset_is_refused(backfill: Backfill):
    for verb in ("status", "plan", "run"):
        ended = backfill(verb, "--now", "2024-01-31T00:00:00")
        assert ended.code == 1
        assert "with its offset" in ended.err


def test_a_plan_is_made_for_the_instant_that_is_named(backfill: Backfill):
    plan = backfill("plan", "--select", "toy.sales", "--now", "2024-01-31T00:00:00Z", "--json").json

    (sales,) = [model for model in plan["models"] if model["model"] == "toy.sales"]
    assert sum(batch["cells"] for batch in sales["batches"]) == 3
    assert plan["until"].startswith("2024-01-31T00:00:0")
    assert plan["created_at"] > plan["until"]


def test_the_last_failure_is_shown_with_its_cause_and_the_command_that_tells_more(
    shop: Prepared, backfill: Backfill
):
    shop.fail("toy.sales", "2024-01-28", "2024-01-29", "an older one")
    failed = shop.fail("toy.sales", "2024-01-30", "2024-01-31", "an amount is negative")

    ended = backfill("status", "--select", "toy.sales")
    (row,) = backfill("status", "--select", "toy.sales", "--json").json["models"]

    (line,) = [text for text in ended.lines if text.startswith("failed")]
    assert line.startswith("failed   toy.sales: 2024-01-30..2024-01-31 (2) at ")
    assert line.endswith(f" UTC: an amount is negative (`backfill batches {failed[:8]}`)")
    assert (row["failure"]["batch_id"], row["failure"]["cells"]) == (
        failed,
        "2024-01-30..2024-01-31 (2)",
    )


def test_a_failure_before_a_batch_began_outlives_the_terminal(backfill: Backfill):
    backfill("run", "--select", "toy.sales")

    (row,) = backfill("status", "--select", "toy.sales", "--json").json["models"]

    assert row["failure"]["error"].startswith("'toy.raw_sales' has no Delta table")
    assert row["failure"]["command"] == "backfill why toy.sales 2024-01-28"


def test_a_failure_is_over_once_its_cells_are_ready(shop: Prepared, backfill: Backfill):
    shop.fail("toy.sales", "2024-01-30", "2024-01-31", "an amount is negative")
    shop.fill("toy.sales", "2024-01-30", "2024-01-30")

    (half,) = backfill("status", "--select", "toy.sales", "--json").json["models"]
    shop.fill("toy.sales", "2024-01-31", "2024-01-31")
    (over,) = backfill("status", "--select", "toy.sales", "--json").json["models"]

    assert half["failure"]["cells"] == "2024-01-31"
    assert over["failure"] is None


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize("begun", [True, False], ids=["batch", "start"])
def test_a_failure_is_over_once_its_cells_were_built_also_where_they_are_late_since(
    shop: Prepared, backfill: Backfill, *, begun: bool
):
    if begun:
        shop.fail("toy.sales", "2024-01-28", "2024-01-29", "an amount is negative")
    else:
        backfill("run", "--select", "toy.sales")  # the source has no table yet
    for amount in (1, 2):
        row = (date(2024, 1, 28), "north", Decimal(amount))
        toy.land_rows(str(shop.data), toy.raw_sales, row, mode="overwrite")
        (found,) = backfill("status", "--select", "toy.sales", "--json").json["models"]
        assert (found["stale"], found["failure"] is None) == (
            (0, False) if amount == 1 else (1, True)
        )
        backfill("run", "--select", "toy.sales")


def test_a_check_ends_with_1_as_long_as_a_cell_is_missing_or_stale(
    shop: Prepared, backfill: Backfill
):
    asked = ("status", "--check", "--select", "toy.sales")
    missing = backfill(*asked)
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")

    assert (missing.code, backfill("status", "--select", "toy.sales").code) == (1, 0)
    assert backfill(*asked).code == 0


def test_a_model_that_is_published_and_not_declared_any_more_is_named_with_what_removes_it(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    shop.fill("toy.sales_of_three_days", "2024-01-28", "2024-02-03")
    (tmp_path / "smaller_shop.py").write_text(SMALLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "smaller_shop")

    ended = backfill("status")

    assert ended.lines[1:] == [
        "toy.sales  ██████████      7         7        0      0",
        (
            "removed  toy.sales_of_three_days: it is not declared any more; prod publishes what it has of it, and nothing fills "
            "it, until a plan that removes it is promoted (`backfill plan`)"
        ),
        "prod: 1 model, 0 cells missing, 0 stale.",
    ]
    assert backfill("status", "--json").json["removed"] == ["toy.sales_of_three_days"]
    assert "removed" not in backfill("status", "--select", "toy.sales").out


def test_an_edit_that_no_plan_publishes_needs_a_plan(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    (tmp_path / "edited_shop.py").write_text(
        "from dataclasses import replace\nfrom backfill_assets_tests.toy import SOURCES, sales\n"
        "MODELS = [replace(sales, description='an edit')]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "edited_shop")

    assert backfill("status").lines[-2] == "Next: backfill plan"


def test_a_model_that_reads_an_edited_one_is_not_called_edited(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "edited_sales.py").write_text(
        "from backfill_assets_tests.toy import SOURCES, sales_of_three_days\n"
        "from backfill_assets_tests.toy_doubled import MODELS as DOUBLED\n"
        "MODELS = [*DOUBLED, sales_of_three_days]\n"
    )
    for name in ("toy.sales", "toy.sales_of_three_days"):
        shop.fill(name, "2024-01-28", "2024-02-03")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "edited_sales")

    said = [line.split(";")[0] for line in backfill("status").lines if line.startswith("changed")]

    assert said == [
        "changed  toy.sales: its declaration has changed",
        "changed  toy.sales_of_three_days: what it reads has changed",
    ]


@pytest.mark.usefixtures("computing")
def test_what_a_plan_is_to_publish_is_filled_by_that_plan_and_no_run_is_offered_for_it(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    toy.land_rows(str(shop.data), toy.raw_sales, (date(2024, 1, 28), "north", Decimal(1)))
    only = ("--select", "toy.sales")
    plan_id = backfill("plan", *only, "--json").json["plan_id"]
    assert backfill("status", *only).lines[-2] == "Next: backfill run"
    assert backfill("apply", plan_id).code == 0

    assert backfill("status", *only).lines[-2] == f"Next: backfill diff {plan_id}"
    assert backfill("why", "toy.sales", "2024-01-28").lines[-1] == f"Next: backfill diff {plan_id}"
    waits = f"2024-01-28..2024-02-03 (7): for plan {plan_id}, which writes its table"
    assert waits in backfill("run", *only).err

    assert backfill("promote", plan_id, "--yes").code == 0
    assert backfill("status", *only).lines[-1] == "prod: 1 model, 0 cells missing, 0 stale."


@pytest.mark.usefixtures("computing")
def test_late_cells_name_the_plan_that_stands_for_them_and_a_new_one_once_more_are_late(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "smaller_shop.py").write_text(SMALLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "smaller_shop")

    def sell(day: int) -> None:
        toy.land_rows(str(shop.data), toy.raw_sales, (date(2024, 1, day), "north", Decimal(1)))

    sell(28)
    assert backfill("run").code == 0
    sell(29)
    assert backfill("status").lines[-2] == "Next: backfill plan"

    needed = backfill("run", "--json").json["late"]["needed_plan"]
    said = backfill("status")
    assert said.lines[-2:] == [
        f"Next: backfill show {needed}",
        f"prod: 1 model, 0 cells missing, 1 stale: 1 wait for plan {needed}.",
    ]
    assert f"toy.raw_sales changed in 2024-01-29; waits for plan {needed}" in said.out
    assert backfill("status", "--json").json["needed_plan"] == needed

    sell(30)
    assert backfill("status").lines[-2] == "Next: backfill plan"
    assert backfill("status", "--json").json["needed_plan"] is None
