"""Filling: what is missing is computed, audited, committed and recorded; nothing else is."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from backfill_assets.engine.fill.outstanding import outstanding
from backfill_assets.engine.project.events import Committed, Failed, LeftStale, Skipped, Waiting
from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Daily, Hourly, Monthly
from backfill_assets.models.audit import accepted_range, row_rule
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import TimeColumns, WhenEmpty
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan import batch_size as sizes
from backfill_assets.snapshots.environment import Environment
from backfill_assets.warehouse.files.table_size import bytes_in
from backfill_assets_tests.builders import a_graph, a_model, a_source, a_whole, day, days
from backfill_assets_tests.engine.world import ended, kept, on, row, text, told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.events import Event
    from backfill_assets.intervals import Interval
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
POSITIVE = accepted_range("cost", 0, None)


@pytest.mark.connect
def test_a_first_fill_makes_every_cell_ready_in_batches_and_a_second_one_does_nothing(
    world: World,
):
    graph = a_graph(a_model(batch_size=4, batch_concurrency=2))
    rows = [row(n) for n in range(1, 11) if n != 5]
    world.land(a_source(), *rows)
    events = world.fill(graph)[VISITS]
    assert told(events) == ["committed"] * 3
    batches = sorted(text(graph, VISITS, event.cells) for event in ended(events, Committed))
    assert batches == [
        "2024-01-01..2024-01-04 (4)",
        "2024-01-05..2024-01-08 (4)",
        "2024-01-09..2024-01-10 (2)",
    ]
    assert world.ready(graph, VISITS) == "2024-01-01..2024-01-10 (10)"
    assert world.rows(VISITS) == kept(*rows)
    before = world.head(VISITS)
    (again,) = world.fill(graph)[VISITS]
    assert isinstance(again, Skipped)
    assert set(again.built_by.values()) == {event.batch_id for event in ended(events, Committed)}
    assert world.head(VISITS) == before


def test_where_no_size_is_declared_a_batch_reads_as_many_bytes_as_it_should(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    graph = a_graph(a_model(), a_model("web.sums", upstreams=[VISITS]))
    world.land(a_source(), *(row(n) for n in range(1, 11)))
    per_day = bytes_in(str(world.root / a_source().path)) / 10
    monkeypatch.setattr(sizes, "BYTES_PER_BATCH", int(4.5 * per_day))
    events = world.fill(graph)
    assert [text(graph, VISITS, interval) for interval in intervals(events[VISITS])] == [
        "2024-01-01..2024-01-04 (4)", "2024-01-05..2024-01-08 (4)", "2024-01-09..2024-01-10 (2)",
    ]  # fmt: skip
    written = [
        world.store.batches.get(event.batch_id) for event in ended(events[VISITS], Committed)
    ]
    per_day = sum(batch.bytes_written or 0 for batch in written) / 10
    allowed = max(int(sizes.BYTES_PER_BATCH / per_day), 1)
    most = max(
        graph.model("web.sums").cadence.count(interval)
        for interval in intervals(events["web.sums"])
    )
    assert most <= allowed
    assert world.ready(graph, "web.sums") == "2024-01-01..2024-01-10 (10)"


def intervals(events: Iterable[Event]) -> list[Interval]:
    return sorted(event.cells.span() for event in ended(events, Committed))


def test_every_commit_names_its_batch_and_every_batch_is_recorded_with_its_inputs(world: World):
    graph = a_graph(a_model(batch_size=5))
    world.land(a_source(), row(1))
    events = world.fill(graph)[VISITS]
    for event in ended(events, Committed):
        stored = world.store.batches.get(event.batch_id)
        assert stored.status == "committed"
        assert stored.delta_version == event.delta_version
        assert [(pin.upstream, pin.delta_version) for pin in stored.inputs] == [("web.events", 0)]
        history = {each["version"]: each for each in DeltaTable(world.path(VISITS)).history()}
        assert event.batch_id in history[event.delta_version]["userMetadata"]


def test_a_day_that_became_empty_is_ready_without_rows(world: World):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    graph = a_graph(a_model(cadence=Daily(start="2024-01-09")))
    world.land(a_source(), row(9), row(10))
    world.fill(graph)
    world.land(a_source(), row(10))
    world.fill(graph, cells=days(9), published=PublishedCells.REBUILT)
    assert world.rows(VISITS) == kept(row(10))
    assert world.ready(graph, VISITS) == "2024-01-09..2024-01-10 (2)"


@pytest.mark.connect
def test_a_blocking_audit_commits_nothing_and_its_numbers_and_rows_are_kept(world: World):
    graph = a_graph(a_model(audits=[POSITIVE], cadence=Daily(start="2024-01-06"), batch_size=3))
    world.land(a_source(), *(row(n) for n in range(6, 10)), row(10, 7, -3.0), row(10, 8, 5.0))
    events = world.fill(graph)[VISITS]
    assert told(events) == ["committed", "failed"]
    (failed,) = ended(events, Failed)
    for word in (VISITS, "2024-01-10", "accepted_range_cost", "1 of 3 rows", "0 rows"):
        assert word in failed.error
    (found,) = [stored.result for stored in world.store.batches.audit_results(batch_id=failed.batch_id)
                if stored.result.audit == "accepted_range_cost"]  # fmt: skip
    assert (found.passed, found.failing_rows, found.cells) == (False, 1, ("2024-01-10",))
    assert '"id":7' in found.sample[0]
    assert world.store.batches.get(failed.batch_id).status == "failed"
    assert world.ready(graph, VISITS) == "2024-01-06..2024-01-08 (3)"
    head = world.head(VISITS)
    assert told(world.fill(graph)[VISITS]) == ["failed", "skipped"]
    assert world.head(VISITS) == head
    assert world.rows(VISITS) == kept(row(6), row(7), row(8))


def test_a_warning_audit_is_recorded_and_commits(world: World):
    warning = accepted_range("cost", 0, None, warn=True)
    graph = a_graph(a_model(audits=[warning], cadence=Daily(start="2024-01-10")))
    world.land(a_source(), row(10, 7, -3.0))
    (done,) = ended(world.fill(graph)[VISITS], Committed)
    (found,) = [audit for audit in done.audits if not audit.passed]
    assert (found.audit, found.failing_rows) == ("accepted_range_cost", 1)
    assert world.rows(VISITS) == kept(row(10, 7, -3.0))


def test_rows_outside_the_batch_are_an_error_never_dropped(world: World):
    sql = (
        "SELECT DATE_SUB(ds, 1) AS ds, id, cost FROM web.events "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )
    graph = a_graph(a_model(sql=sql, cadence=Daily(start="2024-01-10")))
    world.land(a_source(), row(10))
    (failed,) = ended(world.fill(graph)[VISITS], Failed)
    assert "outside the batch's cells" in failed.error
    assert "2024-01-09" in failed.error
    assert world.head(VISITS) == -1


def test_a_failing_batch_blocks_only_the_cells_that_read_it_and_the_next_run_fills_the_rest(
    world: World,
):
    cadence = Daily(start="2024-02-28")
    world.clock.now = datetime(2024, 3, 3, tzinfo=UTC)
    daily = a_model(
        "web.daily",
        sql="SELECT ds, id, cost FROM web.visits WHERE ds >= :start_ds AND ds < :end_ds",
        upstreams=[Upstream(VISITS, lookback=1)],
        cadence=cadence,
    )
    monthly = a_model(
        "web.monthly",
        sql="SELECT TRUNC(ds, 'MM') AS ds, 1L AS id, CAST(SUM(cost) AS DECIMAL(18,2)) AS cost "
        "FROM web.visits WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ALL",
        upstreams=[VISITS],
        cadence=Monthly(start="2024-02-01"),
    )
    graph = a_graph(a_model(audits=[POSITIVE], cadence=cadence, batch_size=1), daily, monthly)
    february, march = date(2024, 2, 29), date(2024, 3, 1)
    world.land(a_source(), (february, 1, 2.0), (march, 1, -1.0))
    events = world.fill(graph)
    assert told(events[VISITS]) == ["committed"] * 3 + ["failed"]
    (waiting,) = ended(events["web.daily"], Waiting)
    assert waiting.waits_for == f"{VISITS} 2024-03-01"
    assert text(graph, "web.daily", waiting.cells) == "2024-03-01..2024-03-02 (2)"
    assert world.rows("web.monthly") == kept((date(2024, 2, 1), 1, 2.0))
    world.land(a_source(), (february, 1, 2.0), (march, 1, 1.0))
    events = world.fill(graph)
    (done,) = ended(events[VISITS], Committed)
    assert text(graph, VISITS, done.cells) == "2024-03-01"
    assert world.rows("web.daily") == kept((february, 1, 2.0), (march, 1, 1.0))


def test_a_cell_that_failed_is_not_tried_again_when_batches_upstream_go_on(world: World):
    cadence = Daily(start="2024-01-07")
    graph = a_graph(
        a_model("web.a", cadence=cadence, batch_size=1, batch_concurrency=1),
        a_model(
            "web.b",
            cadence=cadence,
            upstreams=["web.a"],
            batch_size=1,
            audits=[accepted_range("cost", 0, 9)],
        ),
    )
    world.land(a_source(), row(7, 1, 99.0), row(8), row(9), row(10))

    events = world.fill(graph)

    assert told(events["web.a"]) == ["committed"] * 4
    assert told(events["web.b"]) == ["committed"] * 3 + ["failed"]


def test_a_source_may_let_cells_wait_fail_or_be_empty(world: World):
    cadence = Daily(start="2024-01-09")
    for policy, expected in (
        (WhenEmpty.WAIT, ["committed", "waiting"]),
        (WhenEmpty.FAIL, ["committed", "failed"]),
        (WhenEmpty.ACCEPT, ["committed"]),
    ):
        source = a_source(f"web.{policy}", when_empty=policy)
        name = f"web.from_{policy}"
        graph = a_graph(a_model(name, upstreams=[source.name], cadence=cadence), sources=[source])
        world.land(source, row(10))
        events = world.fill(graph)[name]
        assert told(events) == expected
        for failed in ended(events, Failed):
            assert "no rows for 2024-01-09" in failed.error
            assert text(graph, name, failed.cells) == "2024-01-09"


def test_missing_cells_that_wait_for_rows_of_a_source_are_told_from_those_a_run_can_build(
    world: World,
):
    source = a_source(when_empty=WhenEmpty.WAIT)
    sums = a_model("web.sums", upstreams=[VISITS], cadence=Daily(start="2024-01-07"))
    graph = a_graph(a_model(cadence=Daily(start="2024-01-07")), sums, sources=[source])
    world.land(source, row(7), row(8))
    world.fill(graph, VISITS)
    left = outstanding(world.open(graph), graph.order)
    assert (left.missing, left.buildable, left.awaits) == (6, 2, {source.name: 2})
    assert left.words == f"6 cells missing, 2 of them waiting for {source.name}, 0 stale"
    world.land(source, row(9), row(10))
    world.fill(graph)
    assert outstanding(world.open(graph), graph.order).missing == 0


def test_a_source_without_a_table_waits_or_fails_and_other_models_go_on(world: World):
    cadence = Daily(start="2024-01-10")
    waits, fails = (
        a_source(f"web.{policy}", when_empty=policy) for policy in (WhenEmpty.WAIT, "accept")
    )
    graph = a_graph(
        a_model("web.a", upstreams=[fails.name], cadence=cadence),
        a_model("web.b", upstreams=[waits.name], cadence=cadence),
        a_model("web.c", cadence=cadence),
        sources=[waits, fails, a_source()],
    )
    world.land(a_source(), row(10))
    events = world.fill(graph)
    assert [told(events[name]) for name in ("web.a", "web.b", "web.c")] == [
        ["failed"], ["waiting"], ["committed"],
    ]  # fmt: skip
    (failed,) = ended(events["web.a"], Failed)
    assert "'web.accept' has no Delta table" in failed.error


def test_a_self_reading_model_is_filled_in_order_and_stops_at_a_failure(world: World):
    cadence = Daily(start="2024-01-06")
    sql = (
        "SELECT e.ds, e.id, CAST(e.cost + COALESCE(b.cost, 0) AS DECIMAL(18,2)) AS cost "
        "FROM web.events e LEFT JOIN web.total b ON b.ds = DATE_SUB(e.ds, 1) "
        "WHERE e.ds >= :start_ds AND e.ds < :end_ds"
    )
    graph = a_graph(
        a_model(
            "web.total",
            sql=sql,
            upstreams=["web.events", Upstream("web.total", lookback=1)],
            cadence=cadence,
            audits=[accepted_range("cost", 0, 100)],
            batch_size=5,
            batch_concurrency=4,
        )
    )
    world.land(a_source(), row(6), row(7), row(8, cost=200.0), row(9), row(10))
    events = world.fill(graph)["web.total"]
    assert told(events) == ["committed", "committed", "failed", "waiting"]
    (behind,) = ended(events, Waiting)
    assert behind.waits_for == "its own earlier cells"
    assert text(graph, "web.total", behind.cells) == "2024-01-09..2024-01-10 (2)"
    world.land(a_source(), *(row(n) for n in range(6, 11)))
    world.fill(graph)
    costs = [int(cost) for _, _, cost in world.rows("web.total")]
    assert costs == [1, 2, 3, 4, 5]


def test_a_full_model_is_one_cell_of_everything(world: World):
    graph = a_graph(
        a_model(cadence=Daily(start="2024-01-08")),
        a_whole("web.all", upstreams=[VISITS], unique_key=["ds", "id"]),
    )
    world.land(a_source(), row(8), row(9), row(10))
    assert told(world.fill(graph)["web.all"]) == ["committed"]
    assert world.rows("web.all") == kept(row(8), row(9), row(10))
    assert told(world.fill(graph)["web.all"]) == ["skipped"]


def test_stale_cells_are_told_only_when_what_they_read_really_changed(world: World):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    cadence = Daily(start="2024-01-08")
    child = a_model("web.child", upstreams=[VISITS], cadence=cadence)
    graph = a_graph(a_model(cadence=cadence), child)
    world.land(a_source(), row(8), row(9), row(10))
    world.fill(graph)
    world.fill(graph, VISITS, published=PublishedCells.REBUILT)
    assert told(world.fill(graph)["web.child"]) == ["skipped"]
    world.land(a_source(), row(8), row(9, cost=5.0), row(10))
    world.fill(graph, VISITS, published=PublishedCells.REBUILT)
    events = world.fill(graph)["web.child"]
    assert told(events) == ["left stale", "skipped"]
    (stale,) = ended(events, LeftStale)
    assert (text(graph, "web.child", stale.cells), stale.upstream) == ("2024-01-09", VISITS)
    events = world.fill(graph, "web.child", cells=stale.cells, published=PublishedCells.REBUILT)
    assert told(events["web.child"]) == ["committed"]
    assert world.rows("web.child") == kept(row(8), row(9, cost=5.0), row(10))
    assert told(world.fill(graph)["web.child"]) == ["skipped"]


def test_a_protected_environment_keeps_published_cells_whatever_is_asked(world: World):
    graph = a_graph(a_model(cadence=Daily(start="2024-01-10")))
    world.land(a_source(), row(10))
    world.fill(graph)
    world.land(a_source(), row(10, cost=9.0))
    assert told(world.fill(graph, published=PublishedCells.REBUILT)[VISITS]) == ["left stale"]
    assert world.rows(VISITS) == kept(row(10))


def test_by_hand_an_unprotected_environment_rebuilds_but_for_what_the_same_root_run_built(
    world: World,
):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    graph = a_graph(a_model(cadence=Daily(start="2024-01-09"), batch_size=1))
    world.land(a_source(), row(9), row(10))
    world.fill(graph, cells=days(9), published=PublishedCells.REBUILT, root_id="root")
    world.fill(graph, cells=days(10), root_id="another")
    events = world.fill(graph, published=PublishedCells.REBUILT, root_id="root")[VISITS]
    (skipped,), (built,) = ended(events, Skipped), ended(events, Committed)
    assert list(skipped.built_by) == [day(9)]
    assert built.cells.span() == day(10)
    assert world.store.batches.get(built.batch_id).reason == "rerun"


@pytest.mark.spark
def test_an_hourly_model_is_cut_by_hours_and_audit_columns_say_who_wrote(world: World):

    columns = (Column("at", "timestamp"), Column("id", "bigint"))
    source = a_source(columns=columns, times=TimeColumns(event="at"))
    model = a_model(
        "web.hours",
        query=SqlQuery("SELECT at, id FROM web.events WHERE at >= :start_ts AND at < :end_ts"),
        kind=IncrementalByTimeRange("at"),
        cadence=Hourly(start="2024-01-10T20:00:00Z"),
        columns=columns,
        unique_key=["at", "id"],
        audit_columns=True,
    )
    graph = a_graph(model, sources=[source])
    at = [datetime(2024, 1, 10, hour, 30, tzinfo=UTC) for hour in (20, 22, 23)]
    world.land(source, *((hour, 1) for hour in at))
    (done,) = ended(world.fill(graph)["web.hours"], Committed)
    assert [content.rows for content in done.contents.values()] == [1, 0, 1, 1]
    pin = world.pointer("web.hours").fingerprint
    assert world.rows("web.hours", "at", "_batch_id", "_code_version", "_inserted_at") == [
        (hour, done.batch_id, pin, world.clock.now) for hour in at
    ]


def test_a_row_rule_may_allow_a_fraction(world: World):
    rule = row_rule("mostly_small", "cost < 10", allowed=0.5)
    graph = a_graph(a_model(audits=[rule], cadence=Daily(start="2024-01-10")))
    world.land(a_source(), row(10, 1), row(10, 2, 50.0))
    assert told(world.fill(graph)[VISITS]) == ["committed"]
    assert world.rows(VISITS, "ds") == [(on(10),), (on(10),)]
