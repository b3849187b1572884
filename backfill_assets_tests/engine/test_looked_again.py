"""What makes a look look again, though no pin has moved; and what a late row is no reason for."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from backfill_assets.engine.automatic.needed_plan import needed_plan
from backfill_assets.engine.batch.requests import REFRESH, batch_request
from backfill_assets.engine.fill.late_cells import late_work_of
from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.plans.plan_verbs import abandon_plan, queue_plan
from backfill_assets.engine.project.opening import save_snapshot
from backfill_assets.intervals import Daily
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.source import WhenEmpty
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.queue.releasing import ReleaseKind
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.observation import ChangedCells, Observation, SourceCell
from backfill_assets.snapshots.publication import Move
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, day, days
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.making import plan_made
from backfill_assets_tests.state.building import content, owe, write
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.planning.plan.plan import Plan

ROWS = pa.schema([("ds", pa.date32()), ("id", pa.int64()), ("cost", pa.decimal128(18, 2))])
VISITS = a_model("web.visits", late_window=5)
SUMS = a_model("web.sums", upstreams=["web.visits"], late_window=5)
TOP = a_model("web.top", upstreams=["web.sums"])


def land(world: QueueWorld, *numbers: int, looks: bool = True) -> None:
    """Rows of some days arrive, and somebody looks, unless told otherwise."""
    for number in numbers:
        rows = [{"ds": date(2024, 1, number), "id": number, "cost": Decimal(1)}]
        table = pa.Table.from_pylist(rows, ROWS)
        write_deltalake(str(world.root / a_source().path), table, mode="append")
    if looks:
        observe_sources(world.store, [a_source()], str(world.root), None)


def filled(world: QueueWorld) -> QueueWorld:
    for name in world.graph.order:
        world.fill(name, day(1, 10))
    world.look()
    return world


def rewrite(world: QueueWorld, name: str, number: int) -> None:
    run = world.run()
    request = batch_request(run, run.graph.model(name), days(number), reason=REFRESH)
    opened = world.store.batches.open_batch(request)
    write(world.store, opened, dict.fromkeys(opened.request.cells, content(99)))


def promoted(world: QueueWorld, name: str) -> None:
    """Let a plan be promoted after which a model runs as it is declared now, over the same rows."""
    snapshot = snapshots_of(world.graph)[name]
    save_snapshot(world.store, snapshot)
    at, trial = world.store.environments.pointers(PROD)[name], Trial(world.store)
    trial.save()
    trial.publish(
        Move(
            pointer=replace(at, fingerprint=snapshot.fingerprint.id),
            old_version=at.version,
            old_fingerprint=at.fingerprint,
        )
    )


def kinds(world: QueueWorld) -> list[ReleaseKind]:
    return [offer.kind for offer in world.look().offers]


def test_rows_that_come_late_while_a_plan_is_built_do_not_keep_it_from_its_end(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS, SUMS)
    land(world, *range(1, 11))
    filled(world)
    plan = world.queued("web.visits", 3)
    world.fill("web.visits", day(3), plan=plan)

    land(world, 3)

    found = [offer for offer in world.look().offers if offer.plan_id]
    assert [(offer.kind, offer.name) for offer in found] == [(ReleaseKind.FINISH, "")]


def test_rows_that_come_late_before_a_plan_has_built_their_cells_are_no_obstacle_either(
    tmp_path: Path,
):
    world = QueueWorld.of(tmp_path, VISITS, SUMS)
    land(world, *range(1, 11))
    filled(world)
    world.queued("web.visits", 3, 4)
    land(world, 3)

    assert world.offered()["plan", "web.visits"] == days(3, 4)


@pytest.mark.parametrize("declared", [WhenEmpty.ACCEPT, WhenEmpty.FAIL])
def test_a_source_that_need_not_be_waited_for_any_more_lets_its_cells_go(
    tmp_path: Path, declared: WhenEmpty
):
    waits = a_source(when_empty=WhenEmpty.WAIT)
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[waits]))
    land(world, 1, 2)
    world.fill("web.visits", day(1, 2))
    assert world.offered() == {}

    world.graph = a_graph(VISITS, sources=[a_source(when_empty=declared)])

    assert world.offered() == {("daily", "web.visits"): days(*range(3, 11))}


def test_a_model_that_nobody_reads_any_more_is_refreshed_in_its_own_table(tmp_path: Path):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, TOP))
    rewrite(world, "web.visits", 9)
    assert kinds(world) == [ReleaseKind.LATE]

    world.graph = a_graph(VISITS, SUMS)

    assert world.offered() == {("daily", "web.sums"): days(9)}


def test_a_source_made_anew_with_the_same_head_is_another_one(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS)
    land(world, *range(1, 11))
    filled(world)
    known = world.store.sources.observed()[EVENTS]
    changed = ChangedCells((SourceCell(day(9), 2),))

    world.store.sources.observe(Observation(replace(known, table_id="another"), known, (changed,)))

    assert world.offered() == {("daily", "web.visits"): days(9)}


def test_late_work_is_asked_for_again_when_a_window_that_it_reaches_is_declared_wider(
    tmp_path: Path,
):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, TOP))
    rewrite(world, "web.visits", 9)
    [before] = world.look().offers

    world.graph = a_graph(VISITS, SUMS, replace(TOP, late_window=5))
    [still] = world.look().offers
    assert still.mark == before.mark
    promoted(world, "web.top")
    world.look()
    [after] = world.look().offers

    assert (before.kind, after.kind) == (ReleaseKind.LATE, ReleaseKind.LATE)
    assert before.mark != after.mark


def test_late_work_is_asked_for_again_when_something_else_is_owed(tmp_path: Path):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, TOP))
    rewrite(world, "web.visits", 9)
    [before] = world.look().offers

    version = world.store.environments.pointers("prod")["web.top"].version
    owe(world.store, version, IntervalSet.of([day(2)]), "wrong")
    [after] = world.look().offers

    assert before.mark != after.mark
    assert [offer.mark for offer in world.look().offers] == [after.mark]


def test_cells_that_were_outside_of_a_declared_life_are_offered_once_it_is_wider(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS)
    world.fill("web.visits", day(1, 7))
    world.graph = a_graph(replace(VISITS, cadence=Daily(start="2024-01-01", end="2024-01-07")))
    assert world.offered() == {}

    world.graph = a_graph(VISITS)

    assert world.offered() == {("daily", "web.visits"): days(8, 9, 10)}


def test_what_a_plan_of_a_new_table_has_is_refreshed_in_the_old_one_beside_it(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS)
    land(world, *range(1, 11))
    filled(world)
    plan = queued_edit(world)
    land(world, 9)

    assert world.offered() == {
        ("daily", "web.visits"): days(9),
        ("plan", "web.visits"): days(*range(1, 11)),
    }
    assert plan.environment == PROD


def test_a_plan_of_a_new_table_builds_again_what_is_refreshed_in_the_old_one(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS)
    land(world, *range(1, 11))
    filled(world)
    plan = queued_edit(world)
    world.fill("web.visits", day(1, 10), plan=plan)
    land(world, 9)
    assert ("plan", "web.visits") not in world.offered()

    rewrite(world, "web.visits", 9)

    assert world.offered() == {("plan", "web.visits"): days(9)}


def queued_edit(world: QueueWorld) -> Plan:
    """A plan of a new table for visits, in the queue; prod runs the old query until it is promoted."""
    sql = "SELECT ds, id, cost * 2 AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    world.graph = a_graph(a_model("web.visits", late_window=5, sql=sql))
    edit = PlanRequest(environment=PROD, asked_by="ann", reason="double")
    plan = plan_made(
        world.store, world.graph, edit, clock=lambda: world.now, data_root=str(world.root)
    )
    queue_plan(world.operation(plan), None)
    return plan


def test_late_work_is_asked_for_again_once_the_plan_that_it_waits_for_has_expired(tmp_path: Path):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, TOP))
    rewrite(world, "web.visits", 9)
    before = world.late_mark()
    plan_id = needed_plan(world.run(), world.project(), late_work_of(world.run()))
    assert plan_id is not None
    assert world.late_mark() == before

    world.now = world.store.plans.get(plan_id).expires_at
    expired = world.late_mark()
    again = needed_plan(world.run(), world.project(), late_work_of(world.run()))

    assert expired != before
    assert again != plan_id
    assert world.late_mark() == before


def test_late_work_is_asked_for_again_when_a_plan_that_answered_for_it_is_given_up(tmp_path: Path):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, TOP))
    rewrite(world, "web.visits", 9)
    plan = world.planned("web.sums", 9)
    assert needed_plan(world.run(), world.project(), late_work_of(world.run())) == plan.plan_id
    before = world.late_mark()

    abandon_plan(world.project(), plan)

    assert world.late_mark() != before


def test_late_work_is_asked_for_again_after_a_plan_that_a_run_of_it_may_have_waited_for(
    tmp_path: Path,
):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, TOP))
    rewrite(world, "web.visits", 9)
    before = world.late_mark()

    plan = world.queued("web.sums", 9)
    at_work = world.late_mark()
    abandon_plan(world.project(), plan)

    assert len({before, at_work, world.late_mark()}) == 3


@pytest.mark.parametrize("automation", ["report", "off"])
def test_late_work_is_asked_for_again_once_a_model_that_it_reaches_is_automatic(
    tmp_path: Path, automation: str
):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS, replace(TOP, automation=automation)))
    rewrite(world, "web.visits", 9)
    before = world.late_mark()

    world.graph = a_graph(VISITS, SUMS, TOP)

    assert world.late_mark() != before


@pytest.mark.parametrize("by_hand", ["web.visits", "web.sums"])
def test_late_data_that_reaches_what_is_not_automatic_is_named_in_every_tick(
    tmp_path: Path, by_hand: str
):
    models = [
        replace(model, automation="report") if model.name == by_hand else model
        for model in (VISITS, SUMS)
    ]
    world = QueueWorld.of(tmp_path, *models)
    land(world, *range(1, 11))
    filled(world)
    land(world, 9)

    for _ in range(2):
        assert world.look().notes == (
            (
                f"late data of web.visits is not brought in automatically where it reaches {by_hand}, whose "
                "automation is not 'on'; `backfill run` brings in what lies in late windows"
            ),
        )


def test_what_is_not_automatic_and_not_reached_keeps_no_late_data_back(tmp_path: Path):
    world = filled(QueueWorld.of(tmp_path, replace(VISITS, automation="report"), SUMS, TOP))
    rewrite(world, "web.visits", 9)

    assert world.look().notes == ()


@pytest.mark.parametrize(("kind", "again"), [(FailureKind.INPUT, True), (FailureKind.AUDIT, False)])
def test_what_its_input_failed_is_asked_for_again_when_that_is_mended_without_other_rows(
    tmp_path: Path, kind: FailureKind, *, again: bool
):
    world = QueueWorld.of(tmp_path, VISITS)
    land(world, *range(1, 10))
    world.fill("web.visits", day(1, 9))
    world.fail("web.visits", day(10), kind)
    assert world.offered() == {}

    table = DeltaTable(str(world.root / a_source().path))
    table.alter.add_columns([Field("more", PrimitiveType("string"))])
    land(world)

    assert world.offered() == ({("daily", "web.visits"): days(10)} if again else {})


def test_a_plan_whose_hours_cannot_be_read_keeps_nothing_else_from_going_on(tmp_path: Path):
    world = filled(QueueWorld.of(tmp_path, VISITS, SUMS))
    plan = world.queued("web.visits", 3)
    world.store.queue.queue_plan(plan.plan_id, "ann", "some day")
    world.pass_by(days=1)

    found = world.look()

    assert [offer.kind for offer in found.offers] == [ReleaseKind.DAILY]
    assert "some day" in found.notes[0]
