"""What a person lives through in the UI: fill, fill again, a failing model, a killed run.

Webserver, daemon and run queue are real; the calls are those of the UI's buttons. Each story has
models of its own, so their order does not matter.
"""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from backfill_assets import resolve
from backfill_assets.settings import Settings
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.store import Store
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.planting import sell
from backfill_assets_tests.toy import DAYS, FIRST, MONTHS, raw_returns, raw_sales

if TYPE_CHECKING:
    from backfill_assets_tests.e2e.graphql import Client, Materialized
    from backfill_assets_tests.e2e.server import Project

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.story]

HOURS = [f"{FIRST}-{hour:02d}:00" for hour in range(24)]
SHOP = {
    "toy.sales": list(DAYS),
    "toy.sales_of_three_days": list(DAYS),
    "toy.sales_monthly": list(MONTHS),
    "toy.shops": [None],
}


def test_a_backfill_over_several_grains_fills_all_once_and_a_second_one_changes_nothing(
    client: Client, served_project: Project
):
    first = client.launch(*SHOP, partitionNames=list(DAYS))

    assert client.ended(first) == "COMPLETED_SUCCESS"
    assert set(client.runs_of(first).values()) == {"SUCCESS"}
    for model, cells in SHOP.items():
        told = client.materialized(model)
        assert partitions(told) == cells
        assert not any(materialization.skipped for materialization in told)

    before = {model: rows(served_project, model) for model in SHOP}
    second = client.launch(*SHOP, allPartitions=True)

    assert client.ended(second) == "COMPLETED_SUCCESS"
    runs = client.runs_of(second)
    for model, cells in SHOP.items():
        told = [
            materialization
            for materialization in client.materialized(model)
            if materialization.run_id in runs
        ]
        assert partitions(told) == cells
        assert all(materialization.skipped for materialization in told)
    assert {model: rows(served_project, model) for model in SHOP} == before

    sell(served_project.data_root, raw_sales, DAYS[1], 7)
    third = client.launch("toy.sales", partitionNames=list(DAYS[:3]))

    assert client.ended(third) == "COMPLETED_SUCCESS"
    runs = client.runs_of(third)
    assert set(runs.values()) == {"SUCCESS"}
    assert rows(served_project, "toy.sales") == before["toy.sales"]
    [plan] = waiting_plans(served_project)
    waiting = [
        materialization
        for materialization in client.materialized("toy.sales")
        if materialization.run_id in runs
    ]
    assert partitions(waiting) == list(DAYS[:3])
    assert all(says_it_waits(materialization, plan) for materialization in waiting)
    told_before = len(client.materialized("toy.sales"))

    done = served_project.backfill("promote", plan, "--yes")

    assert done.returncode == 0, done.stderr
    assert rows(served_project, "toy.sales") != before["toy.sales"]
    new = client.materialized("toy.sales")[:-told_before]
    assert [materialization.partition for materialization in new] == [DAYS[1]]


def says_it_waits(told: Materialized, plan: str) -> bool:
    """Whether a cell is reported as waiting for a plan, with the form that promotes it."""
    form = told.promote or ""
    named = (told.why or "").startswith(f"waits for approval, plan {plan}: ")
    return named and "/jobs/promote/playground/setup?config=" in form and plan in form


def test_a_failing_model_stops_its_dependents_and_the_next_run_fills_all_that_can_be(
    client: Client, served_project: Project
):
    sell(served_project.data_root, raw_returns, "2024-02-02", -1000)
    good = [*DAYS[:4], DAYS[6]]

    backfill = client.launch("toy.returns", "toy.returns_daily", partitionNames=list(DAYS))

    assert client.ended(backfill) == "COMPLETED_FAILED"
    [(run_id, status)] = client.runs_of(backfill).items()  # one run for both models
    assert status == "FAILURE"
    [(step, said)] = client.failures(run_id).items()
    assert step == "toy__returns"
    for word in ("2024-02-01..2024-02-02", "amount_not_negative", "found 1 of", "allowed 0 rows"):
        assert word in said
    assert partitions(client.materialized("toy.returns")) == good
    assert client.materialized("toy.returns_daily") == []

    done = served_project.backfill("run", "--select", "toy.returns,toy.returns_daily", "--json")

    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)["models"]
    assert (told["toy.returns"]["cells"], told["toy.returns"]["failed"]) == (0, 1)
    assert told["toy.returns_daily"]["cells"] == len(good)
    assert missing(served_project, "toy.returns_daily") == "2024-02-01..2024-02-02 (2)"
    assert [row["ds"].isoformat() for row in rows(served_project, "toy.returns_daily")] == [
        day for day in good if day != "2024-01-30"
    ]


def test_a_killed_run_is_resumed_where_it_was_and_nothing_is_doubled(
    client: Client, served_project: Project
):
    backfill = client.launch("toy.clicks", partitionNames=HOURS)
    [run_id] = until(
        lambda: client.runs_of(backfill), seconds=180, what="the backfill has launched its run"
    )
    until(lambda: client.materialized("toy.clicks"), seconds=240, what="a batch is done", every=0.1)
    os.kill(client.pid_of(run_id), signal.SIGKILL)

    assert client.run_ended(run_id) == "FAILURE"
    before = {materialization.partition for materialization in client.materialized("toy.clicks")}
    assert 0 < len(before) < len(HOURS)

    again = client.reexecute(run_id)

    assert client.run_ended(again) == "SUCCESS"
    told = [
        materialization
        for materialization in client.materialized("toy.clicks")
        if materialization.run_id == again
    ]
    assert partitions(told) == HOURS
    assert before <= {
        materialization.partition for materialization in told if materialization.skipped
    }
    assert any(not materialization.skipped for materialization in told)
    assert sorted(row["click_id"] for row in rows(served_project, "toy.clicks")) == [0, 1, 2, 3, 4]
    assert missing(served_project, "toy.clicks") == "none"


def partitions(told: list[Materialized]) -> list[str | None]:
    """The partitions of some materializations in order, as often as each was told."""
    return sorted((materialization.partition for materialization in told), key=str)


def rows(project: Project, model: str) -> list[dict[str, Any]]:
    """What prod publishes of a model, in order of its first column."""
    path, version = resolve(model, settings=Settings(data_dir=project.data_root))
    found = DeltaTable(path, version=version).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: str(next(iter(row.values()))))


def waiting_plans(project: Project) -> list[str]:
    """The plans that are built and wait for somebody to promote them."""
    with Store.open(
        Settings(data_dir=project.data_root).state, clock=lambda: datetime.now(UTC)
    ) as store:
        return [stored.plan_id for stored in store.plans.latest(statuses=(PlanStatus.BUILT,))]


def missing(project: Project, model: str) -> str:
    """What `backfill status` says is missing."""
    done = project.backfill("status", "--select", model, "--json")
    [row] = json.loads(done.stdout)["models"]
    return row["missing_ranges"]
