"""A cell is its files: what is written, kept, named again, and when no Spark is asked for it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from deltalake import DeltaTable

from backfill_assets.engine.batch.audit_run import audit_and_keep_each
from backfill_assets.engine.plans import strategy_checks
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan, undo_plan
from backfill_assets.engine.plans.strategy_checks import UnexpectedChangeError
from backfill_assets.engine.project.events import Committed, Failed
from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Hourly, Interval, IntervalSet
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.models.source import TimeColumns
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import Environment, workspace_name
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.warehouse.spark.spark_errors import DamagedFileError, PinGoneError
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    MORE,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import World, ended, kept, row, told
from backfill_assets_tests.warehouse.shop import partitions_touched

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan


class NoSpark:
    """A session that must not be asked for anything."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        pytest.fail(f"Spark was asked for {name}")


@pytest.fixture
def spared(world: World) -> World:
    """The same world, where Spark does not answer."""
    nothing: SparkSession = NoSpark()  # type: ignore[assignment]
    return replace(world, spark=nothing, runs=500)


_HALF = f"SELECT ds, id, CAST(cost / 2 AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}"  # noqa: S608
HALVED = a_graph(a_model(sql=_HALF, cadence=CADENCE), costs())


def files(world: World, at: int | None = None) -> set[str]:
    """The files that a version of the visits' table consists of, by their paths below it."""
    root = Path(world.path(VISITS))
    uris = DeltaTable(str(root), version=at).file_uris()
    return {str(Path(uri).relative_to(root)) for uri in uris}


def lying(world: World) -> list[Path]:
    """The data files that lie where tables are, whoever names them."""
    return [*world.root.glob("tables/**/*.parquet")]


def test_a_batch_that_fails_its_audit_leaves_no_file(world: World):
    graph = a_graph(visits(audits=[accepted_range("cost", None, 9)]))
    world.land(a_source(), *ROWS)
    (failed,) = ended(world.fill(graph)[VISITS], Failed)
    assert "accepted_range_cost" in failed.error
    assert (lying(world), world.head(VISITS)) == ([], -1)


def test_of_a_batch_only_the_cells_whose_rows_differ_get_other_files(world: World):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    graph = a_graph(visits())
    world.land(a_source(), *ROWS)
    world.fill(graph)
    before, at = files(world), world.head(VISITS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    again = world.fill(graph, cells=days(*range(7, 11)), published=PublishedCells.REBUILT)
    (done,) = ended(again[VISITS], Committed)
    assert done.rows == len(ROWS)
    assert partitions_touched(world.path(VISITS), at + 1) == {"2024-01-08"}
    assert len(files(world) & before) == len(ROWS) - 1
    assert world.rows(VISITS) == kept(*changed(row(8, 1, 99.0)))
    root = Path(world.path(VISITS))
    assert {str(path.relative_to(root)) for path in lying(world)} == files(world, at) | files(world)


def test_a_cell_whose_files_a_stranger_took_gets_new_ones_though_its_rows_are_the_same(
    world: World,
):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    graph = a_graph(visits())
    world.land(a_source(), *ROWS)
    world.fill(graph)
    (torn,) = (path for path in files(world) if "2024-01-08" in path)
    (Path(world.path(VISITS)) / torn).unlink()
    again = world.fill(graph, cells=days(*range(7, 11)), published=PublishedCells.REBUILT)
    assert told(again[VISITS]) == ["committed"]
    assert world.rows(VISITS) == kept(*ROWS)


def test_a_restatement_replaces_files_that_are_gone_though_its_rows_are_the_same(world: World):
    world.begin(OLD, *ROWS)
    (lost,) = (path for path in files(world) if "2024-01-08" in path)
    (Path(world.path(VISITS)) / lost).unlink()

    plan = Plans(world).published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-09"),))

    assert world.rows(VISITS) == kept(*ROWS)
    rollback_plan(Plans(world).project(OLD), plan)
    assert world.rows(VISITS) == kept(*ROWS)


def test_other_rows_for_files_that_are_gone_are_promoted_once_a_person_accepts_them(world: World):
    world.begin(OLD, *ROWS)
    (lost,) = (path for path in files(world) if "2024-01-08" in path)
    (Path(world.path(VISITS)) / lost).unlink()
    corrected = changed(row(8, 1, 99.0))
    world.land(a_source(), *corrected)
    plan = Plans(world).make(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-09"),))

    applied = Plans(world).apply(OLD, plan)

    assert "only cells 2024-01-08..2024-01-09 (2) differ: can't be judged" in applied.refused
    with pytest.raises(UnexpectedChangeError):
        Plans(world).promote(OLD, plan)
    (check,) = (each for each in world.store.checks.of_plan(plan.plan_id) if each.stops)
    world.store.checks.accept(plan.plan_id, check, who="ann", reason="a disk has failed")
    Plans(world).promote(OLD, plan)
    assert world.rows(VISITS) == kept(*corrected)
    with pytest.raises(RequestError, match="can't be taken back any more: files"):
        rollback_plan(Plans(world).project(OLD), plan)


def test_a_lost_table_of_a_plan_is_abandoned_with_its_plan(world: World):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = Plans(world).make(OLD, restate=(Restatement(VISITS),))
    Plans(world).apply(OLD, plan)
    for pointer in world.store.environments.own_pointers(workspace_name(plan.plan_id)).values():
        shutil.rmtree(world.store.versions.version_path(pointer.version))

    left = collect(world.open(OLD), timedelta(days=7)).passed_over
    assert [f"`backfill abandon {plan.plan_id}`" in each.why for each in left] == [True, True]

    abandon_plan(Plans(world).project(OLD), plan)
    assert collect(world.open(OLD), timedelta(days=7)).passed_over == ()


def test_a_new_table_in_the_place_of_one_whose_files_are_gone_waits_for_a_person(world: World):
    world.begin(OLD, *ROWS)
    (lost,) = (path for path in files(world) if "2024-01-08" in path)
    (Path(world.path(VISITS)) / lost).unlink()
    plan = Plans(world).make(HALVED)

    applied = Plans(world).apply(HALVED, plan)

    assert "full rebuild: can't be judged" in applied.refused
    for check in world.store.checks.of_plan(plan.plan_id):
        if check.stops:
            world.store.checks.accept(plan.plan_id, check, who="ann", reason="a disk has failed")
    Plans(world).promote(HALVED, plan)
    assert [cost for _, _, cost in world.rows(VISITS)] == [3.5, 4, 4.5, 5]


def test_files_that_a_plan_has_built_and_that_are_gone_are_accepted_by_no_person(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def lose(project: Project, plan: Plan) -> None:
        built = project.store.environments.pointers(workspace_name(plan.plan_id))[VISITS].version
        for path in world.root.glob(f"tables/**/{built}/**/_cell=2024-01-08/*.parquet"):
            path.unlink()

    world.begin(OLD, *ROWS)
    plan = Plans(world).make(HALVED)
    monkeypatch.setattr(strategy_checks, "refuse_lost_history", lose)

    with pytest.raises(PinGoneError):
        Plans(world).apply(HALVED, plan)
    assert world.store.checks.of_plan(plan.plan_id) == ()


def test_a_model_whose_files_are_gone_is_named_and_the_others_are_audited(world: World):
    world.begin(OLD, *ROWS)
    for path in Path(world.path(COSTS)).glob("**/_cell=2024-01-08/*.parquet"):
        path.unlink()

    results, unreadable = audit_and_keep_each(world.open(OLD), (COSTS, VISITS))

    assert {each.passed for each in results.pop(VISITS)} == {True}
    assert (results, [*unreadable]) == ({}, [COSTS])
    assert "_cell=2024-01-08" in unreadable[COSTS]
    assert "backfill plan --restate" in unreadable[COSTS]


@pytest.mark.parametrize("kind", [None, IncrementalByUniqueKey("ds")], ids=["cells", "keys"])
def test_restated_cells_are_promoted_rolled_back_and_undone_without_spark(
    world: World, spared: World, kind: IncrementalByUniqueKey | None
):
    graph = OLD if kind is None else a_graph(visits(kind=kind, unique_key=["id"]))
    good, bad = ([row(n, n, cost) for n in range(7, 11)] for cost in (1.0, 99.0))
    world.land(a_source(), *good)
    world.fill(graph)
    before = files(world)
    for back in (rollback_plan, undo_plan):
        world.land(a_source(), *bad)
        plan = Plans(world).make(graph, restate=(Restatement(VISITS),))
        assert Plans(world).apply(graph, plan).left == {}
        Plans(spared).promote(graph, plan)
        assert world.rows(VISITS) == kept(*bad)
        back(Plans(spared).project(graph), plan)
        assert world.rows(VISITS) == kept(*good)
        assert files(world) == before


def read_by_polars(world: World, name: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = pl.read_delta(world.path(name), version=world.pointer(name).delta_version)
    return sorted(rows.select(columns).rows())


def test_polars_reads_what_a_promotion_has_copied(world: World):
    world.begin(OLD, *ROWS)
    corrected = changed(row(8, 1, 99.0))
    world.land(a_source(), *corrected)

    Plans(world).published(OLD, restate=(Restatement(VISITS),))

    assert read_by_polars(world, VISITS, "ds", "id", "cost") == kept(*corrected)


def test_what_apply_has_compared_is_compared_again_only_where_files_moved(
    world: World, spared: World
):
    world.begin(OLD, *ROWS)
    plan = Plans(world).make(MORE)
    applied = Plans(world).apply(MORE, plan)
    assert (applied.left, applied.refused) == ({}, "")
    # Its strategy counts the values of the new column, for which `apply` has asked Spark already.
    Plans(spared).promote(MORE, plan)
    assert [double for _, double in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20]


def test_an_empty_backfill_needs_no_spark(spared: World):
    plan = Plans(spared).make(OLD, empty=True, select=(VISITS,))
    assert Plans(spared).apply(OLD, plan).left == {}
    Plans(spared).promote(OLD, plan)
    assert spared.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert (spared.rows(VISITS), spared.ready(OLD, VISITS)) == ([], "2024-01-07..2024-01-10 (4)")
    assert told(spared.fill(OLD, VISITS, cells=days(*range(7, 11)))[VISITS]) == ["skipped"]


HOURS = "web.hours"
SEEN = a_source(
    cadence=Hourly(start="2024-01-08"),
    columns=(Column("at", "timestamp"), Column("id", "bigint"), Column("cost", "bigint")),
    times=TimeColumns(event="at"),
)


def hours(**declared: Any) -> Graph:  # noqa: ANN401
    """Every event of an hour."""
    where = "WHERE at >= :start_ts AND at < :end_ts"
    given: dict[str, Any] = {
        "sql": f"SELECT at, id, cost FROM {SEEN.name} {where}",  # noqa: S608 - the test's own
        "kind": IncrementalByTimeRange("at"),
        "cadence": SEEN.cadence,
        "columns": SEEN.columns,
        "grain": "one row per event",
        "unique_key": ["id"],
    }
    return a_graph(a_model(HOURS, **{**given, **declared}), sources=[SEEN])


def hour(number: int, cost: int = 1) -> tuple[datetime, int, int]:
    """An event in an hour since January 8th."""
    return datetime(2024, 1, 8, tzinfo=UTC) + timedelta(hours=number, minutes=20), number, cost


@pytest.mark.parametrize("kind", [None, IncrementalByUniqueKey("at")], ids=["cells", "keys"])
def test_hours_are_restated_promoted_taken_back_and_joined_without_touching_their_days(
    world: World, spared: World, kind: IncrementalByUniqueKey | None
):
    graph = hours() if kind is None else hours(kind=kind)
    world.clock.now = datetime(2024, 1, 10, tzinfo=UTC)
    good = [hour(number) for number in range(48) if number != 30]
    bad = [hour(number, 9 if number in {5, 29} else cost) for _, number, cost in good]
    world.land(SEEN, *good)
    world.fill(graph)
    assert len(_files_of(world)) == 2
    world.land(SEEN, *bad)
    some = Restatement(HOURS, "2024-01-08T04:00:00Z", "2024-01-09T07:00:00Z")
    plan = Plans(world).make(graph, restate=(some,))
    assert Plans(world).apply(graph, plan).left == {}
    Plans(spared).promote(graph, plan)
    assert world.rows(HOURS, "at", "id", "cost") == sorted(bad)
    assert read_by_polars(world, HOURS, "at", "id", "cost") == sorted(bad)
    rollback_plan(Plans(spared).project(graph), plan)
    assert world.rows(HOURS, "at", "id", "cost") == sorted(good)
    piled, at = len(_files_of(world)), world.head(HOURS)
    assert piled > 2
    found = collect(spared.open(graph), timedelta(days=7))
    assert [(table.files, table.blocks) for table in found.compacted] == [(piled, 2)]
    assert world.rows(HOURS, "at", "id", "cost") == sorted(good)
    assert (len(_files_of(world)), world.head(HOURS)) == (2, at + 1)
    assert world.pointer(HOURS).delta_version == at + 1
    world.clock.now += timedelta(hours=2)
    world.land(SEEN, *good, hour(48), hour(49))
    assert "committed" in told(world.fill(graph)[HOURS])
    assert world.rows(HOURS, "at", "id", "cost") == sorted([*good, hour(48), hour(49)])
    assert len(_files_of(world)) == 3


def test_a_damaged_file_of_hours_is_named_and_built_again_once_it_is_deleted(world: World):
    graph = hours(unique_key=["at", "id"])
    world.clock.now = datetime(2024, 1, 10, tzinfo=UTC)
    world.land(SEEN, *(events := [hour(number) for number in range(24)]))
    world.fill(graph)
    (path,) = Path(world.path(HOURS)).glob("**/*.parquet")
    path.write_bytes(b"x" * path.stat().st_size)
    plan = Plans(world).make(graph, restate=(Restatement(HOURS, "2024-01-08", "2024-01-08"),))
    assert Plans(world).apply(graph, plan).left == {}

    with pytest.raises(DamagedFileError, match=f"{path.name}: .* Without a backup, delete it"):
        Plans(world).promote(graph, plan)
    path.unlink()
    Plans(world).promote(graph, plan)

    assert world.rows(HOURS, "at", "id", "cost") == sorted(events)


def _spoil(path: Path, first: int, last: int) -> None:
    """Let a disk turn some bytes of a file; it stays as large as it was."""
    spoiled = bytearray(path.read_bytes())
    spoiled[first:last] = (byte ^ 0xFF for byte in spoiled[first:last])
    path.write_bytes(spoiled)


@pytest.mark.parametrize("bytes_turned", [(4, 60), (-60, -1)], ids=["of a page", "of the footer"])
@pytest.mark.parametrize("of", [min, max], ids=["one hour", "the other hours"])
def test_a_damaged_file_that_was_to_be_joined_is_named_and_the_other_tables_are_collected(
    world: World, bytes_turned: tuple[int, int], of: Callable[..., Path]
):
    graph = hours()
    world.clock.now = datetime(2024, 1, 8, 23, tzinfo=UTC)
    for number in (23, 24):
        world.land(SEEN, *(hour(other) for other in range(number)))
        world.fill(graph)
        world.clock.now += timedelta(hours=1)
    lying = [Path(file) for file in _files_of(world)]
    assert len(lying) == 2
    _spoil(of(lying, key=lambda file: file.stat().st_size), *bytes_turned)

    (left,) = collect(world.open(graph), timedelta(days=7)).passed_over

    assert left.version == world.pointer(HOURS).version
    assert f"a file of {world.path(HOURS)} can't be read: b-" in left.why
    assert "\n" not in left.why


def test_a_way_back_to_a_damaged_file_is_refused_with_its_name(world: World):
    world.begin(OLD, *ROWS)
    (old,) = (path for path in files(world) if "2024-01-08" in path)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = Plans(world).published(OLD, restate=(Restatement(VISITS),))
    published = world.rows(VISITS)
    _spoil(Path(world.path(VISITS)) / old, -60, -1)

    with pytest.raises(DamagedFileError, match=old):
        rollback_plan(Plans(world).project(OLD), plan)

    assert world.rows(VISITS) == published


def test_an_hour_is_built_again_in_its_day(world: World):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment, world.clock.now = "dev", datetime(2024, 1, 9, tzinfo=UTC)
    graph, events = hours(), [hour(number) for number in range(24)]
    world.land(SEEN, *events)
    world.fill(graph)
    events[7] = hour(7, cost=9)
    world.land(SEEN, *events)
    some = IntervalSet.of(
        [Interval(events[7][0].replace(minute=0), events[8][0].replace(minute=0))]
    )
    again = world.fill(graph, cells=some, published=PublishedCells.REBUILT)
    (done,) = ended(again[HOURS], Committed)
    assert (done.rows, len(_files_of(world))) == (1, 2)
    assert world.rows(HOURS, "at", "id", "cost") == sorted(events)


def _files_of(world: World) -> list[str]:
    return DeltaTable(world.path(HOURS)).file_uris()
