from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.warehouse.files.collection import (
    delete_table,
    vacuum,
    vacuum_unborn,
)
from backfill_assets.warehouse.files.housekeeping import create_table
from backfill_assets.warehouse.files.tables import snapshot_df
from backfill_assets.warehouse.log.delta_log import head, logged_commits
from backfill_assets_tests.warehouse.shop import (
    batch,
    commit_cells,
    days,
    entry,
    sale,
    sales,
    ticket,
)
from backfill_assets_tests.warehouse.test_log_entry import a_file, a_table, shops

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NO_GRACE = timedelta()


def later() -> datetime:
    """Past every commit of the test, by the clock that Delta stamped them with."""
    return datetime.fromtimestamp(time.time(), UTC)


def five(spark: SparkSession, path: str) -> None:
    """Delta_versions 1 to 5 hold the shops a to e."""
    for token, shop in enumerate("abcde", start=1):
        rows = batch(spark, sales(), path, days(1), sale(1, shop))
        commit_cells(rows, sales(), days(1), ticket(path, token))


def shop_at(spark: SparkSession, path: str, delta_version: int) -> str:
    (row,) = snapshot_df(spark, path, delta_version).collect()
    return row["shop"]


def test_what_a_promised_version_needs_stays_and_the_rest_goes(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    five(spark, path)
    at = head(path)
    done = vacuum(path, keep_from=3, now=later(), grace=NO_GRACE, dry_run=False)
    assert len(done.files) == 2
    assert [shop_at(spark, path, version) for version in (3, 4, 5)] == ["c", "d", "e"]
    assert len(list(Path(path).rglob("*.parquet"))) == 3
    assert head(path) == at


def test_a_dry_run_says_what_would_go_and_deletes_nothing(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    five(spark, path)
    found = vacuum(path, keep_from=5, now=later(), grace=NO_GRACE, dry_run=True)
    assert len(found.files) == 4
    assert shop_at(spark, path, 1) == "a"


def test_files_stay_for_the_readers_that_are_at_them(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    five(spark, path)
    kept = vacuum(path, keep_from=5, now=later(), grace=timedelta(hours=1), dry_run=False)
    assert kept.files == ()
    assert shop_at(spark, path, 1) == "a"


def test_a_file_that_was_written_long_ago_stays_for_a_while_after_it_was_replaced(tmp_path: Path):
    path, cell, grace = a_table(tmp_path), "2024-01-01", timedelta(hours=1)
    for token, shop in enumerate("ab", start=2):
        entry({cell: a_file(path, cell, shop)}, ticket(path, token))
    for file in Path(path).rglob("*.parquet"):
        os.utime(file, (0, 0))

    def deleted(now: datetime) -> int:
        done = vacuum(path, keep_from=head(path), now=now, grace=grace, dry_run=False)
        return len(done.files)

    assert deleted(later()) == 0
    assert shops(path, head(path) - 1) == {cell: ["a"]}
    assert deleted(later() + 2 * grace) == 1
    assert shops(path) == {cell: ["b"]}


def test_files_that_no_commit_names_go_once_they_are_old(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    five(spark, path)
    orphan = next(Path(path).rglob("*.parquet")).with_name("part-00000-orphan.snappy.parquet")
    orphan.write_bytes(b"left by a writer that died")
    os.utime(orphan, (0, 0))
    done = vacuum(path, keep_from=1, now=later(), grace=NO_GRACE, dry_run=False)
    assert [Path(file).name for file in done.files] == [orphan.name]
    assert shop_at(spark, path, 1) == "a"


def test_what_a_batch_left_that_died_before_its_commit_goes_once_it_is_old(tmp_path: Path):
    path = tmp_path / "sales"
    files = [
        path / f"b-{32 * '0'}" / where / "part-00000.snappy.parquet"
        for where in ("_cell=2024-01-01", "_temporary/0/_temporary/attempt_1/_cell=2024-01-02")
    ]
    for unborn in (True, False):
        nothing = path / f"b-{'3' * 32}" / "_temporary" / "0"
        nothing.mkdir(parents=True)
        for file in files:
            file.parent.mkdir(parents=True)
            file.write_bytes(b"left by a batch that died")
            os.utime(file, (0, 0))
        if unborn:
            done = vacuum_unborn(str(path), now=later(), grace=NO_GRACE, dry_run=False)
            assert not path.exists()
        else:
            create_table(
                lambda: pytest.fail("Spark was asked for"), sales(), str(path), app_id="s", token=1
            )
            done = vacuum(str(path), keep_from=0, now=later(), grace=NO_GRACE, dry_run=False)
            assert [entry.name for entry in path.iterdir()] == ["_delta_log"]
        assert len(done.files) == len(files)


def test_old_files_stay_where_their_batch_has_written_another_one_lately(tmp_path: Path):
    path = tmp_path / "sales"
    at_work, dead = (path / f"b-{32 * number}" / "_cell=2024-01-01" for number in "12")
    for folder in (at_work, dead):
        folder.mkdir(parents=True)
        old = folder / "part-00000.snappy.parquet"
        old.write_bytes(b"written long ago")
        os.utime(old, (0, 0))
    (at_work / "part-00001.snappy.parquet").write_bytes(b"written just now")
    done = vacuum_unborn(str(path), now=later(), grace=timedelta(days=1), dry_run=False)
    assert done.files == (f"{dead.relative_to(path)}/part-00000.snappy.parquet",)
    assert len([*at_work.iterdir()]) == 2


def test_a_version_that_is_none_of_the_tables_is_refused(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    five(spark, path)
    with pytest.raises(RequestError, match=r"must stay readable .* its log ends at 5"):
        vacuum(path, keep_from=6, now=later(), grace=NO_GRACE, dry_run=False)


def test_a_table_of_somebody_else_is_never_touched(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "theirs")
    spark.range(3).write.format("delta").save(path)
    with pytest.raises(RequestError, match="was not made by this project: its log does"):
        delete_table(path)
    with pytest.raises(RequestError, match="was not made by this project: its log does"):
        vacuum(path, keep_from=0, now=later(), grace=NO_GRACE, dry_run=False)
    assert spark.read.format("delta").load(path).count() == 3


def test_a_deleted_table_is_gone_and_a_deletion_that_was_cut_off_is_finished(
    spark: SparkSession, tmp_path: Path
):
    path = tmp_path / "sales"
    five(spark, str(path))
    assert logged_commits(str(path), 0)
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    delete_table(str(path))
    assert not path.exists()
    delete_table(str(path))
    for file in (*copy.rglob("*.parquet"), *copy.glob("_delta_log/*[1-9].json")):
        file.unlink()
    delete_table(copy.as_uri())
    assert not copy.exists()
