"""An environment runs its own snapshots, on each model's own grid and zone."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot

from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan
from backfill_assets.engine.project.events import Committed, Failed, Waiting
from backfill_assets.engine.project.opening import look
from backfill_assets.intervals import Daily
from backfill_assets.models import fingerprint
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.plan.plan import Change
from backfill_assets.planning.plan.request import Category, Restatement
from backfill_assets.planning.plan.stale_inputs import moved_inputs
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import ended, kept, row, text, told

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
CADENCE = Daily(start="2024-01-09")
SQL = "SELECT ds, id, CAST(cost * {} AS DECIMAL(18,2)) AS cost FROM web.events "
BOUNDS = "WHERE ds >= :start_ds AND ds < :end_ds"
FUNCTION = '''
def visits(inputs, interval):
    """Give every event."""
    return inputs["web.events"].selectExpr("ds", "id", "CAST(cost * {} AS DECIMAL(18,2)) AS cost")
'''


def sql_times(factor: int, _: Path) -> Any:  # noqa: ANN401
    return SqlQuery(SQL.format(factor) + BOUNDS)


def function_times(factor: int, folder: Path) -> Any:  # noqa: ANN401
    file = folder / f"times_{factor}.py"
    file.write_text(FUNCTION.format(factor))
    spec = importlib.util.spec_from_file_location(f"times_{factor}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.visits


@pytest.mark.parametrize("query", [sql_times, function_times])
def test_after_an_edit_the_environment_goes_on_with_its_own_snapshot(world: World, query: Any):  # noqa: ANN401
    old, new = (
        a_graph(a_model(query=query(factor, world.root), cadence=CADENCE)) for factor in (2, 3)
    )
    world.land(a_source(), row(9), row(10))
    world.fill(old, cells=days(9))
    assert world.open(old).changed == ()
    table = world.pointer(VISITS).version
    assert world.open(new).changed == (VISITS,)
    world.fill(new)
    assert world.rows(VISITS) == kept(row(9, cost=2.0), row(10, cost=2.0))
    assert world.pointer(VISITS).version == table


@pytest.mark.parametrize(
    "edited",
    [
        {"description": "Every visit."},
        {"late_window": 5},
        {"audits": [accepted_range("cost", None, 10)]},
        {"cadence": Daily(start="2024-01-08")},
    ],
    ids=["words", "late window", "audits", "start"],
)
@pytest.mark.parametrize("environment", [PROD, "dev_visits"])
def test_an_edit_that_changes_no_row_takes_effect_when_its_plan_is_promoted_too(
    world: World, edited: dict[str, Any], environment: str
):
    world.land(a_source(), row(8), row(9), row(10))
    if environment != PROD:
        world.store.environments.save_environment(
            Environment(environment, protected=False, follows=PROD)
        )
    here = replace(world, environment=environment)
    before, after = (a_graph(a_model(**{"cadence": CADENCE, **asked})) for asked in ({}, edited))
    here.fill(before)
    at, plans = here.pointer(VISITS), Plans(here)
    waiting = plans.make(before, environment, reason="later", restate=(Restatement(VISITS),))

    assert here.open(after).changed == (VISITS,)
    assert told(here.fill(after)[VISITS]) == ["skipped"]
    assert here.open(after).graph.models == before.models
    assert here.pointer(VISITS) == at
    assert not moved_inputs(waiting, before, world.store.views.of(environment))
    plan = plans.published(after, environment)
    assert [(one.change, one.category) for one in plan.models] == [
        (Change.MODIFIED, Category.METADATA)
    ]
    assert here.open(after).graph.models == after.models
    assert here.pointer(VISITS).version == at.version
    assert here.open(before).changed == (VISITS,)  # a server with older code takes nothing back
    assert here.pointer(VISITS).fingerprint == snapshots_of(after)[VISITS].fingerprint.id


def test_the_plan_of_a_corrected_audit_builds_what_the_wrong_one_has_stopped(world: World):
    wrong, right = (
        a_graph(a_model(cadence=CADENCE, audits=[accepted_range("cost", None, most)]))
        for most in (5, 10)
    )
    world.land(a_source(), row(9, cost=5.0), row(10, cost=10.0))
    world.fill(wrong, cells=days(9))
    assert "failed" in told(world.fill(right)[VISITS])

    Plans(world).published(right)

    assert world.rows(VISITS) == kept(row(9, cost=5.0), row(10, cost=10.0))
    assert told(world.fill(right)[VISITS]) == ["skipped"]


@pytest.mark.spark
def test_a_day_in_berlin_reads_both_utc_days_also_when_clocks_change(world: World):
    world.clock.now = datetime(2024, 4, 1, 12, tzinfo=UTC)
    columns = (Column("at", "timestamp"), Column("id", "bigint"))
    source = a_source(columns=columns, times=TimeColumns(event="at"))
    utc = a_model(
        "web.utc",
        query=SqlQuery("SELECT at, id FROM web.events WHERE at >= :start_ts AND at < :end_ts"),
        kind=IncrementalByTimeRange("at"),
        cadence=Daily(start="2024-03-29"),
        columns=columns,
        unique_key=["id"],
    )
    berlin = a_model(
        "web.berlin",
        query=SqlQuery(
            "SELECT TO_DATE(FROM_UTC_TIMESTAMP(at, 'Europe/Berlin')) AS ds, COUNT(*) AS n "
            "FROM web.utc WHERE at >= :start_ts AND at < :end_ts GROUP BY 1"
        ),
        columns=(Column("ds", "date"), Column("n", "bigint")),
        unique_key=["ds"],
        upstreams=["web.utc"],
        cadence=Daily(start="2024-03-30", tz="Europe/Berlin"),
    )
    graph = a_graph(utc, berlin, sources=[source])
    first = datetime(2024, 3, 29, tzinfo=UTC)
    world.land(source, *((first + timedelta(hours=n), n) for n in range(72)))
    third = graph.model("web.utc").cadence.cell("2024-03-31")
    world.fill(graph, "web.utc", cells=days(*range(89, 91)))
    events = world.fill(graph, "web.berlin")["web.berlin"]
    (waiting,) = ended(events, Waiting)
    assert text(graph, "web.berlin", waiting.cells) == "2024-03-31"
    world.fill(graph)
    assert third in world.store.views.of(world.environment).ready("web.utc")
    counts = [(str(ds), n) for ds, n in world.rows("web.berlin", "ds", "n")]
    assert counts == [("2024-03-30", 24), ("2024-03-31", 23)]
    done = [
        event
        for event in world.heard
        if isinstance(event, Committed) and event.model == "web.berlin"
    ]
    assert [event.cells.span().end - event.cells.span().start for event in done] == [
        timedelta(hours=24),
        timedelta(hours=23),
    ]


def test_a_new_model_over_one_that_still_runs_its_old_logic_gets_the_table_of_that(world: World):
    old, new = (a_model(query=sql_times(n, world.root), cadence=CADENCE) for n in (2, 3))
    reader = a_model("web.readers", upstreams=[VISITS], cadence=CADENCE)
    world.begin(a_graph(old), row(9))
    run = world.open(a_graph(new, reader))
    assert run.changed == (VISITS,)
    assert run.graph.models[VISITS] == old
    assert (
        world.pointer("web.readers").version
        == snapshots_of(a_graph(old, reader))["web.readers"].version
    )


def test_a_new_model_that_reads_a_column_of_an_edit_names_the_edit_that_is_not_promoted(
    world: World,
):
    old = a_model(cadence=CADENCE)
    wider = a_model(
        sql=SQL.format(1).replace("AS cost", "AS cost, cost AS price") + BOUNDS,
        cadence=CADENCE,
        columns=(*old.schema, Column("price", "decimal(18,2)")),
    )
    reader = a_model(
        "web.readers",
        sql=SQL.format(1).replace("cost *", "price *").replace("web.events", VISITS) + BOUNDS,
        upstreams=[VISITS],
        cadence=CADENCE,
    )
    world.begin(a_graph(old), row(9))

    [failed] = ended(world.fill(a_graph(wider, reader), "web.readers")["web.readers"], Failed)

    assert failed.error == (
        "'web.readers' reads price of 'web.visits', which 'prod' does not have: the edit of 'web.visits' is not "
        "promoted. Promote both: backfill plan prod --select web.visits+"
    )


def test_who_only_looks_sees_new_models_and_writes_nothing(world: World):
    world.begin(a_graph(a_model(cadence=CADENCE)), row(9))
    before = world.store.environments.pointers(world.environment)
    graph = a_graph(a_model(cadence=CADENCE, owner="team:new"), a_model("web.other"))
    seen = look(world.project(graph), world.environment)
    assert set(seen.graph.models) == set(seen.pointers) == {VISITS, "web.other"}
    assert seen.graph.models[VISITS].owner != "team:new"
    assert world.store.environments.pointers(world.environment) == before


def versions(times: int, **asked: Any) -> Any:  # noqa: ANN401
    """Give visits, and a model that reads them."""
    visits = a_model(query=SqlQuery(SQL.format(times) + BOUNDS), cadence=CADENCE, **asked)
    return a_graph(visits, a_model("web.readers", upstreams=[VISITS], cadence=CADENCE))


@pytest.mark.parametrize("times", [2, 3], ids=["only its audit", "its query"])
def test_a_model_whose_first_fill_failed_is_filled_as_it_was_mended(world: World, times: int):
    wrong = versions(2, audits=[accepted_range("cost", None, 1)])
    world.land(a_source(), row(9))
    assert told(world.fill(wrong)[VISITS]) == ["failed"]

    mended = versions(times)
    seen = look(world.project(mended), PROD)
    assert seen.changed == ()
    assert seen.graph.models == mended.models
    assert world.store.environments.pointers(PROD) != seen.pointers
    world.fill(mended)
    assert world.rows(VISITS) == world.rows("web.readers") == kept(row(9, cost=float(times)))
    assert {
        name: at.fingerprint for name, at in world.store.environments.pointers(PROD).items()
    } == {name: snapshot.fingerprint.id for name, snapshot in snapshots_of(mended).items()}


def test_a_mended_model_waits_for_a_plan_while_a_batch_of_it_is_at_work(world: World):
    old, mended = versions(2), versions(3)
    world.land(a_source(), row(9))
    run = world.open(old)
    world.store.batches.open_batch(batch_request(run, old.model(VISITS), days(9)))
    assert world.open(mended).changed == (VISITS,)
    world.clock.pass_lease()
    assert world.open(mended).changed == ()


def test_a_mended_model_waits_for_a_plan_where_a_reader_of_it_is_published(world: World):
    old, mended = (
        a_graph(
            a_model(query=sql_times(n, world.root), cadence=CADENCE),
            a_model("web.readers", upstreams=[VISITS], cadence=Daily(start="2024-01-08")),
        )
        for n in (2, 3)
    )
    world.land(a_source(), row(9))
    told_of = world.fill(old, "web.readers", cells=days(8))
    assert told(told_of["web.readers"]) == ["committed"]
    assert world.open(mended).changed == (VISITS, "web.readers")


def test_a_mended_model_waits_for_a_plan_where_another_environment_has_built_it(world: World):
    old, mended = versions(2), versions(3)
    world.land(a_source(), row(9))
    world.open(old)
    dev = Environment("dev_visits", protected=False, follows=PROD)
    world.store.environments.save_environment(dev)
    Plans(world).published(mended, dev.name)
    assert world.open(mended).changed == (VISITS, "web.readers")


def test_a_model_that_was_rolled_back_to_nothing_waits_for_a_plan(world: World):
    old, mended = versions(2), versions(3)
    world.land(a_source(), row(9))
    world.open(old)
    plans = Plans(world)
    rollback_plan(plans.project(mended), plans.published(mended))
    assert world.pointer(VISITS).delta_version < 0
    assert world.open(mended).changed == (VISITS, "web.readers")


def test_a_mended_model_waits_for_a_plan_where_one_has_left_its_table(world: World):
    mended = versions(3)
    world.land(a_source(), row(9))
    world.open(versions(2))
    plans = Plans(world)
    plan = plans.make(mended)
    plans.apply(mended, plan)
    abandon_plan(plans.project(mended), plan)
    assert world.open(mended).changed == (VISITS, "web.readers")


@pytest.mark.parametrize("times", [2, 3], ids=["only its audit", "its query"])
def test_a_plan_of_a_reader_leaves_a_mended_model_as_its_pointer_says(world: World, times: int):
    wrong = versions(2, audits=[accepted_range("cost", None, 1)])
    world.land(a_source(), row(9))
    world.fill(wrong)
    mended, plans = versions(times), Plans(world)
    plan = plans.make(mended, select=("web.readers",))
    assert [planned.change for planned in plan.models] == [Change.UNCHANGED, Change.UNCHANGED]
    plans.apply(mended, plan)
    failed = [event.error for event in plans.told if isinstance(event, Failed)]
    assert [str(error) for error in failed if "accepted_range" not in str(error)] == []
    assert failed


def test_of_two_processes_that_begin_a_model_at_once_the_first_declaration_counts(world: World):
    first, second = versions(2), versions(3)
    snapshots, others = world.store.snapshots, iter([first])
    keep = snapshots.save_snapshot

    def save(**snapshot: Any) -> None:  # noqa: ANN401
        for graph in others:
            world.land(a_source(), row(9))
            world.fill(graph)
        keep(**snapshot)

    snapshots.save_snapshot = save
    run = world.open(second)
    assert run.changed == (VISITS, "web.readers")
    assert run.graph.models == first.models


def test_a_state_that_an_older_release_fingerprinted_otherwise_rebuilds_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.land(a_source(), row(9), row(10))
    graph = a_graph(a_model(cadence=CADENCE))
    with monkeypatch.context() as older:
        older.setattr(fingerprint, "settled_text", _as_sqlglot_wrote_it)
        world.fill(graph)
        before = world.pointer(VISITS)

    assert world.open(graph).changed == ()
    assert told(world.fill(graph)[VISITS]) == ["skipped"]
    assert world.pointer(VISITS) == before
    assert before.fingerprint != snapshots_of(graph)[VISITS].fingerprint.id
    assert not Plans(world).make(graph).models


def _as_sqlglot_wrote_it(sql: str) -> str:
    return sqlglot.parse_one(sql, dialect="spark").sql(dialect="spark")
