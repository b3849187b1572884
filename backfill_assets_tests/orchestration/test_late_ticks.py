"""Late data in the ticks: asked for until it is published, or has failed for good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets.orchestration.released_runs import ENDED_TAG, FOR_GOOD, tried_lately
from backfill_assets_tests.builders import a_graph, a_model, day
from backfill_assets_tests.engine.test_looked_again import rewrite
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
    assert _asked(late) == []

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
