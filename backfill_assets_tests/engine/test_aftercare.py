"""What a promotion has published is watched for as long as was asked, by a clock that the test moves."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.review.aftercare import ask_watch, look_after, watches
from backfill_assets.engine.review.evidence import facts_of
from backfill_assets.engine.review.way_back import way_back
from backfill_assets.errors import RequestError
from backfill_assets.evidence.verify import verify
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.graph import build_graph
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.orchestration.follow_ups import looks_due
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.aftercare import read_watch, watch_of
from backfill_assets.render.plan_life import watch_text
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.engine.review.aftercare import WatchedPlan
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.review.aftercare import Watch
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
DAY = timedelta(days=1)
SQL = (
    f"SELECT ds, id, CAST(cost AS DECIMAL(18,2)) AS cost FROM {EVENTS} "  # noqa: S608 - the test's own
    "WHERE ds >= :start_ds AND ds < :end_ds"
)
MODEL = a_model(
    sql=SQL,
    columns=COLUMNS,
    cadence=Daily(start="2024-01-01"),
    audits=[accepted_range("cost", 0, 100)],
)
BOARD = Consumer(
    name="board", kind="dashboard", owner="team:web", reads=[Reading(VISITS, days_back=30)]
)
READ = build_graph([MODEL], [a_source()], [BOARD])
ROWS = [row(day, number) for day in range(1, 11) for number in range(4)]


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


@pytest.fixture
def plan(world: World, plans: Plans) -> Plan:
    """A plan over ten days of four rows, promoted on the 11th and watched for two days."""
    world.begin(READ, *ROWS)
    plan = plans.make(READ, restate=(Restatement(VISITS),), reason="clicks came twice")
    plans.apply(READ, plan)
    ask_watch(plans.project(READ), plan.plan_id, 2 * DAY)
    plans.promote(READ, plan)
    return plan


def watch(world: World, plan: Plan) -> Watch:
    found = watch_of(world.store.plans.events(plan.plan_id))
    assert found is not None
    return found


def looked(plans: Plans, plan: Plan) -> WatchedPlan:
    return look_after(plans.project(READ), plan.plan_id)


def days_pass(world: World, *rows_a_day: int, cost: float = 1.0) -> None:
    """Let a day pass, land so many rows of it, and fill it; then the next one."""
    landed = list(ROWS)
    for day, rows in enumerate(rows_a_day, 11):
        world.clock.now += DAY
        landed += [row(day, number, cost) for number in range(rows)]
        world.land(a_source(), *landed)
        world.fill(READ)


def test_a_watch_counts_from_the_promotion_and_ends_with_the_first_look_after_it(
    world: World, plans: Plans, plan: Plan
):
    promoted = world.clock.now

    first = looked(plans, plan)
    days_pass(world, 4, 4)
    last = looked(plans, plan)

    assert (first.found, last.found) == ((), ())
    assert watch(world, plan).until == promoted + 2 * DAY
    assert watch_text(last.watch) == "was watched until 2024-01-13 00:00 UTC, 2 looks, all well"
    assert watches(world.store) == {}
    with pytest.raises(RequestError, match="its watch has ended"):
        looked(plans, plan)


def test_a_day_that_nothing_fills_is_named_with_who_reads_it_once_the_next_one_is_due(
    world: World, plans: Plans, plan: Plan
):
    world.clock.now += DAY
    in_time = looked(plans, plan)
    world.clock.now += timedelta(hours=23, minutes=59)
    still = looked(plans, plan)
    world.clock.now += timedelta(minutes=2)
    late = looked(plans, plan)

    assert (in_time.found, still.found) == ((), ())
    assert late.found == (
        f"{VISITS}: 2024-01-11 not filled, although the next cell is due",
        f"board (team:web) reads {VISITS} 2024-01-11: not there",
    )
    assert late.alarm.endswith(f"`backfill rollback {plan.plan_id}` goes back")


def test_a_table_that_was_there_already_is_watched_too(world: World, plans: Plans):
    doubled = SQL.replace("CAST(cost ", "CAST(cost * 2 ")
    new = build_graph([replace(MODEL, query=SqlQuery(doubled))], [a_source()], [BOARD])
    world.begin(READ, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(new, "dev")
    plan = plans.make(new)
    assert not plan.models[0].cells
    plans.apply(new, plan)
    ask_watch(plans.project(new), plan.plan_id, 3 * DAY)
    plans.promote(new, plan)
    world.clock.now += 2 * DAY

    found = look_after(plans.project(new), plan.plan_id).found

    assert "web.visits: 2024-01-11 not filled, although the next cell is due" in found


def test_a_new_day_of_another_size_than_those_around_it_is_named_with_the_numbers(
    world: World, plans: Plans, plan: Plan
):
    days_pass(world, 1)

    assert looked(plans, plan).found == (
        f"{VISITS}: rows = 1 in 2024-01-11, outside 4..4 of the cells around",
    )


def test_an_audit_that_fails_a_batch_since_is_named_until_the_cell_is_made_good(
    world: World, plans: Plans, plan: Plan
):
    days_pass(world, 4, cost=999.0)
    wrong = looked(plans, plan)
    world.land(a_source(), *ROWS, *(row(11, number) for number in range(4)))
    world.fill(READ)
    good = looked(plans, plan)

    assert [line.split(" ", 1)[1] for line in wrong.found] == [
        "audit accepted_range_cost failed on 2024-01-11"
    ]
    assert good.found == ()
    assert watch_text(good.watch).endswith(
        "2 looks, 1 of them with problems, the last look without problems"
    )


def test_the_sensor_looks_an_even_while_apart_and_once_after_the_end(
    world: World, plans: Plans, plan: Plan
):
    def asked() -> int:
        return len(looks_due(world.store, world.clock.now))

    assert asked() == 0
    world.clock.now += timedelta(hours=2)
    assert asked() == 1
    looked(plans, plan)
    assert asked() == 0
    days_pass(world, 4, 4)
    assert asked() == 1
    looked(plans, plan)
    assert asked() == 0


def test_what_is_taken_back_is_watched_no_more(world: World, plans: Plans, plan: Plan):
    looked(plans, plan)
    world.clock.now += timedelta(hours=1)
    rollback_plan(plans.project(READ), plan)

    assert watches(world.store) == {}
    told = "was watched until 2024-01-11 01:00 UTC, 1 look, all well"
    assert watch_text(watch(world, plan)) == told
    folder = Path(world.root) / "evidence" / plan.plan_id
    assert json.loads((folder / "aftercare.json").read_text())["watch"]["ended"] is True
    with pytest.raises(RequestError, match=r"it is rolled back$"):
        looked(plans, plan)


def test_what_a_dropped_environment_has_published_is_watched_no_more_and_has_no_way_back(
    world: World, plans: Plans
):
    world.begin(READ, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.published(READ, "dev", restate=(Restatement(VISITS),))
    ask_watch(plans.project(READ), plan.plan_id, DAY)
    project = InProject(project=plans.project(READ))
    assert [*watches(world.store)] == [plan.plan_id]
    assert way_back(facts_of(project, plan.plan_id)).commands

    world.store.environments.drop_environment("dev")

    assert watches(world.store) == {}
    back = way_back(facts_of(project, plan.plan_id))
    assert (back.commands, back.until) == ((), None)
    assert back.instead.startswith("Environment 'dev' was dropped at")
    with pytest.raises(RequestError, match=r"its environment was dropped$"):
        looked(plans, plan)


def test_the_evidence_is_written_anew_and_chained_when_the_watch_ends(
    world: World, plans: Plans, plan: Plan
):
    folder = Path(world.root) / "evidence" / plan.plan_id
    before = json.loads((folder / "aftercare.json").read_text())["watch"]
    assert (before["ended"], before["looks"]) == (False, [])
    assert verify(folder.parent).findings == ()

    looked(plans, plan)
    days_pass(world, 4, 4)
    looked(plans, plan)

    after = json.loads((folder / "aftercare.json").read_text())["watch"]
    assert (after["ended"], len(after["looks"]), after["found"]) == (True, 2, [])
    assert verify(folder.parent).findings == ()
    assert (folder / "manifest-1.json").is_file()
    assert json.loads((folder / "manifest.json").read_text())["ended"] == "promoted and watched"
    lineage = map(json.loads, (folder / "openlineage.ndjson").read_text().splitlines())
    ends = [event["eventType"] for event in lineage if event["job"]["name"] == "plan"]
    assert ends == ["START", "COMPLETE"]


def test_a_watch_that_is_asked_for_again_goes_on(world: World, plans: Plans, plan: Plan):
    days_pass(world, 4, 4)
    looked(plans, plan)

    ask_watch(plans.project(READ), plan.plan_id, 3 * DAY)

    assert [*watches(world.store)] == [plan.plan_id]
    assert looked(plans, plan).watch.ended is False
    assert len(watch(world, plan).looks) == 1, "the one that had ended it does not count"


def test_the_looks_of_another_end_are_requested_anew(world: World, plans: Plans, plan: Plan):
    begun, keys = world.clock.now, list[str | None]()
    for hours in range(2, 50, 2):
        world.clock.now = begun + timedelta(hours=hours)
        keys += [request.run_key for request in looks_due(world.store, world.clock.now)]
        looked(plans, plan)
    ask_watch(plans.project(READ), plan.plan_id, 8 * DAY)
    for hours in range(56, 200, 8):
        world.clock.now = begun + timedelta(hours=hours)
        keys += [request.run_key for request in looks_due(world.store, world.clock.now)]
        looked(plans, plan)

    assert len(keys) == len({*keys}) == 24 + 18, "Dagster requests a key once"


@pytest.mark.parametrize("text", ["", "24", "h", "0h", "1.5h", "-3d", "99999d", "24 hours"])
def test_a_time_that_cannot_be_read_is_refused_with_examples(text: str):
    with pytest.raises(RequestError, match="90m, 24h or 2d"):
        read_watch(text)
