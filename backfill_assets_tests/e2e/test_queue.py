"""What a person lives through who switches the sensors on: history fills itself, and heals.

Webserver, daemon, run queue and run workers are real; switches and buttons are GraphQL calls. The
stories follow each other in one project; each can be run alone.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from backfill_assets import resolve
from backfill_assets.settings import Settings
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.store import Store
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.e2e.server import new_project, serving
from backfill_assets_tests.planting import sell
from backfill_assets_tests.toy import DAYS, FIRST, raw_returns, raw_sales
from backfill_assets_tests.toy_queue import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets_tests.e2e.graphql import Client
    from backfill_assets_tests.e2e.server import Project

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.story]

HOURS = [f"{FIRST}-{hour:02d}:00" for hour in range(24)]
ANN, BOB = "ann@shop.example", "bob@shop.example"
POLICY = f"""
header = true

[[environments]]
name = "prod"
promote = ["{ANN}"]

[[rules]]
approvers = ["{BOB}"]
"""
_LONG = 1200  # only a failure waits so long


@pytest.fixture(scope="module")
def queue_project(landed: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("queue")
    key, policy = folder / "identity.key", folder / "policy.toml"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(64))
    policy.write_text(POLICY, encoding="utf-8")
    (folder / "allowed_signers").touch()
    return new_project(
        folder,
        landed,
        catalog="backfill_assets_tests.toy_queue",
        definitions="backfill_assets_tests.toy_queue_definitions",
        BACKFILL_SPARK_MASTER="local[2]",
        BACKFILL_IDENTITY_HEADER="X-Forwarded-Email",
        BACKFILL_IDENTITY_KEY=str(key),
        BACKFILL_POLICY=str(policy),
    )


@pytest.fixture(scope="module")
def served(queue_project: Project) -> Iterator[Client]:
    with serving(queue_project) as client:
        yield client


@pytest.fixture(scope="module")
def store(queue_project: Project) -> Iterator[Store]:
    settings = Settings(data_dir=queue_project.data_root)
    with Store.open(
        settings.state, clock=lambda: datetime.now(UTC), data_root=settings.data_root
    ) as opened:
        yield opened


def test_gaps_fill_by_themselves_beside_a_hand_launched_backfill_and_a_killed_worker(
    served: Client, queue_project: Project, store: Store
):
    by_hand = served.launch("toy.clicks", partitionNames=HOURS)
    served.start_sensor("gap_fill_sensor")
    killed = kill_a_worker(served)

    until(lambda: all_ready(store), seconds=_LONG, what="everything is filled", every=2)

    assert served.run_ended(killed) == "FAILURE"
    assert served.ended(by_hand) == "COMPLETED_SUCCESS"
    assert built_twice(store) == {}
    assert sorted(row["click_id"] for row in rows(queue_project, "toy.clicks")) == [0, 1, 2, 3, 4]
    assert missing(queue_project, "toy.sales") == "none"
    for model in ("toy.sales", "toy.sales_of_three_days", "toy.clicks"):
        told = [materialization.partition for materialization in served.materialized(model)]
        assert set(told) == set(HOURS if model == "toy.clicks" else DAYS)


def test_late_rows_and_days_that_somebody_deleted_heal_without_a_command(
    served: Client, queue_project: Project, store: Store
):
    fill(queue_project, "toy.sales", "toy.sales_of_three_days")
    served.start_sensor("gap_fill_sensor")
    before = rows(queue_project, "toy.sales_of_three_days")
    path, _ = resolve("toy.sales", settings=Settings(data_dir=queue_project.data_root))
    DeltaTable(path).delete(f"ds in ('{DAYS[1]}', '{DAYS[3]}')")
    sell(queue_project.data_root, raw_sales, DAYS[2], 500)

    def healed() -> bool:
        return rows(queue_project, "toy.sales_of_three_days") != before

    until(healed, seconds=_LONG, what="the late row has reached the last model", every=2)

    planted = [row for row in rows(queue_project, "toy.sales") if row["shop"] == "planted"]
    assert [row["ds"].isoformat() for row in planted] == [DAYS[2]]
    assert {row["ds"].isoformat() for row in head(path)} == {*DAYS}  # the deleted days are back
    assert served.tagged(reason="late")


def test_a_queued_plan_of_two_models_is_built_by_runs_and_published_by_those_whom_the_proxy_knows(
    served: Client, queue_project: Project, store: Store
):
    fill(queue_project, "toy.returns", "toy.returns_daily")
    served.start_sensor("gap_fill_sensor")
    before = rows(queue_project, "toy.returns_daily")
    sell(queue_project.data_root, raw_returns, DAYS[4], 70)
    asked = known(served, ANN).launch_job(
        "plan",
        "make_plan",
        restate=[{"name": "toy.returns", "first": DAYS[3], "last": DAYS[5]}],
        reason="a shop sent its returns late",
    )
    assert served.run_ended(asked) == "SUCCESS"
    shown = served.metadata(asked)
    plan = shown["plan_id"]
    assert f"## Plan `{plan}` for `prod`" in shown["plan"]

    done = queue_project.backfill("apply", plan, "--queue", "--yes")
    assert done.returncode == 0, done.stderr
    until(lambda: is_built(store, plan), seconds=_LONG, what="the plan is built", every=2)

    assert rows(queue_project, "toy.returns_daily") == before
    models = {
        tag["value"]
        for run in served.tagged(plan=plan)
        for tag in run["tags"]
        if tag["key"] == "backfill/model"
    }
    assert models == {"toy.returns", "toy.returns_daily"}
    watched = queue_project.backfill("show", plan, "--watch")
    assert watched.returncode == 0, watched.stderr
    assert "built" in watched.stdout

    refuse_what_is_typed(served, plan)
    publish_by_header(served, plan)

    said = [(event.event, event.who) for event in store.plans.events(plan)]
    assert [each for each in said if each[0] in ("approved", "promoted")] == [
        ("approved", BOB),
        ("promoted", ANN),
    ]
    after = rows(queue_project, "toy.returns_daily")
    changed = [new["ds"].isoformat() for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [DAYS[4]]
    newest = served.materialized("toy.returns_daily")[0]
    assert newest.partition == DAYS[4]
    assert built_twice(store, plan) == {}


def known(served: Client, person: str) -> Client:
    """The webserver as a person reaches it through the proxy."""
    return replace(served, headers={"X-Forwarded-Email": person})


def refuse_what_is_typed(served: Client, plan: str) -> None:
    """Try to approve under a name and tags that were typed."""
    forged = {"backfill/principal": BOB, "backfill/attestation": "0" * 64}
    run = served.launch_job("approve", "approve_plan", forged, plan=plan, who=BOB)
    assert served.run_ended(run) == "FAILURE"
    assert "requires a signature, and nothing was written" in str(served.failures(run))


def publish_by_header(served: Client, plan: str) -> None:
    """Approve and promote as the people whom the proxy names; the policy lets each do one of the two."""
    for person, job in ((BOB, "approve"), (BOB, "promote"), (ANN, "promote")):
        run = known(served, person).launch_job(job, f"{job}_plan", plan=plan, reason="agreed")
        ends = "FAILURE" if (person, job) == (BOB, "promote") else "SUCCESS"
        assert served.run_ended(run) == ends, served.failures(run)


def fill(project: Project, *models: str) -> None:
    """Fill what the story needs, where an earlier one has not."""
    done = project.backfill("run", "--select", ",".join(models))
    assert done.returncode == 0, done.stderr


def kill_a_worker(served: Client) -> str:
    """Kill the process of the first run that the sensor has asked for, once it has one."""

    def started() -> str | None:
        runs = served.tagged(attempt="1")
        return next((run["runId"] for run in runs if run["status"] == "STARTED"), None)

    run_id = until(started, seconds=_LONG, what="a released run has begun", every=0.2)
    os.kill(served.pid_of(run_id), signal.SIGKILL)
    return run_id


def all_ready(store: Store) -> bool:
    view = store.views.of("prod")
    return all(
        model.cadence.start is not None
        and model.cadence.end is not None
        and view.ready(model.name).covers(
            int(model.cadence.start.timestamp()), int(model.cadence.end.timestamp())
        )
        for model in MODELS
    )


def built_twice(store: Store, plan: str | None = None) -> dict[Any, int]:
    """Cells that more than one committed batch has built, in prod or for a plan."""
    built = Counter(
        (model.name, model.cadence.key(cell))
        for model in MODELS
        for row in store.batches.latest(model=model.name)
        if row.status == "committed" and row.plan_id == plan
        for cell in model.cadence.cells(row.stretches)
    )
    return {cell: times for cell, times in built.items() if times > 1}


def is_built(store: Store, plan: str) -> bool:
    """Whether all of it is built, and its checks, which are approved with it, have run."""
    return store.plans.get(plan).status is PlanStatus.BUILT and bool(store.checks.of_plan(plan))


def rows(project: Project, model: str) -> list[dict[str, Any]]:
    """What prod publishes of a model, in order of its first column."""
    path, version = resolve(model, settings=Settings(data_dir=project.data_root))
    found = DeltaTable(path, version=version).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: str(next(iter(row.values()))))


def head(path: str) -> list[dict[str, Any]]:
    return DeltaTable(path).to_pyarrow_table().to_pylist()


def missing(project: Project, model: str) -> str:
    done = project.backfill("status", "--select", model, "--json")
    [row] = json.loads(done.stdout)["models"]
    return row["missing_ranges"]
