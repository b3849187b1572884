"""What ties runs into one launch: the backfill, or the run that a re-execution goes back to."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from backfill_assets import Weekly
from backfill_assets.orchestration.launches import launch_of, targets
from backfill_assets_tests.builders import a_graph, a_model, days

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


def a_backfill(instance: dg.DagsterInstance, name: str) -> None:
    asked = PartitionBackfill(
        backfill_id=name,
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=0.0,
    )
    instance.add_backfill(asked)


def a_run(instance: dg.DagsterInstance, root: str | None = None, **tags: str) -> dg.DagsterRun:
    tags = {f"dagster/{key}": value for key, value in tags.items()}
    run = dg.DagsterRun("toy", tags=tags)
    run = run._replace(root_run_id=root, parent_run_id=root) if root else run
    return instance.add_run(run)


def test_a_single_run_is_a_launch_of_its_own_and_of_its_re_executions(
    instance: dg.DagsterInstance,
):
    first = a_run(instance)

    assert launch_of(instance, first) == first.run_id
    assert launch_of(instance, a_run(instance, first.run_id)) == first.run_id


def test_a_run_of_a_backfill_belongs_to_the_first_backfill(instance: dg.DagsterInstance):
    a_backfill(instance, "b1")

    assert launch_of(instance, a_run(instance, backfill="b1")) == "b1"
    assert launch_of(instance, a_run(instance, backfill="b2", root_backfill_id="b1")) == "b1"


def test_a_re_execution_after_the_backfill_has_ended_still_belongs_to_it(
    instance: dg.DagsterInstance,
):
    a_backfill(instance, "b1")
    first = a_run(instance, backfill="b1")

    assert launch_of(instance, a_run(instance, first.run_id)) == "b1"


def test_a_launch_targets_no_cells_of_a_model_whose_partitions_are_not_those_that_are_published(
    instance: dg.DagsterInstance,
):
    visits, sums = a_model("web.visits"), a_model("web.sums")
    weekly = a_model("web.sums", cadence=Weekly(start="2024-01-01"))
    run = a_run(instance)._replace(
        asset_selection=frozenset({dg.AssetKey(["web", "visits"]), dg.AssetKey(["web", "sums"])})
    )
    context = Mock(instance=instance, run=run, partition_keys=["2024-01-08"])

    targeted = targets(context, a_graph(visits, weekly), a_graph(visits, sums))

    assert targeted == {"web.visits": days(8)}
