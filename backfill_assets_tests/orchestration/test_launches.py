"""What ties runs into one launch: the backfill, or the run that a re-execution goes back to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets.orchestration.launches import launch_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


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
    assert launch_of(instance, a_run(instance, backfill="b1")) == "b1"
    assert launch_of(instance, a_run(instance, backfill="b2", root_backfill_id="b1")) == "b1"


def test_a_re_execution_after_the_backfill_has_ended_still_belongs_to_it(
    instance: dg.DagsterInstance,
):
    first = a_run(instance, backfill="b1")

    assert launch_of(instance, a_run(instance, first.run_id)) == "b1"
