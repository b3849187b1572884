"""Planted defects: what audits notice is told apart from what nothing notices, and nothing is written."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch.planted_run import audit_planted
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range, fresh, metric_within
from backfill_assets.models.column import Column
from backfill_assets.models.graph import build_graph
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.planted import Defect, Planted, advice, defects_of
from backfill_assets.models.source import TimeColumns
from backfill_assets_tests.builders import EVENTS, FIRST, a_graph, a_model, a_source
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"


def visits(*audits: Audit) -> Graph:
    return a_graph(a_model(audits=audits, cadence=Daily(start="2024-01-01", end="2024-01-06")))


def rows() -> list[tuple[object, ...]]:
    return [row(day, id_=number, cost=5) for day in range(1, 7) for number in range(20)]


@pytest.mark.spark
def test_what_no_audit_notices_is_told_apart(world: World):
    graph = visits(accepted_range("cost", 0, None))
    world.begin(graph, *rows())
    before = (world.head(VISITS), world.rows(VISITS))

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert found[Planted(Defect.DUPLICATED)].stopped_by == ("unique_grain",)
    assert found[Planted(Defect.FANNED_OUT)].stopped_by == ("unique_grain",)
    assert found[Planted(Defect.NEGATED, "cost")].stopped_by == ("accepted_range_cost",)
    unnoticed = {noticed.planted for noticed in found.values() if not noticed.stopped_by}
    assert unnoticed >= {
        Planted(Defect.DROPPED),
        Planted(Defect.DOUBLED, "cost"),
        Planted(Defect.EMPTIED, "cost"),
    }
    assert (world.head(VISITS), world.rows(VISITS)) == before


@pytest.mark.spark
def test_an_audit_against_what_is_published_notices_them(world: World):
    graph = visits(
        accepted_range("cost", 0, None), metric_within("cost", 0.01), metric_within("*", warn=True)
    )
    world.begin(graph, *rows())

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert all(noticed.stopped_by for noticed in found.values()), found
    assert found[Planted(Defect.DROPPED)].warned_by == ("metric_within_rows",)


@pytest.mark.spark
def test_audits_are_tested_as_they_are_declared_before_they_are_promoted(world: World):
    world.begin(visits(), *rows())
    edited = world.open(visits(accepted_range("cost", 0, None)))
    assert edited.changed == (VISITS,)

    found = {noticed.planted: noticed for noticed in audit_planted(edited, VISITS)}

    assert found[Planted(Defect.NEGATED, "cost")].stopped_by == ("accepted_range_cost",)


@pytest.mark.spark
def test_a_cell_that_stops_half_way_is_noticed_by_its_freshness(world: World):
    columns = (Column("at", "timestamp"), Column("id", "bigint"))
    events = a_source(columns=columns, times=TimeColumns(event="at"))
    model = a_model(
        sql=f"SELECT at, id FROM {EVENTS} WHERE at >= :start_ts AND at < :end_ts",  # noqa: S608
        kind=IncrementalByTimeRange("at"),
        unique_key=["at", "id"],
        columns=columns,
        audits=[fresh("at", "6h")],
        cadence=Daily(start="2024-01-01", end="2024-01-02"),
    )
    world.land(events, *[(FIRST + timedelta(hours=hour), hour) for hour in range(48)])
    graph = build_graph([model], [events])
    world.fill(graph)

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert found[Planted(Defect.STOPPED)].stopped_by == ("fresh_at",)
    assert found[Planted(Defect.DROPPED)].stopped_by == ("fresh_at",)
    assert found[Planted(Defect.HALVED)].stopped_by == ()


def test_nothing_published_is_a_clear_error(world: World):
    with pytest.raises(RequestError, match="nothing with rows of 'web"):
        list(audit_planted(world.open(visits()), VISITS))


def test_each_defect_has_advice():
    for planted in defects_of(visits().model(VISITS)):
        assert planted.column in advice(planted)
