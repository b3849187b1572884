"""Audits that compare a batch with what is published do so in a plan's workspace as well."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace

import pytest

from backfill_assets.engine.batch.batch_inputs import published_for_audits
from backfill_assets.engine.project.opening import look
from backfill_assets.intervals import Daily, Weekly
from backfill_assets.models.audit import complete, metric_within, trend_within
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_graph, a_model
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import World, row

VISITS = "web.visits"


@pytest.mark.story
@pytest.mark.spark
def test_a_new_version_that_doubles_a_metric_is_stopped_before_its_commit(world: World):
    def visits(times: int):  # noqa: ANN202
        sql = (
            f"SELECT ds, id, CAST(cost * {times} AS DECIMAL(18,2)) AS cost FROM {EVENTS} "
            "WHERE ds >= :start_ds AND ds < :end_ds"
        )
        audits = [metric_within("cost", 0.1), complete("id", seen=3)]
        cadence = Daily(start="2024-01-01", end="2024-01-03")
        return a_graph(a_model(sql=sql, columns=COLUMNS, audits=audits, cadence=cadence))

    world.begin(visits(1), *(row(day, cost=day) for day in (1, 2, 3)))
    plans, changed = Plans(world), visits(2)
    plan = plans.make(changed)

    tried = plans.apply(changed, plan)

    (failed,) = tried.failed
    assert "audit 'metric_within_cost' of 'web.visits' failed in 2024-01-01" in failed.error
    assert "sum(cost) in 2024-01-03 = 6 against 3 published (+100.00%)" in failed.error
    assert [int(cost) for _, _, cost in world.rows(VISITS)] == [1, 2, 3]


def test_cells_that_are_cut_otherwise_are_held_against_no_published_cell(world: World):
    world.begin(a_graph(a_model()), row(1), row(2))
    in_days = a_model(audits=[trend_within("cost")])
    in_weeks = replace(in_days, cadence=Weekly(start="2024-01-01"))

    run = look(world.project(a_graph(in_weeks)), PROD)

    assert published_for_audits(run, in_days) is not None
    assert published_for_audits(run, in_weeks) is None
