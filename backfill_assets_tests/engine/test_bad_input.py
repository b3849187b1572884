"""Bad input and bad disks: a clear error in one line, and what is published does not change."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch.commit_turn import reconcile_table
from backfill_assets.engine.batch.table_turn import ForeignTableError
from backfill_assets.engine.project.events import Failed
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.world import World, ended, kept, row, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.graph import Graph

pytestmark = pytest.mark.spark
VISITS = "web.visits"
BOUNDS = "FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"


def visits(select: str = "ds, id, cost", **declared: Any) -> Graph:  # noqa: ANN401
    """The 9th and 10th of January."""
    cadence = Daily(start="2024-01-09")
    return a_graph(a_model(sql=f"SELECT {select} {BOUNDS}", cadence=cadence, **declared))


def failure(world: World, graph: Graph) -> str:
    """The error of the batch of the 10th; what was published is as it was."""
    head, rows = world.head(VISITS), world.rows(VISITS)
    (failed,) = ended(world.fill(graph, cells=days(10))[VISITS], Failed)
    assert (world.head(VISITS), world.rows(VISITS)) == (head, rows)
    assert world.ready(graph, VISITS) == "2024-01-09"
    return failed.error


NULL_ON_THE_10TH = "IF(ds = DATE'2024-01-10', NULL, {0}) AS {0}"


@pytest.mark.parametrize(
    ("select", "found"),
    [
        (
            f"ds, {NULL_ON_THE_10TH.format('id')}, cost",
            ("not_null_id", "in 2024-01-10", "2 of 2 rows", "allowed 0 rows"),
        ),
        ("ds, id % 1 AS id, cost", ("1 of 2 rows fail unique(ds, id)",)),
        (f"{NULL_ON_THE_10TH.format('ds')}, id, cost", ("time column 'ds' is NULL", "2 rows")),
        (
            "ds, id, CAST(cost / (10 - DAY(ds)) AS DECIMAL(18,2)) AS cost",
            (f"'{VISITS}' over 2024-01-10", "DIVIDE_BY_ZERO", "Published data is unchanged"),
        ),
    ],
    ids=["null_key", "duplicate_keys", "null_time", "engine_error"],
)
def test_a_batch_that_goes_wrong_says_where_and_what(
    world: World, select: str, found: tuple[str, ...]
):
    graph = visits(select)
    world.land(a_source(), row(9), row(10, 1), row(10, 2))
    world.fill(graph, cells=days(9))
    error = failure(world, graph)
    assert "\n" not in error
    for words in found:
        assert words in error


def test_a_source_whose_schema_drifted_is_named_with_its_column(world: World):
    graph = visits()
    world.land(a_source(), row(9))
    world.fill(graph, cells=days(9))
    drifted = (Column("ds", "date"), Column("id", "string"))
    world.land(a_source(columns=drifted), *((day, str(id_)) for day, id_, _ in [row(10)]))
    error = failure(world, graph)
    assert "'web.events' has drifted: column 'id' is string, expected bigint" in error


def test_a_damaged_log_is_told_and_nothing_is_written_until_it_is_whole_again(world: World):
    graph = visits()
    world.land(a_source(), row(9), row(10))
    world.fill(graph, cells=days(9))
    log = Path(world.path(VISITS), "_delta_log")
    newest = max(log.glob("*.json"))
    whole, rows = newest.read_bytes(), world.rows(VISITS)
    newest.write_bytes(whole[: len(whole) // 2])
    files = sorted(log.parent.rglob("*.parquet"))
    (failed,) = ended(world.fill(graph)[VISITS], Failed)
    assert "Delta log" in failed.error
    assert "damaged" in failed.error
    assert sorted(log.parent.rglob("*.parquet")) == files
    newest.write_bytes(whole)
    assert world.rows(VISITS) == rows
    assert told(world.fill(graph)[VISITS]) == ["committed", "skipped"]


@contextmanager
def small_disk(at: Path) -> Iterator[Path]:
    at.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(at)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("may not mount a small disk here")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def test_a_read_only_and_a_full_disk_are_told_and_room_is_enough_to_go_on(world: World):
    graph = visits()
    with small_disk(world.root / "disk") as disk:
        small = World(world.spark, disk, world.store, world.clock)
        small.land(a_source(), row(9), row(10))
        small.fill(graph, cells=days(9))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        error = failure(small, graph)
        assert "can't write" in error
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(b"x" * 2**21)
        error = failure(small, graph)
        assert "No space left on device" in error
        assert "What was published is unchanged" in error
        filler.unlink()
        small.fill(graph)
        assert small.rows(VISITS) == kept(row(9), row(10))


def test_a_data_folder_that_is_a_file_is_told(world: World):
    graph = visits()
    world.land(a_source(), row(9))
    (world.root / "tables").write_text("not a folder")
    (failed,) = ended(world.fill(graph, cells=days(9))[VISITS], Failed)
    assert "can't write" in failed.error


def test_a_strangers_table_in_the_place_of_a_models_own_is_left_alone_and_the_way_out_is_named(
    world: World,
):
    graph = visits()
    world.land(a_source(), row(9), row(10))
    run = world.open(graph)
    world.scribble(VISITS, row(9, 1, 5.0))
    with pytest.raises(ForeignTableError, match="backfill adopt TABLE MODEL"):
        reconcile_table(run, graph.model(VISITS))
    assert world.head(VISITS) == 0
    Path(world.path(VISITS)).rename(world.root / "elsewhere")
    assert told(world.fill(graph)[VISITS]) == ["committed"]
