"""Tables in S3: filled, refused, restated, promoted, taken back and collected, over its real protocol."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from pyarrow.fs import FileSelector, FileSystem
from pyiceberg.table import StaticTable

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.project.events import Failed
from backfill_assets.engine.project.iceberg import CATALOGUE
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.models.audit import accepted_range
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state.store import Store
from backfill_assets.warehouse.files.tables import (
    TablesWithoutStateError,
    refuse_tables_without_state,
)
from backfill_assets.warehouse.log.delta_log import head
from backfill_assets_tests.builders import a_graph, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import ROWS, VISITS, changed, visits
from backfill_assets_tests.engine.world import LEASE, Clock, World, ended, row, told
from backfill_assets_tests.s3 import BUCKET, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.s3 import Request, S3Server

pytestmark = pytest.mark.spark
BAD = row(8, 1, 99.0)


@pytest.fixture
def world(spark: SparkSession, s3: S3Server, tmp_path: Path, clock: Clock) -> Iterator[World]:
    root, url = f"s3://{BUCKET}/{uuid4().hex}", f"sqlite:///{tmp_path / 'state.db'}"
    lease = LEASE.total_seconds()
    with Store.open(url, clock=clock, lease_seconds=lease, data_root=root) as store:
        store.iceberg.enable(CATALOGUE)
        yield World(spark, root, store, clock)


def files(path: str) -> set[str]:
    """The data files that lie below a table."""
    store, root = FileSystem.from_uri(path)
    found = store.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    names = {file.path.removeprefix(f"{root}/") for file in found}
    return {name for name in names if name.endswith(".parquet") and "_delta_log/" not in name}


def _credentials() -> dict[str, str]:
    """What PyIceberg does not find in the environment by itself."""
    return {
        "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
        "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "s3.region": os.environ.get("AWS_REGION", "us-east-1"),
    }


def published(world: World) -> list[int]:
    """What is read by the table's path and pin; by name PyIceberg reads the same."""
    at_pin = [cost for _, cost in world.rows(VISITS, "ds", "cost")]
    for named in world.store.iceberg.names():
        reader = StaticTable.from_metadata(named.location, properties=_credentials())
        by_name = reader.scan(selected_fields=("cost",)).to_arrow()
        assert sorted(by_name["cost"].to_pylist()) == sorted(at_pin)
    return [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")]


@pytest.mark.story
def test_history_is_filled_restated_promoted_taken_back_and_collected(world: World):
    graph, plans = a_graph(visits()), Plans(world)
    world.land(a_source(), *ROWS)
    assert told(world.fill(graph)[VISITS]) == ["committed"]
    assert published(world) == [7, 8, 9, 10]
    assert told(world.fill(graph)[VISITS]) == ["skipped"]
    first = files(world.path(VISITS))

    world.land(a_source(), *changed(BAD))
    plan = plans.make(graph, restate=(Restatement(VISITS),))
    plans.apply(graph, plan)
    assert published(world) == [7, 8, 9, 10]
    plans.promote(graph, plan)
    assert published(world) == [7, 99, 9, 10]
    both = files(world.path(VISITS))
    assert len(both - first) == 1

    rollback_plan(plans.project(graph), plan)
    assert published(world) == [7, 8, 9, 10]
    assert files(world.path(VISITS)) == both

    world.clock.now = datetime.now(UTC) + timedelta(days=40)  # the store dates its files itself
    collect(world.open(graph), timedelta(days=30))
    assert files(world.path(VISITS)) == first
    assert published(world) == [7, 8, 9, 10]


def test_a_state_that_is_lost_is_rebuilt_from_the_logs_in_the_store(world: World, tmp_path: Path):
    graph = a_graph(visits())
    world.land(a_source(), *ROWS)
    world.fill(graph)
    lost = world.store.views.of(PROD).ready(VISITS)
    root, url = str(world.root), f"sqlite:///{tmp_path / 'again.db'}"

    with pytest.raises(TablesWithoutStateError):
        refuse_tables_without_state(url, root)
    with Store.open(url, clock=world.clock, data_root=root) as store:
        rebuild_state(store, graph, read_logs(graph, root))

        assert store.views.of(PROD).ready(VISITS) == lost


def test_rows_that_fail_an_audit_are_never_seen_and_leave_no_file(world: World):
    graph = a_graph(visits(audits=[accepted_range("cost", None, 50)]))
    world.land(a_source(), *changed(BAD))
    assert [event.kind for event in ended(world.fill(graph)[VISITS], Failed)] == [FailureKind.AUDIT]
    assert published(world) == []
    assert files(world.path(VISITS)) == set()


@pytest.mark.parametrize("hit", ["_temporary/", "/_delta_log/0"])
def test_a_store_that_fails_fails_the_batch_and_the_next_run_fills_it(
    world: World, s3: S3Server, hit: str
):
    graph = a_graph(visits())
    world.land(a_source(), *ROWS)
    table = f"/tables/{VISITS.split('.')[0]}/"

    def faulty(request: Request) -> Fault | None:
        ours = request.method == "PUT" and hit in request.path and table in request.path
        return Fault() if ours else None

    with s3.failing(faulty):
        failed = ended(world.fill(graph)[VISITS], Failed)
    [kind] = {event.kind for event in failed}
    assert kind is FailureKind.TRANSIENT, failed[0].error
    assert head(world.path(VISITS)) <= 0  # a table, if any, without a batch
    assert told(world.fill(graph)[VISITS]) == ["committed"]
    assert published(world) == [7, 8, 9, 10]
