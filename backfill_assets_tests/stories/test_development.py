"""An environment of one's own: it costs nothing, sees its own changes, and prod never knows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.upkeep import collecting
from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_same
from backfill_assets_tests.stories.edits import worth_six_dollars
from backfill_assets_tests.stories.landing import raise_cost
from backfill_assets_tests.stories.project import (
    LAST_OF_QUARTER,
    MODELS,
    PERFORMANCE,
    ROI,
    TRENDS,
    day,
)
from backfill_assets_tests.stories.published import proof, rows_in, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]

DEV = "dev_refunds"


def test_what_is_done_in_dev_is_read_there_and_prod_never_knows_and_gc_leaves_nothing(
    quarter: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    before = {model: proof(quarter, model) for model in MODELS}
    tables = tables_of(quarter)
    old = oracle.history(quarter, last=LAST_OF_QUARTER)

    monkeypatch.setenv("BACKFILL_PROMISE_DAYS", "0")
    worth_six_dollars(quarter)
    plan = quarter.plan(DEV, "--reason", "what if")
    assert [model.model for model in plan.models] == [ROI]
    quarter.do("apply", plan.plan_id)

    new = oracle.roi(old[PERFORMANCE], worth="6.00")
    assert_same(rows_in(spark, quarter, ROI, env=DEV), new, "return on investment in dev")
    assert_same(rows_in(spark, quarter, TRENDS, env=DEV), old[TRENDS], "trends in dev are prod's")
    assert {model: proof(quarter, model) for model in MODELS} == before

    raise_cost(quarter, [day(3)])
    restated = quarter.plan(DEV, "--restate", f"marketing.ad_events:{day(2)}..{day(4)}")
    quarter.do("apply", restated.plan_id)

    costlier = oracle.history(quarter, last=LAST_OF_QUARTER)
    found = rows_in(spark, quarter, PERFORMANCE, env=DEV)
    assert_same(found, costlier[PERFORMANCE], "performance in dev, restated")
    found = rows_in(spark, quarter, ROI, env=DEV)
    assert_same(found, oracle.roi(costlier[PERFORMANCE], worth="6.00"), "and what reads it")
    assert {model: proof(quarter, model) for model in MODELS} == before
    assert DEV in quarter.do("envs").out

    quarter.do("envs", "drop", DEV, "--yes")
    assert DEV not in quarter.do("envs").out
    quarter.do("gc", "--yes")
    assert set(tables_of(quarter)) > set(tables), "readers may still be at them"
    monkeypatch.setattr(collecting, "GRACE", timedelta(0))  # `gc` waits for no reader
    quarter.do("gc", "--yes")
    assert tables_of(quarter) == tables
    assert {model: proof(quarter, model) for model in MODELS} == before
