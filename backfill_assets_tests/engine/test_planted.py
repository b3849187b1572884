"""Planted defects: what audits notice is told apart from what nothing notices, and nothing is written."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch.planted_run import OUTSIDE, audit_planted
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import (
    accepted_range,
    fresh,
    metric_within,
    reconciles,
    row_count_within,
)
from backfill_assets.models.column import Column
from backfill_assets.models.graph import build_graph
from backfill_assets.models.kind import (
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    SoftDelete,
)
from backfill_assets.models.planted import Defect, Planted, advice, defects_of
from backfill_assets.models.source import TimeColumns
from backfill_assets_tests.builders import COLUMNS, EVENTS, FIRST, a_graph, a_model, a_source
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.kind import Deletes
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


MERGED = (*COLUMNS, Column("gone", "boolean"), Column("version", "int"))


def merged(deletes: Deletes | str, latest_by: str | None = None, *audits: Audit) -> Graph:
    bounded = "WHERE ds >= :start_ds AND ds < :end_ds"
    model = a_model(
        sql=f"SELECT ds, id, cost, FALSE AS gone, 1 AS version FROM {EVENTS} {bounded}",  # noqa: S608
        kind=IncrementalByUniqueKey("ds", latest_by=latest_by),
        unique_key=["id"],
        columns=MERGED,
        deletes=deletes,
        audits=audits,
        cadence=Daily(start="2024-01-01", end="2024-01-06"),
    )
    return a_graph(model)


def keys(first: int = 100) -> list[tuple[object, ...]]:
    return [
        row(day, id_=first * day + number, cost=5) for day in range(1, 7) for number in range(9)
    ]


@pytest.mark.spark
def test_a_row_that_a_merge_would_leave_out_stops_no_batch(world: World):
    graph = merged("absent", "version", metric_within("cost", 0.01))
    world.begin(graph, *keys())

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert Planted(Defect.DUPLICATED) not in found
    assert found[Planted(Defect.FANNED_OUT)].stopped_by == ("metric_within_cost",)
    assert found[Planted(Defect.EMPTIED, "ds")].stopped_by == (OUTSIDE,)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("deletes", "lost_rows_stay_as_they_are"), [("none", True), (SoftDelete("gone"), False)]
)
def test_a_row_that_a_merge_keeps_is_not_missed(
    world: World, deletes: Deletes | str, *, lost_rows_stay_as_they_are: bool
):
    graph = merged(deletes, None, row_count_within(0.0))
    world.begin(graph, *keys())

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert (Planted(Defect.DROPPED) not in found) is lost_rows_stay_as_they_are
    if not lost_rows_stay_as_they_are:
        assert found[Planted(Defect.DROPPED)].stopped_by == ()
        assert "NOT gone" in advice(Planted(Defect.DROPPED), graph.model(VISITS))


@pytest.mark.spark
@pytest.mark.parametrize(("late_in", "tells"), [(6, True), (4, False)])
def test_an_audit_that_fails_without_the_defect_counts_where_it_did_not(
    world: World, late_in: int, *, tells: bool
):
    graph = visits(reconciles("cost", EVENTS))
    world.begin(graph, *rows())
    world.land(a_source(), *rows(), row(late_in, id_=99, cost=1))

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    doubled = found[Planted(Defect.DOUBLED, "cost")]
    reconciling = ("reconciles_cost",)
    told = (doubled.stopped_by, doubled.failed_before)
    assert told == ((reconciling, ()) if tells else ((), reconciling))


def test_nothing_published_is_a_clear_error(world: World):
    with pytest.raises(RequestError, match="nothing with rows of 'web"):
        list(audit_planted(world.open(visits()), VISITS))


def test_each_defect_has_advice():
    model = visits().model(VISITS)
    for planted in defects_of(model):
        assert planted.column in advice(planted, model)
