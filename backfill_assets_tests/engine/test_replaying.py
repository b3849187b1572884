"""A published cell is rebuilt from its recorded code and pins: equal, or with a stated cause."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch.effects import Effects
from backfill_assets.engine.review.replaying import Replay
from backfill_assets.engine.upkeep.collecting import REPLAYS, collect
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.intervals import IntervalSet, Weekly
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.replayed import Verdict
from backfill_assets.state.store import Store
from backfill_assets.warehouse.files.cell_files import new_folder
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, day, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_explaining import DOUBLED, forget, story
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.review.replayed import Replayed
    from backfill_assets_tests.engine.world import World

MONTH = timedelta(days=30)


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def replayed(
    world: World, graph: Graph, model: str, cells: IntervalSet, *, upstreams: bool = False
) -> list[Replayed]:
    run = world.open(graph)
    return [*Replay(run, upstreams=upstreams).published(run.graph.model(model), cells)]


def files(world: World) -> dict[str, str]:
    """Every file of the world but the state's own, by its content."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(world.root).rglob("*"))
        if path.is_file() and not path.name.startswith("state.db")
    }


def test_cells_that_were_cut_otherwise_are_published_but_not_replayed(world: World):
    world.begin(OLD, *ROWS)
    week = IntervalSet.of([Weekly().cell("2024-01-08")])

    (found,) = Replay(world.open(OLD)).published(costs(cadence=Weekly(start="2024-01-01")), week)

    assert (found.verdict, found.cell) == (Verdict.IMPOSSIBLE, *week)
    assert found.causes == ("its table has cells that were cut otherwise, or was deleted",)


def test_each_published_cell_of_a_story_is_rebuilt_equal(world: World, plans: Plans):
    story(world, plans)
    four = days(7, 8, 9, 10)
    world.open(OLD)
    before, counter = files(world), world.store.views.of("prod").counter
    found = replayed(world, OLD, COSTS, four, upstreams=True)
    assert {(each.model, each.verdict) for each in found} == {
        (VISITS, Verdict.EQUAL),
        (COSTS, Verdict.EQUAL),
    }
    assert len(found) == 8
    assert [each.model for each in found[:1]] == [VISITS]
    assert files(world) == before
    assert world.store.views.of("prod").counter == counter


def test_code_and_pins_are_those_of_the_batch_not_those_of_today(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *(row(number, 1, 5.0) for number in range(7, 11)))
    (found,) = replayed(world, DOUBLED, COSTS, days(8))
    assert (found.verdict, found.rows) == (Verdict.EQUAL, (1, 1))
    assert found.pins == (f"{VISITS}@1",)
    (visits,) = replayed(world, DOUBLED, VISITS, days(8))
    assert (visits.verdict, visits.pins) == (Verdict.EQUAL, (f"{EVENTS}@0",))


def test_an_upstream_that_was_rebuilt_since_is_read_as_it_was(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), row(7, 1, 70.0), *ROWS[1:])
    plan = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-07", "2024-01-07"),))
    plans.apply(OLD, plan)
    plans.promote(OLD, plan)
    verdicts = {each.verdict for each in replayed(world, OLD, COSTS, days(7, 8), upstreams=True)}
    assert verdicts == {Verdict.EQUAL}


def test_an_upstream_has_the_columns_that_it_was_run_with_though_others_built_its_older_cells(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    added = visits(", CAST(cost * 2 AS DECIMAL(18,2)) AS double")
    wider = a_graph(added, costs("coalesce(double, 0)"))
    plans.published(wider, forward_only=True)
    tenth = Restatement(COSTS, "2024-01-10", "2024-01-10")
    plans.published(wider, restate=(tenth,))  # no cell has the column yet
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(wider)
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 0, 22]

    found = replayed(world, wider, COSTS, days(9, 10, 11))

    assert [(each.verdict, each.causes) for each in found] == [(Verdict.EQUAL, ())] * 3


def test_a_volatile_query_is_named_as_the_cause(world: World):
    graph = a_graph(
        a_model(
            sql=f"SELECT ds, id, CAST(rand() * 1000000 AS DECIMAL(18,2)) AS cost FROM {EVENTS} {WHERE}",
            cadence=CADENCE,
            volatile=True,
        )
    )
    world.begin(graph, *ROWS)
    (found,) = replayed(world, graph, VISITS, days(8))
    assert (found.verdict, found.columns) == (Verdict.DIFFERS, ("cost",))
    assert found.causes == ("its query is declared volatile: it may answer differently each time",)


def test_a_difference_without_a_recorded_cause_is_said_to_have_none(world: World):
    world.begin(OLD, *ROWS)

    def tampered(session: Any, model: Any, interval: Any, inputs: Any) -> Any:  # noqa: ANN401
        return (
            Effects()
            .rows(session, model, interval, inputs)
            .selectExpr("ds", "id", "CAST(cost + 1 AS DECIMAL(18,2)) AS cost")
        )

    with world.doing(rows=tampered):
        (found,) = replayed(world, OLD, VISITS, days(8))
    assert (found.verdict, found.columns) == (Verdict.DIFFERS, ("cost",))
    assert found.causes == ("no recorded cause: code, pins and Spark are the same",)


def test_a_query_that_depends_on_its_batch_is_named_as_such(world: World):
    sql = (
        f"SELECT ds, id, CAST((SELECT COUNT(*) FROM {EVENTS} {WHERE}) AS DECIMAL(18,2)) AS cost "
        f"FROM {EVENTS} {WHERE}"
    )
    graph = a_graph(a_model(sql=sql, cadence=CADENCE, batch_size=4))
    world.begin(graph, *ROWS)
    (found,) = replayed(world, graph, VISITS, days(8))
    assert found.verdict is Verdict.DIFFERS
    assert ["computed together" in cause for cause in found.causes] == [True]


def test_a_source_whose_history_is_gone_can_not_be_replayed(world: World):
    world.begin(OLD, *ROWS)
    for path in Path(f"{world.root}/{a_source().path}").glob("*.parquet"):
        path.unlink()
    (found,) = replayed(world, OLD, VISITS, days(8))
    assert found.verdict is Verdict.IMPOSSIBLE
    assert found.causes[0]


@pytest.mark.parametrize("another_there", [False, True])
def test_a_source_is_read_where_its_table_was_moved_to(world: World, *, another_there: bool):
    world.begin(OLD, *ROWS)
    moved = replace(a_source(), path="sources/moved")
    shutil.move(f"{world.root}/{a_source().path}", f"{world.root}/{moved.path}")
    if another_there:
        world.land(a_source(), row(8, 1, 5.0))
    graph = a_graph(OLD.model(VISITS), OLD.model(COSTS), sources=[moved])
    (found,) = replayed(world, graph, VISITS, days(8))
    assert found.verdict is Verdict.EQUAL


def test_a_source_that_was_made_anew_is_not_read_in_place_of_the_old_one(world: World):
    world.begin(OLD, *ROWS)
    shutil.rmtree(f"{world.root}/{a_source().path}")
    world.land(a_source(), row(8, 1, 5.0))
    (found,) = replayed(world, OLD, VISITS, days(8))
    assert found.verdict is Verdict.IMPOSSIBLE
    (cause,) = found.causes
    assert f"the table of source '{EVENTS}' was made anew" in cause


def test_code_that_was_collected_can_not_be_replayed(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    old = world.pointer(COSTS).version
    plans.published(DOUBLED)
    forget(world, old)
    assert [each.verdict for each in replayed(world, OLD, COSTS, days(8))] == [Verdict.EQUAL]


def test_a_table_that_was_read_and_collected_since_is_named_as_the_cause(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    plan = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    read = next(
        pin.version for batch in world.store.batches.of_plan(plan.plan_id) for pin in batch.inputs
        if pin.upstream == VISITS
    )  # fmt: skip
    forget(world, read)

    (found,) = replayed(world, OLD, COSTS, days(8))

    assert found.verdict is Verdict.IMPOSSIBLE
    said = f"table {read} of '{VISITS}', which it read, was deleted by `backfill gc`"
    assert found.causes == (said,)


def test_what_a_plan_had_published_before_the_state_was_lost_can_not_be_replayed(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    plan = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    with Store.open(
        f"sqlite:///{world.root}/again.db", clock=world.clock, data_root=str(world.root)
    ) as store:
        rebuild_state(store, OLD, read_logs(OLD, str(world.root)))
        again = replace(world, store=store)
        for model in (VISITS, COSTS):
            (copied, own) = replayed(again, OLD, model, days(8, 9))
            assert (copied.verdict, own.verdict) == (Verdict.IMPOSSIBLE, Verdict.EQUAL)
            (cause,) = copied.causes
            assert f"plan {plan.plan_id} has published it" in cause
            assert "lost with the state" in cause


def test_a_cell_recorded_as_empty_is_equal_without_computing(world: World, plans: Plans):
    world.land(a_source(), *ROWS)
    plans.published(a_graph(a_model(cadence=CADENCE)), empty=True)
    (found,) = replayed(world, a_graph(a_model(cadence=CADENCE)), VISITS, days(8))
    assert (found.verdict, found.rows) == (Verdict.EQUAL, (0, 0))


def test_a_model_that_reads_its_own_earlier_cells_is_replayed_at_their_pins(world: World):
    sql = (
        f"SELECT ds, id, CAST(cost + COALESCE((SELECT SUM(cost) FROM {VISITS} "
        f"WHERE ds >= DATE_SUB(:start_ds, 1) AND ds < :start_ds), 0) AS DECIMAL(18,2)) AS cost "
        f"FROM {EVENTS} {WHERE}"
    )
    graph = a_graph(
        a_model(sql=sql, cadence=CADENCE, upstreams=[EVENTS, Upstream(VISITS, lookback=1)])
    )
    world.begin(graph, *ROWS)
    found = replayed(world, graph, VISITS, days(10), upstreams=True)
    assert {each.verdict for each in found} == {Verdict.EQUAL}
    assert {each.cell for each in found} == {day(7), day(8), day(9), day(10)}


def test_nothing_is_replayed_where_nothing_is_published(world: World):
    world.begin(OLD, *ROWS)
    assert replayed(world, OLD, COSTS, days(30)) == []


def test_a_cell_that_a_cutoff_keeps_is_rebuilt_by_its_own_older_code(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plans.published(DOUBLED, cutoff="2024-01-09", reason="doubled since then")
    found = replayed(world, DOUBLED, COSTS, days(8, 9))
    assert [each.verdict for each in found] == [Verdict.EQUAL, Verdict.EQUAL]
    assert len({each.fingerprint for each in found}) == 2


def test_files_that_a_replay_has_left_are_collected_a_day_later(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    folder = Path(world.root) / REPLAYS / new_folder()
    folder.mkdir(parents=True)
    left, written = folder / "part.parquet", world.clock.now.timestamp()
    left.write_bytes(b"12345")
    os.utime(left, (written, written))
    os.utime(folder, (written, written))
    run = world.open(OLD)
    assert not collect(run, MONTH).vacuumed

    world.clock.now += timedelta(days=1, seconds=1)
    (collected,) = collect(run, MONTH).vacuumed

    assert (collected.path, collected.bytes) == (f"{world.root}/{REPLAYS}", 5)
    assert not folder.exists()
    assert replayed(world, OLD, VISITS, days(8))[0].verdict is Verdict.EQUAL
