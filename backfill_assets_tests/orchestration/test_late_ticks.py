"""Late data in the ticks: asked for until it is published, or has failed for good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from backfill_assets.orchestration.released_runs import ENDED_TAG, FOR_GOOD, tried_lately
from backfill_assets_tests.builders import a_graph, a_model, a_source, day
from backfill_assets_tests.engine.test_looked_again import land, rewrite
from backfill_assets_tests.orchestration.test_ticks import TEN_DAYS, Ticking, ticking  # noqa: F401

if TYPE_CHECKING:
    from backfill_assets.models.model import Model


def _model(name: str, *upstreams: str) -> Model:
    reads = {"upstreams": [*upstreams]} if upstreams else {}
    return a_model(name, cadence=TEN_DAYS, late_window=5, **reads)


@pytest.fixture
def late(ticking: Ticking) -> Ticking:  # noqa: F811 - the fixture
    """Published days, one of which was built before what it reads changed."""
    ticking.models = (
        _model("web.visits"),
        _model("web.sums", "web.visits"),
        _model("web.top", "web.sums"),
    )
    ticking.world.graph = a_graph(*ticking.models)
    for name in ticking.world.graph.order:
        ticking.world.fill(name, day(1, 10))
    rewrite(ticking.world, "web.visits", 9)
    return ticking


def _asked(late: Ticking) -> list[str]:
    return [request.partition(" ")[0] for request in late.tick()]


def test_late_data_that_failed_is_asked_for_again(late: Ticking):
    assert _asked(late) == ["late"]
    assert _asked(late) == []
    late.end(dg.DagsterRunStatus.FAILURE)
    assert _asked(late) == ["late"]


def test_late_data_that_failed_for_good_waits_until_something_changes(late: Ticking):
    assert _asked(late) == ["late"]
    [run] = late.instance.get_runs()
    late.instance.add_run_tags(run.run_id, {ENDED_TAG: FOR_GOOD})
    late.end(dg.DagsterRunStatus.FAILURE)
    words = (
        "late data has failed and is not retried until its code or its input changes; "
        f"see run {run.run_id}"
    )
    for _ in range(2):
        assert words in late.evaluate().skip_message

    rewrite(late.world, "web.visits", 10)
    assert _asked(late) == ["late"]


@pytest.mark.parametrize(
    ("ending", "counts"),
    [(dg.DagsterRunStatus.FAILURE, True), (dg.DagsterRunStatus.SUCCESS, False)],
)
def test_failures_are_remembered_for_longer_than_the_rests_that_they_lead_to(
    late: Ticking, ending: dg.DagsterRunStatus, *, counts: bool
):
    late.tick()
    late.end(ending)
    after = datetime.now(UTC) + timedelta(hours=8)

    assert bool(tried_lately(late.instance, after)) is counts


def test_late_data_that_failed_for_good_is_asked_for_again_once_a_source_is_repaired(late: Ticking):
    land(late.world, *range(1, 11))
    assert _asked(late) == ["late"]
    late.end()
    land(late.world, 9)
    assert _asked(late) == ["late"]
    for run in late.instance.get_runs():
        if not run.is_finished:
            late.instance.add_run_tags(run.run_id, {ENDED_TAG: FOR_GOOD})
    late.end(dg.DagsterRunStatus.FAILURE)
    assert _asked(late) == []

    table = DeltaTable(str(late.world.root / a_source().path))
    table.alter.add_columns([Field("more", PrimitiveType("string"))])
    assert _asked(late) == ["late"]
    late.end()

    table.alter.add_columns([Field("still_more", PrimitiveType("string"))])
    assert _asked(late) == [], "what ended well is done, whatever a source gets that is not late"


def test_a_source_that_gets_late_rows_again_and_again_is_refreshed_each_time(late: Ticking):
    world = late.world
    late.models = (_model("web.visits"),)
    world.graph = a_graph(*late.models)
    land(world, *range(1, 11))
    for _ in range(3):
        land(world, 10)
        assert _asked(late) == ["daily"]
        rewrite(world, "web.visits", 10)
        world.now = datetime.now(UTC)
        late.end()

    for asked in (["daily"], ["daily"], []):  # one that builds nothing rests
        land(world, 10)
        assert _asked(late) == asked
        late.end()
