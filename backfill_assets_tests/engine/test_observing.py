"""Looking at sources: what changed since the last look, and what batches read from then on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JNetworkError

from backfill_assets.engine.fill.fill import Filling
from backfill_assets.engine.fill.observing import SourceLook, observe_sources
from backfill_assets.engine.fill.schedule import run_scheduled
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import SourceNote
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.intervals import Daily, Monthly, Whole
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.column import Column
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.batch_size import BatchSize, SizedBy
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.state.store import Store
from backfill_assets.warehouse.sources import source_content
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import arrow, row, run_targets

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source
    from backfill_assets_tests.engine.world import World

EVENTS, VISITS = "web.events", "web.visits"
FIVE_DAYS = a_model(cadence=Daily(start="2024-01-01", end="2024-01-05"))


def append(world: World, source: Source, *rows: tuple[Any, ...], **how: Any) -> None:  # noqa: ANN401
    columns = {column.name: column.dtype for column in source.schema}
    write_deltalake(str(world.root / source.path), arrow(columns, rows), mode="append", **how)


def table(world: World, source: Source) -> DeltaTable:
    return DeltaTable(str(world.root / source.path))


def look(world: World, source: Source, *, spark: bool = True) -> SourceLook | None:
    session = (lambda: world.spark) if spark else None
    found = observe_sources(world.store, [source], str(world.root), session)
    return found[0] if found else None


def changed(world: World, source: Source, *, spark: bool = True) -> str:
    found = look(world, source, spark=spark)
    return ranges_text(source.cadence, found.changed) if found else "none"


def held(world: World, source: Source) -> str:
    return ranges_text(source.cadence, world.store.views.of("prod").sources[source.name].ready)


def stale(world: World, graph: Graph, name: str = VISITS) -> str:
    model = graph.model(name)
    work = needs_work(graph, world.store.views.of("prod"), model, now=world.clock())
    return ranges_text(model.cadence, work.late_cells)


def test_the_first_look_finds_which_cells_hold_rows_and_reopens_nothing(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1), row(2), row(5))
    assert changed(world, source) == "none"
    assert held(world, source) == "2024-01-01..2024-01-02 (2), 2024-01-05"
    world.fill(graph)
    assert stale(world, graph) == "none"
    assert look(world, source) is None


def test_late_rows_reopen_exactly_the_cells_that_read_them(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1), row(2))
    look(world, source)
    world.fill(graph)
    append(world, source, row(3), row(7))
    assert changed(world, source) == "2024-01-03, 2024-01-07"
    assert stale(world, graph) == "2024-01-03, 2024-01-07"


@pytest.mark.spark
def test_a_rewrite_with_equal_rows_changes_nothing_and_one_other_row_changes_its_cell(
    world: World,
):
    source = a_source()
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    world.land(source, row(3), row(2), row(1))
    assert changed(world, source) == "none"
    world.land(source, row(1), row(2, cost=9.0), row(3))
    assert changed(world, source) == "2024-01-02"
    world.land(source, row(1), row(2, cost=9.0))
    assert changed(world, source) == "2024-01-03"
    assert held(world, source) == "2024-01-01..2024-01-02 (2)"


def test_a_look_whose_spark_is_lost_is_taken_again_with_the_next_session(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    source, sessions = a_source(), [object(), world.spark]
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    world.land(source, row(1), row(2))
    compared, asked = source_content.content_by_cell, list[object]()

    def lost_once(session: Any, *about: Any) -> Any:  # noqa: ANN401 - what Spark is asked
        asked.append(session)
        if session is not world.spark:
            raise Py4JNetworkError("Answer from Java side is empty")
        return compared(session, *about)

    monkeypatch.setattr(source_content, "content_by_cell", lost_once)
    at_once = BatchPolicy(attempts=2, pause=0)

    (found,) = observe_sources(
        world.store, [source], str(world.root), lambda: sessions[len(asked)], policy=at_once
    )

    assert len(asked) == len(sessions)
    assert (ranges_text(source.cadence, found.changed), found.note) == ("2024-01-03", "")


def test_a_batch_reads_what_was_looked_at_and_not_what_came_since(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1))
    look(world, source)
    append(world, source, row(2))
    run, size = world.open(graph), BatchSize(SizedBy.NOTHING)
    filling = Filling(run, run.graph.model(VISITS), run_targets(run, VISITS), size)
    run_scheduled(run, [filling], lambda _: None)
    assert [ds.day for ds, *_ in world.rows(VISITS)] == [1]
    assert changed(world, source) == "2024-01-02"
    assert stale(world, graph) == "2024-01-02"


def test_rows_that_came_before_the_first_look_and_after_a_batch_are_late(world: World):
    source, graph = a_source(), a_graph(a_model(batch_size=5))
    world.land(source, row(1), row(6))
    world.go(world.open(graph), cells=days(1, 2, 3, 4, 5))
    append(world, source, row(2), row(7))
    world.go(world.open(graph))
    append(world, source, row(8))
    look(world, source)
    assert stale(world, graph) == "2024-01-02, 2024-01-08"  # the 7th was read by the second batch


def test_a_vacuumed_pin_makes_everything_that_was_touched_count_as_changed(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    world.fill(graph)
    world.land(source, row(1), row(2), row(3))
    table(world, source).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert changed(world, source) == "2024-01-01..2024-01-03 (3)"


def test_what_was_read_once_is_known_when_its_old_version_is_gone(world: World):
    source = a_source()
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    world.land(source, row(1), row(2, cost=2.0), row(3))
    table(world, source).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert changed(world, source) == "2024-01-02"


def test_a_table_made_anew_is_compared_as_a_whole_and_somebody_is_told(world: World):
    source = a_source()
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    world.land(source, row(1), row(2), row(3))
    look(world, source)
    shutil.rmtree(world.root / source.path)
    world.land(source, row(1), row(2, cost=5.0))
    found = look(world, source)
    assert found is not None
    assert ranges_text(source.cadence, found.changed) == "2024-01-02..2024-01-03 (2)"
    assert "was recreated: its id was" in found.note
    assert held(world, source) == "2024-01-01..2024-01-02 (2)"
    assert look(world, source) is None


def test_whoever_fills_looks_at_the_sources_first_and_tells_what_was_found(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1))
    world.fill(graph)
    shutil.rmtree(world.root / source.path)
    world.land(source, row(1), row(2))
    world.fill(graph)
    (noted,) = [event for event in world.heard if isinstance(event, SourceNote)]
    assert noted.model == VISITS
    assert EVENTS in noted.note
    assert "was recreated" in noted.note


def test_without_spark_the_log_answers_else_the_rows_of_files_that_came_and_went(world: World):
    source, columns = a_source(), {column.name: column.dtype for column in a_source().schema}
    world.land(source, row(1))
    assert look(world, source, spark=False) is not None  # one file, one cell
    append(world, source, row(4))
    assert changed(world, source, spark=False) == "2024-01-04"
    append(world, source, row(5), row(6))
    assert changed(world, source, spark=False) == "2024-01-05..2024-01-06 (2)"
    rows = [row(1), row(4), row(5, 2), row(6)]
    write_deltalake(str(world.root / source.path), arrow(columns, rows), mode="overwrite")
    assert changed(world, source, spark=False) == "2024-01-05"


def test_what_can_not_be_judged_without_spark_is_said_and_the_head_stays(world: World):
    source, columns = a_source(), {column.name: column.dtype for column in a_source().schema}
    world.land(source, row(1))
    look(world, source, spark=False)
    rows = arrow(columns, [row(1), row(2)])
    write_deltalake(str(world.root / source.path), rows, mode="overwrite")
    for file in (world.root / source.path).glob("*.parquet"):
        file.rename(file.with_suffix(".away"))
    found = look(world, source, spark=False)
    assert found is not None
    assert (found.judged, found.counts) == (False, True)
    assert "can't be found without Spark" in found.note
    assert world.store.sources.observed()[EVENTS].head == 0
    for file in (world.root / source.path).glob("*.away"):
        file.rename(file.with_suffix(".parquet"))
    assert changed(world, source) == "2024-01-02"


def test_a_first_look_that_needs_spark_is_left_to_a_run(world: World):
    source = a_source()
    world.land(source, row(1), row(2))
    assert look(world, source, spark=False) == SourceLook(EVENTS, judged=False, counts=False)
    assert world.store.sources.observed() == {}


def test_a_source_that_is_not_observed_is_left_alone(world: World):
    source = a_source(observed=False)
    world.land(source, row(1))
    assert look(world, source) is None
    assert world.store.sources.observed() == {}


def test_a_source_that_is_read_as_a_whole_is_one_cell(world: World):
    source = a_source(cadence=Whole())
    world.land(source, row(1), row(2))
    look(world, source)
    world.land(source, row(2), row(1))
    assert changed(world, source) == "none"
    append(world, source, row(9))
    assert changed(world, source) == "whole"


def test_another_grid_is_looked_at_anew_and_what_was_read_of_before_stays_late(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1), row(2))
    look(world, source)
    world.fill(graph)
    append(world, source, row(2, 2))
    monthly = a_source(cadence=Monthly(start="2024-01-01"))
    assert changed(world, monthly) == "2024-01-01"
    assert held(world, monthly) == "2024-01-01"


def test_rows_that_an_earlier_start_of_a_source_makes_readable_reopen_what_has_not_read_them(
    world: World,
):
    begins, earlier = (a_source(cadence=Daily(start=f"2024-01-{day:02}")) for day in (4, 2))
    graph = a_graph(a_model(upstreams=[Upstream(EVENTS, lookback=1)]), sources=[begins])
    world.land(begins, row(1), row(3), row(4), row(9))
    look(world, begins)
    world.fill(graph)
    append(world, begins, row(9, 2))
    look(world, begins)

    assert changed(world, earlier) == "2024-01-03"
    assert held(world, earlier) == "2024-01-03..2024-01-04 (2), 2024-01-09"
    assert stale(world, a_graph(graph.models[VISITS], sources=[earlier])) == (
        "2024-01-03..2024-01-04 (2), 2024-01-09..2024-01-10 (2)"
    )


def test_what_a_source_does_not_declare_for_a_while_is_looked_at_anew_when_it_does_again(
    world: World,
):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1), row(2), row(5))
    look(world, source)
    world.fill(graph)
    later = a_source(cadence=Daily(start="2024-01-03"))
    assert changed(world, later) == "none"
    assert held(world, later) == "2024-01-05"
    append(world, source, row(1, 2))
    assert changed(world, later) == "none"
    assert changed(world, source) == "2024-01-01..2024-01-02 (2)"
    assert stale(world, graph) == "2024-01-01..2024-01-02 (2)"


def test_a_table_made_anew_and_cut_otherwise_meanwhile_counts_as_changed_throughout(world: World):
    source, graph = a_source(), a_graph(a_model())
    monthly = a_source(cadence=Monthly(start="2024-01-01"))
    world.land(source, row(1), row(2), row(4))
    look(world, source)
    world.fill(graph)
    shutil.rmtree(world.root / source.path)
    world.land(source, row(1), row(2, cost=5.0))
    found = look(world, monthly)
    assert found is not None
    assert ranges_text(monthly.cadence, found.changed) == "2024-01-01"
    assert "was recreated" in found.note

    look(world, source)  # and cut as before again
    assert stale(world, graph) == "2024-01-01..2024-01-10 (10)"


def test_a_table_moved_and_cut_otherwise_meanwhile_has_late_what_came_since(world: World):
    source, graph = a_source(), a_graph(a_model())
    moved = a_source(path="elsewhere", cadence=Monthly(start="2024-01-01"))
    world.land(source, row(1), row(2))
    look(world, source)
    world.fill(graph)
    shutil.move(world.root / source.path, world.root / moved.path)
    assert changed(world, moved) == "none"
    append(world, moved, row(2, 2))
    assert changed(world, a_source(path="elsewhere")) == "2024-01-02"
    assert stale(world, graph) == "2024-01-02"


def test_a_rebuilt_state_knows_by_the_commits_that_a_table_was_made_anew(
    world: World, tmp_path: Path
):
    """Also of days that have no row in the new table: what they were built from is not known any more."""
    source, graph = a_source(), a_graph(FIVE_DAYS)
    world.land(source, row(1), row(2), row(5))
    world.fill(graph)
    shutil.rmtree(world.root / source.path)
    world.land(source, row(2))
    with Store.open(
        f"sqlite:///{tmp_path / 'again.db'}", clock=world.clock, data_root=str(world.root)
    ) as store:
        rebuild_state(store, graph, read_logs(graph, str(world.root)))
        again = replace(world, store=store)
        assert changed(again, source) == "2024-01-01..2024-01-05 (5)"
        assert stale(again, graph) == "2024-01-01..2024-01-05 (5)"


@pytest.mark.spark
@pytest.mark.parametrize("by_spark", [True, False])
def test_a_changed_column_reopens_only_what_reads_it(world: World, by_spark: bool):  # noqa: FBT001
    """Values of `cost` change, then change places with those of another row: ids alone stay."""
    source = a_source()
    columns = {column.name: column.dtype for column in source.schema}
    sql = "SELECT ds, id, CAST(1 AS DECIMAL(18,2)) AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    graph = a_graph(a_model("web.ids", sql=sql), a_model("web.costs"))
    world.land(source, row(1, 1, 1.0), row(1, 2, 2.0), row(2))
    look(world, source)
    world.fill(graph)
    for costs in ((3.0, 2.0), (2.0, 3.0)):
        rows = [row(1, 1, costs[0]), row(1, 2, costs[1]), row(2)]
        write_deltalake(str(world.root / source.path), arrow(columns, rows), mode="overwrite")
        assert changed(world, source, spark=by_spark) == "2024-01-01"
    assert stale_by_column(world, graph) == {"web.ids": "none", "web.costs": "2024-01-01"}
    rows = [row(1, 1, 2.0), row(1, 3, 3.0), row(2)]
    write_deltalake(str(world.root / source.path), arrow(columns, rows), mode="overwrite")
    changed(world, source, spark=by_spark)
    assert stale_by_column(world, graph)["web.ids"] == "2024-01-01"


def stale_by_column(world: World, graph: Graph) -> dict[str, str]:
    reads = {name: lineage_of(graph, model).reads for name, model in graph.models.items()}
    view, now = world.store.views.of("prod"), world.clock()
    return {
        name: ranges_text(
            model.cadence,
            needs_work(graph, view, model, now=now, reads=reads[name]).late_cells,
        )
        for name, model in graph.models.items()
    }


@pytest.mark.spark
def test_rows_without_statistics_are_read(world: World):
    source = a_source()
    none = {"delta.dataSkippingNumIndexedCols": "0"}
    append(world, source, row(1), configuration=none)
    look(world, source)
    append(world, source, row(4))
    assert changed(world, source, spark=False) == "2024-01-04"
    append(world, source, row(5))
    assert changed(world, source) == "2024-01-05"


@pytest.mark.spark
def test_a_column_that_is_new_in_the_table_changes_no_cell_that_holds_null_there(world: World):
    source = a_source()
    world.land(source, row(1), row(2))
    more = a_source(columns=(*source.schema, Column("note", "string")))
    look(world, more)
    append(world, more, (*row(2, 2), "late"), schema_mode="merge")
    table(world, source).optimize.compact()
    table(world, source).update({"cost": "cost"}, predicate="id = 1")
    assert changed(world, more) == "2024-01-02"


def test_a_source_that_lost_a_declared_column_keeps_its_cells_stale_until_it_is_back(world: World):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1))
    look(world, source)
    world.fill(graph)
    path = str(world.root / source.path)
    kept = table(world, source).to_pyarrow_table().drop_columns(["cost"])
    write_deltalake(path, kept, mode="overwrite", schema_mode="overwrite")
    found = look(world, source, spark=False)
    assert found is not None
    assert not found.judged
    assert changed(world, source) == "2024-01-01"
    assert stale(world, graph) == "2024-01-01"


def test_a_damaged_log_is_told_and_keeps_nobody_from_looking_at_the_rest(world: World):
    broken, other = a_source(), a_source(name="web.clicks", path="clicks")
    world.land(broken, row(1))
    world.land(other, row(1))
    (world.root / broken.path / "_delta_log" / f"{0:020d}.json").write_text("{")
    found = observe_sources(world.store, [broken, other], str(world.root), lambda: world.spark)
    assert [source_look.source for source_look in found] == [EVENTS, "web.clicks"]
    assert "was not looked at" in found[0].note
    assert set(world.store.sources.observed()) == {"web.clicks"}


def test_what_a_plan_has_built_is_promoted_and_a_late_row_of_meanwhile_stays_late(world: World):
    """The cells are published with a newer number, but have read the source as it was before."""
    source, graph, plans = a_source(), a_graph(a_model()), Plans(world)
    world.land(source, row(1), row(2))
    look(world, source)
    world.fill(graph)
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-02", "2024-01-03"),))
    assert plans.apply(graph, plan).left == {}
    append(world, source, row(2, 2))
    look(world, source)
    plans.promote(graph, plan)
    assert stale(world, graph) == "2024-01-02"


def test_a_rebuilt_state_finds_late_rows_by_what_the_commits_say_they_read(
    world: World, tmp_path: Path
):
    source, graph, plans = a_source(), a_graph(a_model(batch_size=5)), Plans(world)
    world.land(source, *(row(number) for number in range(1, 11)))
    look(world, source)
    world.fill(graph)
    append(world, source, row(3, 2))
    look(world, source)
    # What a plan copied in has read the late row of the 3rd, and none of what comes.
    plans.published(graph)
    append(world, source, row(7, 2))

    with Store.open(
        f"sqlite:///{tmp_path / 'again.db'}", clock=world.clock, data_root=str(world.root)
    ) as store:
        rebuild_state(store, graph, read_logs(graph, str(world.root)))
        again = replace(world, store=store)
        assert changed(again, source) == "2024-01-03, 2024-01-07"
        assert stale(again, graph) == "2024-01-07"
        append(world, source, row(1, 2))
        assert changed(again, source) == "2024-01-01"
        assert stale(again, graph) == "2024-01-01, 2024-01-07"


def clean_log(path: Path) -> None:
    """Leave of a log what a clean-up leaves: a checkpoint, and the last commit."""
    DeltaTable(str(path)).create_checkpoint()
    for commit in sorted((path / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()


@pytest.mark.parametrize("looked_at_before", [True, False])
def test_a_table_made_anew_is_noticed_though_the_old_ones_log_was_cleaned(
    world: World,
    looked_at_before: bool,  # noqa: FBT001
):
    source, graph = a_source(), a_graph(a_model())
    path = world.root / source.path
    for number in (1, 2, 3):
        append(world, source, row(number))
    if looked_at_before:
        look(world, source)
    clean_log(path)
    look(world, source)
    world.fill(graph)
    shutil.rmtree(path)
    for number in (1, 2, 3, 4):
        append(world, source, row(number, cost=5.0))

    found = look(world, source)
    assert found is not None
    assert "was recreated: its id was" in found.note
    assert stale(world, graph) == "2024-01-01..2024-01-04 (4)"


def test_a_table_that_was_moved_is_the_same_though_its_log_was_cleaned(world: World):
    source, moved = a_source(), a_source(path="elsewhere")
    graph = a_graph(a_model(), sources=[moved])
    for number in (1, 2, 3):
        append(world, source, row(number))
    look(world, source)
    clean_log(world.root / source.path)
    look(world, source)
    world.fill(a_graph(a_model()))
    shutil.move(world.root / source.path, world.root / moved.path)
    append(world, moved, row(2, 2))
    assert changed(world, moved) == "2024-01-02"
    assert stale(world, graph) == "2024-01-02"


def test_a_look_before_a_rebuild_hides_no_late_row(world: World, tmp_path: Path):
    source, graph = a_source(), a_graph(a_model())
    world.land(source, row(1), row(2))
    world.fill(graph)
    append(world, source, row(2, 2))
    with Store.open(
        f"sqlite:///{tmp_path / 'again.db'}", clock=world.clock, data_root=str(world.root)
    ) as store:
        again = replace(world, store=store)
        look(again, source)  # as a plan does
        rebuild_state(store, graph, read_logs(graph, str(world.root)))
        look(again, source)
        assert stale(again, graph) == "2024-01-02"


def test_a_table_that_was_only_moved_is_the_same(world: World):
    source, moved = a_source(), a_source(path="elsewhere")
    world.land(source, row(1), row(2))
    look(world, source)
    shutil.move(world.root / source.path, world.root / moved.path)
    append(world, moved, row(2, 2))
    assert changed(world, moved) == "2024-01-02"
    assert world.store.sources.observed()[EVENTS].path == "elsewhere"
