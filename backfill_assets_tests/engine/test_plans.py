"""Plans end to end on real tables: built where nobody reads, published at once."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.plans.refusals import PlanConflictError
from backfill_assets.engine.project.events import Committed
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, Whole
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.planning.plan import batch_size as sizes
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, workspace_name
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.warehouse.log.delta_log import actions_of
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_graph, a_model, a_source
from backfill_assets_tests.engine.dying import before_call
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import ended, on, row, text, told

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

VISITS, COSTS, SUM = "web.visits", "web.costs", "web.sum"
FOUR = "2024-01-03..2024-01-04 (2), 2024-01-09, 2024-01-20"
CADENCE = Daily(start="2024-01-07")
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def visits(extra: str = "", **declared: Any) -> Any:  # noqa: ANN401
    """Every event; with `extra`, one more column."""
    columns = (*COLUMNS, Column("double", "decimal(18,2)")) if extra else COLUMNS
    sql = f"SELECT ds, id, cost{extra} FROM web.events {WHERE}"
    return a_model(sql=sql, columns=columns, **{"cadence": CADENCE, **declared})


def costs(column: str = "cost", **declared: Any) -> Any:  # noqa: ANN401
    """The sum of a day."""
    sql = f"SELECT ds, CAST(SUM({column}) AS DECIMAL(18,2)) AS total FROM {VISITS} {WHERE} GROUP BY ds"
    columns = (Column("ds", "date"), Column("total", "decimal(18,2)"))
    given: dict[str, Any] = {"columns": columns, "unique_key": ["ds"], "upstreams": [VISITS]}
    given |= {"cadence": CADENCE, "grain": "one row per day", **declared}
    return a_model(COSTS, sql=sql, **given)


DOUBLE = ", CAST(cost * 2 AS DECIMAL(18,2)) AS double"
"""One more column of `visits`."""

OLD: Graph = a_graph(visits(), costs())
MORE: Graph = a_graph(visits(DOUBLE), costs())
ROWS = [row(n, 1, float(n)) for n in range(7, 11)]


def test_a_plan_that_ignores_the_cron_builds_what_it_plans(world: World, plans: Plans):
    weekly = a_graph(visits(cadence=Daily(start="2024-01-07", cron="0 5 * * 1")))  # on Mondays
    world.begin(weekly, *ROWS)
    assert world.ready(weekly, VISITS) == "2024-01-07"

    done = plans.apply(weekly, plans.make(weekly, ignore_cron=True))

    assert done.status is PlanStatus.PROMOTED
    assert world.ready(weekly, VISITS) == "2024-01-07..2024-01-10 (4)"
    assert plans.make(weekly, ignore_cron=True).is_empty


def test_a_new_table_with_a_rarer_cron_has_all_that_was_published(world: World, plans: Plans):
    world.begin(a_graph(visits()), *ROWS)
    doubled = DOUBLE
    weekly = a_graph(visits(doubled, cadence=Daily(start="2024-01-07", cron="0 5 * * 1")))

    plans.published(weekly)

    assert [day.day for day, _ in world.rows(VISITS, "ds", "double")] == [7, 8, 9, 10]


def test_a_built_plan_is_promoted_though_one_of_its_models_is_not_declared_any_more(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *ROWS[1:], row(7, 1, 70.0))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    assert plans.apply(OLD, plan).status is PlanStatus.BUILT

    plans.promote(a_graph(visits()), plan)

    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert plans.make(OLD).is_empty


@pytest.mark.connect
def test_an_additive_column_is_built_apart_and_published_at_once(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    before = {name: world.pointer(name) for name in (VISITS, COSTS)}
    plan = plans.make(MORE)
    costs = plan.model(COSTS)
    assert costs is None or not costs.cells
    applied = plans.apply(MORE, plan)
    assert applied.status is PlanStatus.BUILT
    assert {name: world.pointer(name) for name in (VISITS, COSTS)} == before
    plans.promote(MORE, plan)
    assert world.pointer(VISITS).version != before[VISITS].version
    assert world.pointer(COSTS).version == before[COSTS].version
    assert [double for _, double in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20]
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert world.open(MORE).changed == ()
    assert plans.make(MORE).is_empty


def test_what_a_plan_that_was_given_up_has_built_is_used_and_reopens_no_reader_of_equal_columns(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    abandon_plan(plans.project(MORE), plan)
    again = plans.make(MORE)
    assert [(model.model, model.cells) for model in again.models if model.cells] == []

    world.land(
        a_source(), *changed(row(8, 1, 99.0))
    )  # what is published is newer than what is kept
    plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    plans.published(MORE)
    assert world.rows(COSTS, "ds", "total")[1] == (on(8), 99)
    assert [double for _, double in world.rows(VISITS, "ds", "double")] == [14, 198, 18, 20]
    assert plans.make(MORE).is_empty


def changed(*rows: Any) -> list[Any]:  # noqa: ANN401
    """The same events, but for these."""
    other = {(ds, id_): cost for ds, id_, cost in rows}
    return [(ds, id_, other.get((ds, id_), cost)) for ds, id_, cost in ROWS]


def a_correction(world: World, plans: Plans) -> Plan:
    """Publish all days, land another value of the 8th, and build the plan that restates it."""
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    plans.apply(OLD, plan)
    return plan


def test_of_a_restated_month_only_the_readers_of_days_that_differ_are_built_again(
    world: World, plans: Plans
):
    world.clock.now = datetime(2024, 1, 31, tzinfo=UTC)
    month = [row(n, 1, float(n)) for n in range(1, 31)]
    graph = a_graph(
        visits(cadence=Daily(start="2024-01-01")), costs(cadence=Daily(start="2024-01-01"))
    )
    world.land(a_source(), *month)
    world.fill(graph)
    before = {name: world.pointer(name) for name in (VISITS, COSTS)}
    world.land(
        a_source(), *(row(ds.day, 1, cost + (ds.day in (3, 4, 9, 20))) for ds, _, cost in month)
    )
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-01", "2024-01-30"),))
    applied = plans.apply(graph, plan)
    done = ended(applied.events[COSTS], Committed)
    assert text(graph, COSTS, IntervalSet.union_all(event.cells for event in done)) == FOUR
    assert {name: world.pointer(name) for name in (VISITS, COSTS)} == before
    plans.promote(graph, plan)
    assert world.rows(COSTS, "ds", "total")[2] == (on(3), 4)
    assert world.pointer(VISITS).version == before[VISITS].version
    copied = actions_of(world.path(VISITS), world.head(VISITS))
    assert len([action for action in copied if "add" in action]) == 4
    assert plans.make(graph).is_empty
    assert told(world.fill(graph)[COSTS]) == ["skipped"]


def test_a_plan_is_built_in_batches_of_the_size_that_it_was_shown_with(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    graph = a_graph(a_model(), a_model("web.sums", upstreams=["web.visits"]))
    world.land(a_source(), *(row(n) for n in range(1, 11)))
    world.fill(graph)
    held = world.store.sources.observed()[EVENTS].bytes or 0
    monkeypatch.setattr(sizes, "BYTES_PER_BATCH", held * 35 // 100)
    plan = plans.make(graph, restate=(Restatement("web.visits"),))
    monkeypatch.undo()
    assert plan.batch_cells["web.visits"] == 2
    applied = plans.apply(graph, plan)
    done = sorted(event.cells.span() for event in ended(applied.events["web.visits"], Committed))
    shown = plan.model("web.visits")
    assert shown is not None
    assert done == [batch.interval for batch in shown.batches]
    assert len(done) == 5


@pytest.mark.parametrize("column", ["cost", "cost + 0"])
def test_what_reads_days_that_a_later_start_takes_away_is_built_again_without_them(
    world: World, plans: Plans, column: str
):
    """In the table that is there, or in a new one."""
    world.begin(OLD, *ROWS)
    later = a_graph(visits(cadence=Daily(start="2024-01-09")), costs(column))
    plans.published(later)
    assert not world.store.views.of(PROD).owed
    assert [ds.day for ds, _ in world.rows(VISITS, "ds", "cost")] == [9, 10]
    assert [ds.day for ds, _ in world.rows(COSTS, "ds", "total")] == [9, 10]
    assert world.ready(later, COSTS) == "2024-01-07..2024-01-10 (4)"
    assert plans.make(later).is_empty


def test_an_abandoned_plan_leaves_prod_byte_for_byte(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    before = (
        files(world),
        world.store.environments.pointers(PROD),
        world.store.views.of(PROD).models,
    )
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(MORE, restate=(Restatement(COSTS),))
    plans.apply(MORE, plan)
    abandon_plan(plans.project(MORE), plan)
    assert (
        files(world),
        world.store.environments.pointers(PROD),
        world.store.views.of(PROD).models,
    ) == before
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.ABANDONED


def summed(cron: str | None = None, extra: str = "") -> Graph:
    """Visits, and one cell that counts and adds up all of them."""
    return a_graph(visits(cadence=Daily(start="2024-01-07", cron=cron)), total_of_visits(extra))


def added_up() -> Graph:
    """One cell that counts the rows of the source, and adds them up."""
    return a_graph(total_of(EVENTS))


def total_of_visits(extra: str = "", **declared: Any) -> Any:  # noqa: ANN401
    """One cell that counts all visits and adds them up: each of their cells reopens it."""
    return total_of(VISITS, extra, upstreams=[Upstream(VISITS, reopens=Reopens.ALL)], **declared)


def total_of(read: str, extra: str = "", **declared: Any) -> Any:  # noqa: ANN401
    """One cell that counts the rows of something, and adds them up."""
    columns = (Column("days", "bigint"), Column("total", "decimal(18,2)"))
    sql = f"SELECT COUNT(*) AS days, CAST(SUM(cost) {extra} AS DECIMAL(18,2)) AS total FROM {read}"
    whole: dict[str, Any] = {"cadence": Whole(), "kind": Full(), "unique_key": ["days"]}
    return a_model(SUM, sql=sql, columns=columns, grain="one row", **whole, **declared)


def test_a_workspace_that_another_run_opens_while_a_plan_is_abandoned_is_dropped_with_it(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    before_call(world.store.plans, "set_plan_status", lambda: plans.apply(OLD, plan), monkeypatch)

    abandon_plan(plans.project(OLD), plan)

    assert not world.store.environments.exists(workspace_name(plan.plan_id))
    assert not world.store.views.of(PROD).owed[VISITS]
    assert plans.make(OLD).is_empty


def test_a_full_reader_that_is_rebuilt_keeps_published_cells_that_a_rarer_cron_calls_due_later(
    world: World, plans: Plans
):
    world.begin(summed(), *ROWS)
    assert world.rows(SUM, "days", "total") == [(4, 34)]
    weekly = summed("0 5 * * 1", "+ 1")  # on Mondays: the last was the 8th
    plans.published(weekly)
    assert world.rows(SUM, "days", "total") == [(4, 35)]

    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11))
    plans.apply(weekly, plans.make(weekly, select=(VISITS,), ignore_cron=True))
    plans.published(weekly)
    assert world.rows(SUM, "days", "total") == [(5, 36)]
    assert plans.make(weekly).is_empty


def test_a_full_reader_in_a_plan_reads_cells_that_were_published_between_plan_and_apply(
    world: World, plans: Plans
):
    world.begin(summed(), *ROWS)
    plan = plans.make(summed(extra="+ 1"))
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11))
    world.fill(summed(), VISITS)

    plans.apply(summed(extra="+ 1"), plan)
    plans.promote(summed(extra="+ 1"), plan)

    assert world.rows(SUM, "days", "total") == [(5, 36)]
    assert plans.make(summed(extra="+ 1")).is_empty


def test_rows_of_a_source_that_came_before_their_day_was_over_reach_a_full_reader_once_it_is(
    world: World, plans: Plans
):
    today = world.clock.now.day
    world.begin(added_up(), *ROWS, row(today, 1, 100.0))
    assert world.rows(SUM, "days", "total") == [(4, 34)]
    assert plans.make(added_up()).is_empty

    world.clock.now += timedelta(days=1)
    plans.published(added_up())

    assert world.rows(SUM, "days", "total") == [(5, 134)]
    assert plans.make(added_up()).is_empty


def test_a_full_reader_of_a_source_reads_the_days_that_are_over_when_its_batch_begins(
    world: World, plans: Plans
):
    today = world.clock.now.day
    world.land(a_source(), *ROWS, row(today, 1, 100.0))
    run = world.open(added_up())
    world.clock.now += timedelta(days=1)

    world.go(run)

    assert world.rows(SUM, "days", "total") == [(5, 134)]
    assert plans.make(added_up()).is_empty


def test_a_full_reader_that_was_built_before_a_day_was_over_and_promoted_after_it_holds_the_day_in_the_end(
    world: World, plans: Plans
):
    today = world.clock.now.day
    world.begin(added_up(), *ROWS, row(today, 1, 100.0))
    plan = plans.make(added_up(), restate=(Restatement(SUM),))
    plans.apply(added_up(), plan)
    world.clock.now += timedelta(days=1)

    plans.promote(added_up(), plan)
    if not (more := plans.make(added_up())).is_empty:
        plans.apply(added_up(), more)
        plans.promote(added_up(), more)

    assert world.rows(SUM, "days", "total") == [(5, 134)]
    assert plans.make(added_up()).is_empty


def files(world: World) -> dict[str, bytes]:
    """Every byte of prod's tables."""
    paths = [Path(world.path(name)) for name in (VISITS, COSTS)]
    return {
        str(file): file.read_bytes() for path in paths for file in path.rglob("*") if file.is_file()
    }


def test_a_failed_child_is_finished_by_applying_again_and_nothing_is_built_twice(
    world: World, plans: Plans
):
    graph = a_graph(visits(), costs(batch_size=1, audits=[accepted_range("total", None, 50)]))
    world.land(a_source(), *ROWS)
    world.fill(graph)
    world.land(a_source(), *(row(n, 1, 60.0 if n == 8 else 9.0 + n) for n in range(7, 11)))
    plan = plans.make(graph, restate=(Restatement(VISITS),))
    first = plans.apply(graph, plan)
    assert first.status is PlanStatus.APPLYING
    assert text(graph, COSTS, first.left[COSTS]) == "2024-01-08"
    with pytest.raises(RequestError, match=r"is not completely built.*2024-01-08"):
        plans.promote(graph, plan)
    assert world.rows(COSTS, "ds", "total") == [(on(n), n) for n in range(7, 11)]
    world.land(a_source(), *(row(n, 1, 40.0 if n == 8 else 9.0 + n) for n in range(7, 11)))
    again = plans.make(graph, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    with pytest.raises(PlanConflictError, match=plan.plan_id):
        plans.apply(graph, again)


def looking_back(days: int) -> Graph:
    """Visits, and what a day and so many before it cost."""
    sql = (
        "SELECT days.ds, CAST(SUM(cost) AS DECIMAL(18,2)) AS total FROM"
        " (SELECT EXPLODE(SEQUENCE(:start_ds, DATE_SUB(:end_ds, 1))) AS ds) AS days"
        f" JOIN (SELECT ds, cost FROM {VISITS} WHERE ds >= DATE_SUB(:start_ds, {days}) AND ds < :end_ds) AS own"
        f" ON own.ds BETWEEN DATE_SUB(days.ds, {days}) AND days.ds GROUP BY days.ds"
    )
    summed_up = costs(upstreams=[Upstream(VISITS, lookback=days)])
    return a_graph(visits(), replace(summed_up, query=SqlQuery(sql)))


def totals(world: World) -> list[int]:
    return [int(total) for _, total in world.rows(COSTS, "ds", "total")]


def test_a_cell_that_a_forward_only_change_keeps_follows_what_its_own_definition_has_read(
    world: World, plans: Plans
):
    world.begin(looking_back(1), *ROWS)
    plans.published(looking_back(0), forward_only=True)
    assert totals(world) == [7, 15, 17, 19]
    world.land(a_source(), *ROWS[:1], row(8, 1, 100.0), *ROWS[2:])

    plans.published(looking_back(0), restate=(Restatement(VISITS),))

    assert totals(world) == [7, 100, 9, 19], "the eighth, and the ninth, which had read it"
    assert plans.make(looking_back(0)).is_empty


def test_a_forward_only_change_builds_again_what_the_old_definition_read_of_the_same_plan(
    world: World, plans: Plans
):
    world.begin(looking_back(1), *ROWS)
    world.land(a_source(), *ROWS[:1], row(8, 1, 100.0), *ROWS[2:])

    plans.published(looking_back(0), forward_only=True, restate=(Restatement(VISITS),))

    assert totals(world) == [7, 100, 9, 19]
    assert plans.make(looking_back(0)).is_empty


def test_a_cell_that_a_forward_only_change_keeps_is_stale_in_its_environment_once_a_run_has_built_what_it_read(
    world: World, plans: Plans
):
    world.begin(looking_back(1), *ROWS)
    plans.published(looking_back(0), forward_only=True)
    world.land(a_source(), *ROWS[:1], row(8, 1, 100.0), *ROWS[2:])

    plans.published(looking_back(0), select=(VISITS,), restate=(Restatement(VISITS),))

    assert totals(world) == [7, 15, 17, 19]
    run = world.open(looking_back(0))
    work = run.work(COSTS, run.view())
    assert text(looking_back(0), COSTS, work.stale_cells) == "2024-01-08..2024-01-09 (2)"


def test_of_earlier_definitions_those_count_that_compute_rows_otherwise(world: World, plans: Plans):
    old = looking_back(1)
    world.begin(old, *ROWS)
    described = a_graph(*(replace(each, description="of a day") for each in old.models.values()))
    plans.published(described)
    assert not world.store.views.of(PROD).earlier

    plans.published(looking_back(0), forward_only=True)

    earlier = world.store.views.of(PROD).earlier
    assert [*earlier.values()] == [old.models[COSTS]]
