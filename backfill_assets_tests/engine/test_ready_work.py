"""What a look finds ready to be released, and what it does not look at twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pytest
import sqlalchemy as sa
from deltalake import DeltaTable, write_deltalake

from backfill_assets.engine.automatic.needed_plan import needed_plan
from backfill_assets.engine.batch.requests import REFRESH, batch_request
from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.plans.plan_verbs import abandon_plan, given_up, queue_plan
from backfill_assets.engine.plans.refusals import PlanConflictError
from backfill_assets.engine.review.dual_runs import dual_runs
from backfill_assets.intervals import WHOLE_CELL, Daily
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.source import WhenEmpty
from backfill_assets.planning.plan import batch_size as sizes
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.queue.releasing import ReleaseKind
from backfill_assets.planning.review.policy import PolicyError
from backfill_assets.planning.rule.late_work import LateWork
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.tables import PLANS
from backfill_assets_tests.builders import a_graph, a_model, a_source, a_whole, day, days
from backfill_assets_tests.engine.queue_world import LEASE, QueueWorld
from backfill_assets_tests.making import plan_made
from backfill_assets_tests.signing import quick_gate
from backfill_assets_tests.state.building import content, write

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.intervals import Cadence

ROWS = pa.schema([("ds", pa.date32()), ("id", pa.int64()), ("cost", pa.decimal128(18, 2))])
VISITS = a_model("web.visits", batch_size=2)
SUMS = a_model("web.sums", upstreams=["web.visits"])


@pytest.fixture
def world(tmp_path: Path) -> QueueWorld:
    return QueueWorld.of(tmp_path, VISITS, SUMS)


def test_of_an_empty_lake_only_what_reads_no_model_is_ready(world: QueueWorld):
    assert world.offered() == {("backfill", "web.visits"): days(*range(1, 11))}


def test_what_is_missing_after_the_last_ready_cell_is_daily_and_the_rest_a_backfill(
    world: QueueWorld,
):
    world.fill("web.visits", day(4, 3))

    assert world.offered() == {
        ("daily", "web.visits"): days(7, 8, 9, 10),
        ("backfill", "web.visits"): days(1, 2, 3),
        ("backfill", "web.sums"): days(4, 5, 6),
    }


def test_the_queue_cuts_as_a_plan_does_by_the_bytes_that_are_recorded(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    world.fill("web.visits", day(1, 10))  # 100 bytes
    monkeypatch.setattr(sizes, "BYTES_PER_BATCH", 35)

    (offer,) = world.look().offers
    plan = world.planned("web.visits", 1, 2)

    assert (offer.name, offer.size) == ("web.sums", 2)
    assert plan.batch_cells == {"web.visits": 2, "web.sums": 2}


def test_a_queued_plan_keeps_the_size_that_it_was_shown_with(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    monkeypatch.setattr(sizes, "BYTES_PER_BATCH", 35)
    plan = world.queued("web.sums", 1, 2, 3, 4)
    monkeypatch.undo()

    (offer,) = world.look().offers

    assert (offer.plan_id, offer.size) == (plan.plan_id, 2)


def test_nothing_is_asked_twice_while_no_pin_moves(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))

    assert world.look().asked == 2
    assert world.look().asked == 0

    world.pass_by(days=1)

    assert world.offered() == {("daily", "web.visits"): days(11)}
    world.fill("web.visits", day(11))
    assert world.offered() == {("daily", "web.sums"): days(11)}


def test_a_lost_memory_loses_nothing(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    before = world.offered()

    world.memory = world.memory.read("no json {")

    assert world.offered() == before


def test_cells_that_a_live_batch_holds_are_left_to_it_and_come_back_when_it_died(
    world: QueueWorld,
):
    world.fill("web.visits", day(1, 8))
    world.fill("web.sums", day(1, 8))
    world.open("web.visits", day(9))

    assert world.offered() == {("daily", "web.visits"): days(10)}

    world.pass_by(seconds=LEASE + 1)

    assert world.offered() == {("daily", "web.visits"): days(9, 10)}


def test_a_claim_on_all_that_is_missing_is_no_reason_to_look_away_for_good(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 9))
    world.open("web.visits", day(10))
    assert world.offered() == {}

    world.pass_by(seconds=LEASE + 1)

    assert world.offered() == {("daily", "web.visits"): days(10)}


def test_what_failed_for_good_blocks_its_readers_only_until_its_input_changes(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fail("web.sums", day(3, 2))
    assert world.offered() == {("backfill", "web.sums"): days(1, 2, 5, 6, 7, 8, 9, 10)}

    _rewrite(world, "web.visits", 3)

    assert world.offered() == {("backfill", "web.sums"): days(*range(1, 11))}


def test_what_failed_for_good_is_told_at_every_look_as_long_as_it_is_so(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 9))
    world.fail("web.sums", day(10))

    for _ in range(2):
        found = world.look()
        assert not found.offers
        [note] = found.notes
        assert "web.sums" in note
        assert "backfill batches --failed" in note

    _rewrite(world, "web.visits", 10)
    assert not world.look().notes


def test_a_failure_that_may_pass_comes_again_after_a_while(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 9))
    world.fail("web.visits", day(10), FailureKind.TRANSIENT)
    found = world.look()
    assert found.offers == ()
    [note] = found.notes
    assert "web.visits at 2024-01-11 01:02 UTC; the error was: no" in note

    world.pass_by(minutes=3)

    assert world.offered() == {("daily", "web.visits"): days(10)}


def test_what_a_person_cancelled_comes_again_after_two_minutes_however_often(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 9))
    for _ in range(10):
        world.fail("web.visits", day(10), FailureKind.CANCELLED)
        assert world.offered() == {}
        world.pass_by(minutes=2)
        assert world.offered() == {("daily", "web.visits"): days(10)}


@pytest.mark.parametrize("word", ["off", "report"])
def test_a_model_that_is_off_or_only_reported_is_never_released(tmp_path: Path, word: str):
    world = QueueWorld.of(tmp_path, replace(VISITS, automation=word), SUMS)

    found = world.look()

    assert not found.offers
    expected = {"web.visits": days(*range(1, 11))} if word == "report" else {}
    assert found.reported == expected


def test_a_queued_plan_is_offered_stage_by_stage_and_is_finished_when_all_of_it_is_built(
    world: QueueWorld,
):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    plan = world.queued("web.visits", 3, 4)

    assert world.offered() == {("plan", "web.visits"): days(3, 4)}
    world.fill("web.visits", day(3, 2), rows=12, plan=plan)
    assert world.offered() == {("plan", "web.sums"): days(3, 4)}
    world.fill("web.sums", day(3, 2), rows=12, plan=plan)

    [finish] = world.look().offers
    assert (finish.kind, finish.plan_id) == (ReleaseKind.FINISH, plan.plan_id)


def test_what_turns_out_the_same_spares_its_readers_and_the_plan_is_finished(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    plan = world.queued("web.visits", 3)

    world.fill("web.visits", day(3), plan=plan)

    assert [offer.kind for offer in world.look().offers] == [ReleaseKind.FINISH]


@pytest.mark.parametrize("control", [Control.PAUSED, Control.STOPPED, Control.CANCELLED])
def test_a_plan_that_is_held_is_not_released_and_says_so(world: QueueWorld, control: Control):
    world.fill("web.visits", day(1, 10))
    plan = world.queued("web.visits", 3)
    world.store.queue.control_plan(plan.plan_id, control, "ann")

    found = world.look()

    assert all(offer.plan_id is None for offer in found.offers)
    if control is Control.PAUSED:
        assert f"plan {plan.plan_id} is paused" in found.notes


def test_a_plan_that_pauses_schedules_keeps_them_from_its_models_until_it_ends(world: QueueWorld):
    for name in ("web.visits", "web.sums"):
        world.fill(name, day(1, 8))
    plan = world.queued("web.visits", 3, pause_schedules=True)

    found = world.look()

    assert {(offer.kind.value, offer.name) for offer in found.offers} == {("plan", "web.visits")}
    (note,) = found.notes
    assert f"plan {plan.plan_id} pauses the schedules of web.visits, web.sums until" in note
    abandon_plan(world.operation(plan).project, plan)
    assert world.offered() == {("daily", "web.visits"): days(9, 10)}


def test_a_plan_that_has_waited_for_too_long_pauses_nothing(world: QueueWorld):
    for name in ("web.visits", "web.sums"):
        world.fill(name, day(1, 8))
    plan = world.queued("web.visits", 3, pause_schedules=True)
    assert plan.expires_at > world.now

    world.now = plan.expires_at + timedelta(hours=1)

    assert ("daily", "web.visits") in world.offered()


def test_a_plan_waits_for_its_hours(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    plan = world.queued("web.visits", 3, off_peak="02:00-04:00 UTC")

    assert f"plan {plan.plan_id} waits for its hours" in world.look().notes[0]
    assert not world.look().offers

    world.pass_by(hours=2)

    assert world.offered() == {("plan", "web.visits"): days(3)}


def test_a_plan_that_nobody_queued_is_left_to_whoever_applies_it(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    world.planned("web.visits", 3)

    assert world.offered() == {}


def test_cells_of_an_open_plan_are_not_filled_beside_it(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 9))
    plan = world.queued("web.visits", 3)
    world.pass_by(days=1)

    found = world.offered()

    assert found["daily", "web.visits"] == days(11)  # the tenth was missing when the plan was made
    assert found["plan", "web.visits"] == days(3, 10)
    planned = plan.model("web.visits")
    assert planned is not None
    assert planned.cells == days(3, 10)


def test_a_queued_plan_that_has_waited_for_too_long_is_not_built_and_keeps_no_cell(
    world: QueueWorld,
):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 9))
    plan = world.queued("web.visits", 3)
    world.now = plan.expires_at + timedelta(hours=1)
    world.store.plans.tell(plan.plan_id, PlanEventKind.RESUMED, who="ann")  # it revives nothing

    found = world.look()

    assert {offer.plan_id for offer in found.offers} == {None}
    (missing,) = (offer.cells for offer in found.offers if offer.name == "web.visits")
    assert missing & days(10)
    assert f"plan {plan.plan_id} has waited for too long" in "; ".join(found.notes)


def test_a_plan_whose_models_were_edited_stops_with_the_difference_and_all_else_goes_on(
    world: QueueWorld,
):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 9))
    plan = world.queued("web.visits", 3)
    world.pass_by(days=1)
    edited = replace(VISITS, description="other words")
    world.graph = a_graph(edited, SUMS)

    found = world.look()

    assert [offer.kind for offer in found.offers] == [ReleaseKind.DAILY]
    [note] = found.notes
    assert "the code has changed" in note
    assert plan.plan_id in note
    assert "web.visits" in note


def test_a_model_that_is_gone_is_not_released(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    world.fill("web.sums", day(1, 8))
    world.graph = a_graph(VISITS)

    assert world.offered() == {("daily", "web.visits"): days(10)}


def test_a_model_that_only_a_plan_brings_to_prod_is_named(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS)
    world.fill("web.visits", day(1, 10))
    world.graph = a_graph(VISITS, SUMS)
    request = PlanRequest(environment=PROD, asked_by="ann", reason="sums are new")
    plan = plan_made(
        world.store, world.graph, request, clock=lambda: world.now, data_root=str(tmp_path)
    )
    queue_plan(world.operation(plan))

    [note] = world.look().notes

    assert note.startswith("models that wait for a plan")
    assert "web.sums" in note


def test_models_are_asked_in_turn_where_one_look_would_take_too_long(tmp_path: Path):
    models = [a_model(f"web.m{number}") for number in range(5)]
    world = QueueWorld.of(tmp_path, *models)

    rounds = [{offer.name for offer in world.look(most=22).offers} for _ in range(5)]

    assert all(len(names) == 2 for names in rounds)
    assert set().union(*rounds) == {model.name for model in models}


def _rewrite(world: QueueWorld, name: str, number: int, rows: int = 99) -> None:
    """Another content of a published cell, as a promotion brings it."""
    run = world.run()
    request = batch_request(run, run.graph.model(name), days(number), reason=REFRESH)
    opened = world.store.batches.open_batch(request)
    write(world.store, opened, dict.fromkeys(opened.request.cells, content(rows)))


def test_what_is_stale_is_offered_once_as_late_work_and_again_when_more_is(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    assert world.look().offers == ()
    _rewrite(world, "web.visits", 3)

    [first] = world.look().offers
    [same] = world.look().offers
    _rewrite(world, "web.visits", 4)
    [more] = world.look().offers
    _rewrite(world, "web.visits", 4, rows=98)
    [once_more] = world.look().offers

    assert first.kind is same.kind is more.kind is ReleaseKind.LATE
    assert first.mark == same.mark
    assert len({first.mark, more.mark, once_more.mark}) == 3


CLOSED = "[[rules]]\napprovers = ['bob@shop']\nlate_data = true\nclosed_before = 2024-01-09\n"


def test_late_data_that_a_policy_leaves_to_people_is_offered_once_the_policy_does_not(
    tmp_path: Path,
):
    world = QueueWorld(tmp_path, a_graph(replace(VISITS, late_window=5)))
    _land(world, *range(1, 11))
    world.fill("web.visits", day(1, 10))
    world.gate = lambda: quick_gate(CLOSED, "bob@shop")
    _land(world, 8)

    [needs_a_plan] = world.look().offers
    assert needs_a_plan.kind is ReleaseKind.LATE
    assert world.look().asked == 0

    world.gate = lambda: quick_gate(CLOSED.replace("-09", "-08"), "bob@shop")
    assert world.offered() == {("daily", "web.visits"): days(8)}


def test_a_policy_that_can_not_be_used_leaves_late_data_to_people_and_all_else_goes_on(
    tmp_path: Path,
):
    def unusable() -> NoReturn:
        raise PolicyError("policy.toml", "it is no TOML")

    world = QueueWorld(tmp_path, a_graph(replace(VISITS, late_window=5)), gate=unusable)
    _land(world, *range(1, 10))
    world.fill("web.visits", day(1, 9))
    _land(world, 8)

    assert world.offered() == {
        ("daily", "web.visits"): days(10),
        ("late", ""): IntervalSet.empty(),
    }


def test_a_model_whose_cells_prod_still_cuts_otherwise_waits_for_its_plan(world: QueueWorld):
    world.fill("web.visits", day(1, 9))
    world.graph = a_graph(replace(VISITS, cadence=Daily(start="2024-01-01", tz="Europe/Berlin")))

    assert world.offered() == {}


def test_cells_wait_for_the_rows_of_a_source_that_declares_so(tmp_path: Path):
    waits = a_source(when_empty=WhenEmpty.WAIT)
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[waits]))
    path = str(tmp_path / waits.path)
    for number in (1, 2, 5):
        landed = [{"ds": date(2024, 1, number), "id": number, "cost": Decimal(1)}]
        write_deltalake(path, pa.Table.from_pylist(landed, ROWS), mode="append")
    observe_sources(world.store, [waits], str(tmp_path), None)

    assert world.offered() == {("backfill", "web.visits"): days(1, 2, 5)}

    late = [{"ds": date(2024, 1, 3), "id": 3, "cost": Decimal(1)}]
    write_deltalake(path, pa.Table.from_pylist(late, ROWS), mode="append")
    observe_sources(world.store, [waits], str(tmp_path), None)

    assert world.offered() == {("backfill", "web.visits"): days(1, 2, 3, 5)}


def test_what_has_lost_its_rows_is_not_offered_where_its_source_lets_cells_wait(tmp_path: Path):
    waits = a_source(when_empty=WhenEmpty.WAIT)
    world = QueueWorld(tmp_path, a_graph(replace(VISITS, late_window=5), sources=[waits]))
    _land(world, *range(1, 11))
    world.fill("web.visits", day(1, 10))
    _lose(world, 9)
    assert world.offered() == {}

    _land(world, 9)
    assert world.offered() == {("daily", "web.visits"): days(9)}


def test_what_an_open_plan_has_is_not_offered_to_be_refreshed_beside_it(tmp_path: Path):
    world = QueueWorld(tmp_path, a_graph(replace(VISITS, late_window=5)))
    _land(world, *range(1, 11))
    world.fill("web.visits", day(1, 10))
    _land(world, 8)
    assert world.offered() == {("daily", "web.visits"): days(8)}

    plan = world.queued("web.visits", 8)
    assert world.offered()["plan", "web.visits"] == days(8)
    assert ("daily", "web.visits") not in world.offered()
    abandon_plan(world.project(), plan)
    assert world.offered() == {("daily", "web.visits"): days(8)}


def test_a_plan_that_can_not_be_read_keeps_its_cells_and_nothing_else_from_going_on(
    tmp_path: Path,
):
    world = QueueWorld(tmp_path, a_graph(replace(VISITS, late_window=5)))
    _land(world, *range(1, 11))
    world.fill("web.visits", day(1, 10))
    plan, again = world.queued("web.visits", 8), world.planned("web.visits", 8, reason="again")
    _of_another_release(world)
    world.pass_by(days=1)
    _land(world, 8, 9, 11)

    found = world.look()

    assert {offer.name: offer.cells for offer in found.offers} == {
        "web.visits": days(9, 11),
        "": IntervalSet.empty(),  # what is late on the 8th waits
    }
    [note] = found.notes
    assert note.startswith(f"plan {plan.plan_id} can't be read: ")
    assert f"`backfill abandon {plan.plan_id}`" in note
    with pytest.raises(PlanConflictError, match=f"2024-01-08 by plan {plan.plan_id}"):
        queue_plan(world.operation(again))

    abandon_plan(world.project(), given_up(world.store.plans.get(plan.plan_id)))
    assert world.offered()["daily", "web.visits"] == days(8, 9, 11)


def test_a_plan_that_can_not_be_read_is_no_dual_run_that_is_compared(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    plan = world.queued("web.visits", 3)
    world.store.plans.set_plan_status(plan.plan_id, PlanStatus.APPLYING, PlanStatus.BUILT)
    _of_another_release(world)

    assert dual_runs(world.store) == {}


def test_a_plan_that_can_not_be_read_keeps_late_data_from_no_other_plan(world: QueueWorld):
    world.fill("web.visits", day(1, 10))
    plan = world.queued("web.visits", 3)
    _of_another_release(world)
    work = LateWork(
        waiting=CellsByModel({"web.visits": days(3)}), because={"web.visits": "web.events"}
    )

    first = needed_plan(world.run(), world.project(), work)
    _of_another_release(world)
    world.pass_by(hours=1)
    second = needed_plan(world.run(), world.project(), work)

    assert first not in {None, plan.plan_id}
    assert second not in {None, first}
    assert world.store.plans.get(str(first)).status is PlanStatus.ABANDONED


def _of_another_release(world: QueueWorld) -> None:
    """Let the content of every plan be in a form that is not known here."""
    content = sa.update(PLANS).values(content="{}")
    world.store.plans._database.write(lambda connection: connection.execute(content))


@pytest.mark.parametrize(
    ("declared", "released"),
    [
        (Daily(start="2024-01-01", end="2024-01-07"), days(7)),
        (Daily(start="2024-01-09"), days(9, 10)),
        (Daily(start="2024-01-01", end="2024-01-05"), None),
        (Daily(start="2023-12-01", end="2025-01-01"), days(7, 8, 9, 10)),
    ],
)
def test_cells_outside_of_a_declared_life_that_is_not_promoted_are_named_and_not_released(
    world: QueueWorld, declared: Cadence, released: IntervalSet | None
):
    world.fill("web.visits", day(1, 6))
    world.fill("web.sums", day(1, 6))
    assert world.offered() == {("daily", "web.visits"): days(7, 8, 9, 10)}
    world.graph = a_graph(replace(VISITS, cadence=declared), SUMS)

    assert world.offered() == ({("daily", "web.visits"): released} if released else {})
    for cell in released or ():
        world.fill("web.visits", cell)
    world.look()
    [*notes] = world.look().notes
    if released == days(7, 8, 9, 10):
        assert notes == [
            (
                "models that declare cells which prod does not have until a plan is promoted: web.visits; "
                "see `backfill plan`"
            )
        ]
    else:
        [note] = notes
        assert note.startswith("cells missing lie outside of the declared start and end")
        assert "`backfill run --select web.visits` fills them" in note


def test_a_model_that_declares_other_cells_is_named_and_nothing_of_it_is_released(
    world: QueueWorld,
):
    world.fill("web.visits", day(1, 6))
    world.fill("web.sums", day(1, 6))
    world.graph = a_graph(VISITS, replace(SUMS, cadence=Daily(start="2024-01-01", tz="Asia/Tokyo")))

    assert world.offered() == {("daily", "web.visits"): days(7, 8, 9, 10)}
    assert world.look().notes == (
        (
            "models of which nothing is released, since they declare other cells than prod publishes: web.sums; "
            "see `backfill plan`"
        ),
    )


@pytest.mark.parametrize(
    ("declared", "ends"),
    [
        (Daily(start="2024-01-01", end="2024-01-20"), "2024-01-08"),
        (Daily(start="2024-01-01"), "2024-01-08"),
        (Daily(start="2024-01-01", end="2024-01-08"), None),
    ],
)
def test_a_life_that_ends_later_than_the_promoted_one_is_named(
    tmp_path: Path, declared: Cadence, ends: str | None
):
    running = replace(VISITS, cadence=Daily(start="2024-01-01", end=ends))
    world = QueueWorld.of(tmp_path, running)
    world.fill("web.visits", day(1, 8))
    world.graph = a_graph(replace(VISITS, cadence=declared))

    named = [note for note in world.look().notes if note.startswith("models that declare cells")]
    assert bool(named) is bool(ends)


def test_what_is_stale_has_the_same_name_whichever_models_a_scan_comes_to(tmp_path: Path):
    readers = [a_model(f"web.m{number}", upstreams=["web.visits"]) for number in range(4)]
    world = QueueWorld.of(tmp_path, VISITS, *readers)
    world.fill("web.visits", day(1, 10))
    for reader in readers:
        world.fill(reader.name, day(1, 8))
    _rewrite(world, "web.visits", 3)
    # Each reader is asked again at every scan, since cells of it can be built.
    [whole] = [offer.mark for offer in world.look().offers if offer.mark and not offer.name]

    marks = [
        offer.mark
        for _ in range(6)
        for offer in world.look(most=22).offers
        if offer.kind is ReleaseKind.LATE
    ]

    assert marks == [whole] * 6


def test_a_refresh_that_comes_after_a_build_is_another_one_than_that_which_built(tmp_path: Path):
    world = QueueWorld(tmp_path, a_graph(replace(VISITS, late_window=5)))
    _land(world, *range(1, 11))
    world.fill("web.visits", day(1, 10))
    _land(world, 8)

    [first] = world.look().offers
    _land(world, 8)
    [for_nothing] = world.look().offers
    _rewrite(world, "web.visits", 8)
    _land(world, 8)
    [second] = world.look().offers

    assert first.cells == second.cells == days(8)
    assert first.mark == for_nothing.mark != second.mark


def test_a_full_reader_is_offered_once_a_day_of_its_source_is_over_though_no_table_moves(
    tmp_path: Path,
):
    world = QueueWorld.of(tmp_path, a_whole("web.whole", late_window=1))
    _land(world, *range(1, 12))  # it is the 11th
    world.fill("web.whole", WHOLE_CELL)
    assert world.offered() == {}

    world.pass_by(days=1)

    assert world.offered() == {("daily", "web.whole"): IntervalSet.of([WHOLE_CELL])}


def test_a_plan_in_the_queue_builds_restated_cells_that_have_lost_their_rows(tmp_path: Path):
    waits = a_source(when_empty=WhenEmpty.WAIT)
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[waits]))
    _land(world, *range(1, 11))
    world.fill("web.visits", day(1, 10))
    _lose(world, 9)

    world.queued("web.events", 9)

    assert world.offered() == {("plan", "web.visits"): days(9)}


def _land(world: QueueWorld, *numbers: int) -> None:
    """Rows of some days arrive, a file each; then the source is looked at."""
    for number in numbers:
        rows = [{"ds": date(2024, 1, number), "id": number, "cost": Decimal(1)}]
        path = str(world.root / a_source().path)
        write_deltalake(path, pa.Table.from_pylist(rows, ROWS), mode="append")
    observe_sources(world.store, world.graph.sources.values(), str(world.root), None)


def _lose(world: QueueWorld, number: int) -> None:
    """A day loses all of its rows; then the source is looked at."""
    table = DeltaTable(str(world.root / a_source().path))
    table.delete(f"ds = '{date(2024, 1, number)}'")
    observe_sources(world.store, world.graph.sources.values(), str(world.root), None)
