"""Scattered cells: several stretches in one batch hold the very rows of one batch per stretch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from backfill_assets.engine.project.events import Committed, Failed, TryingAgain
from backfill_assets.intervals import IntervalSet
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan import batching
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, days
from backfill_assets_tests.engine.world import ended, on, row, text, told

if TYPE_CHECKING:
    from backfill_assets.intervals import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.models.model import Model
    from backfill_assets_tests.engine.world import World

WHERE = "ds >= :start_ds AND ds < :end_ds"
ROWS = [row(n, id_, n * 10.0 + id_) for n in range(1, 11) for id_ in range(n % 3 + 1)]


def visits(name: str, last: str = "DATE_SUB(:end_ds, 1)") -> Model:
    """Rows of the source, and one of a calendar for every day that the query is asked for."""
    sql = f"""
        SELECT ds, id, cost FROM {EVENTS} WHERE {WHERE}
        UNION ALL
        SELECT ds, CAST(-1 AS BIGINT) AS id, CAST(0 AS DECIMAL(18, 2)) AS cost
        FROM (SELECT EXPLODE(SEQUENCE(:start_ds, {last})) AS ds)
    """  # noqa: S608 - the SQL is the test's own
    return a_model(name, sql=sql)


def sums(name: str, of: str) -> Model:
    """Each day with the two before it."""
    sql = f"""
        SELECT days.ds, CAST(1 AS BIGINT) AS id, CAST(SUM(one.cost) AS DECIMAL(18, 2)) AS cost
        FROM (SELECT DISTINCT ds FROM {of} WHERE {WHERE}) AS days
        JOIN (SELECT ds, cost FROM {of} WHERE ds >= DATE_SUB(:start_ds, 2) AND ds < :end_ds) AS one
          ON one.ds BETWEEN DATE_SUB(days.ds, 2) AND days.ds
        GROUP BY days.ds
    """  # noqa: S608
    return a_model(name, sql=sql, upstreams=[Upstream(of, lookback=2)])


APART, JOINED = ("web.apart", "web.apart_sums"), ("web.joined", "web.joined_sums")
GRAPH = a_graph(
    *(model for name, summed in (APART, JOINED) for model in (visits(name), sums(summed, name)))
)


@pytest.mark.parametrize("first", [(3, 4, 7), (2, 5, 6, 9)], ids=str)
def test_stretches_in_one_batch_hold_what_a_batch_each_holds(
    world: World, monkeypatch: pytest.MonkeyPatch, first: tuple[int, ...]
):
    world.land(a_source(), *ROWS)
    left = days(*(n for n in range(1, 11) if n not in first))
    for apart, joined in zip(APART, JOINED, strict=True):
        world.fill(
            GRAPH, apart, joined, cells=days(*first[:1]) if "sums" in apart else days(*first)
        )
        before = held(world, joined)
        with monkeypatch.context() as patch:
            patch.setattr(batching, "BATCH_SECONDS", 0.0)
            many = world.fill(GRAPH, apart)[apart]
        (event,) = ended(world.fill(GRAPH, joined)[joined], Committed)

        assert len(ended(many, Committed)) > 1
        assert event.cells == left if "sums" not in joined else len(event.cells) > 1
        assert text(GRAPH, joined, event.contents) == text(GRAPH, joined, event.cells)
        assert world.rows(joined) == world.rows(apart)
        assert contents(world, joined) == contents(world, apart)
        assert before.items() <= held(world, joined).items(), "what lies between was written again"


def held(world: World, name: str) -> dict[Interval, str]:
    """Which batch has built each ready cell."""
    records = world.store.versions.ready_records(world.pointer(name).version, None)
    return {record.cell: record.batch_id for record in records}


def contents(world: World, name: str) -> dict[Interval, Content]:
    records = world.store.versions.ready_records(world.pointer(name).version, None)
    return {record.cell: record.content for record in records}


def test_rows_after_the_last_stretch_are_refused_and_those_between_two_are_left_out(world: World):
    graph = a_graph(visits("web.visits", last=":end_ds"))
    world.land(a_source(), *ROWS)

    failed = ended(world.fill(graph, cells=scattered())["web.visits"], Failed)

    (again,) = ended(world.heard, TryingAgain)
    assert "1 row outside the batch's cells (cells 2024-01-07 to 2024-01-07)" in again.error
    assert [*map(str, (event.cells for event in failed))] == [
        str(days(6)),
        str(days(3, 4)),
        str(days(1)),
    ]


def test_a_stretch_that_fails_an_audit_fails_alone(world: World):
    graph = a_graph(a_model("web.visits", audits=[accepted_range("cost", None, 50)]))
    world.land(a_source(), *(row(n, 1, 99.0 if n == 6 else 1.0) for n in range(1, 11)))
    world.fill(graph, cells=days(2))  # what its batches hold is not known before, nor joined

    events = world.fill(graph, cells=scattered())["web.visits"]

    (failed,) = ended(events, Failed)
    assert failed.cells == days(6)
    assert IntervalSet.union_all(event.cells for event in ended(events, Committed)) == days(1, 3, 4)


def test_after_an_interrupt_no_stretch_of_a_batch_that_failed_is_tried_by_itself(world: World):
    graph = a_graph(visits("web.visits", last=":end_ds"))
    world.land(a_source(), *ROWS)

    def interrupted(*_: object) -> NoReturn:
        run.interrupted.set()
        raise ValueError("no")

    with world.doing(rows=interrupted):
        run = world.open(graph)
        (failed,) = ended(world.go(run, cells=scattered())["web.visits"], Failed)

    assert failed.cells == scattered()
    assert [batch.stretches for batch in world.store.batches.latest()] == [scattered()]


def test_a_batch_of_several_stretches_is_committed_and_recorded_as_one(world: World):
    graph = a_graph(visits("web.visits"))
    world.land(a_source(), *ROWS)

    done = world.fill(graph, cells=scattered())["web.visits"]

    assert told(done) == ["committed"]
    (batch,) = world.store.batches.latest()
    assert (batch.stretches, batch.rows) == (scattered(), len(batch_rows()) + 4)
    assert sorted({ds for ds, *_ in world.rows("web.visits")}) == [on(n) for n in (1, 3, 4, 6)]


def scattered() -> IntervalSet:
    return days(1, 3, 4, 6)


def batch_rows() -> list[object]:
    return [values for values in ROWS if values[0].day in (1, 3, 4, 6)]
