from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.warehouse.files.housekeeping import create_table, fence, is_ours, restore
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.log.delta_log import (
    actions_of,
    head,
    last_token,
    logged_commit,
    logged_commits,
)
from backfill_assets.warehouse.log.ticket import CommitLostError
from backfill_assets.warehouse.rows.conform import contract, result_rows
from backfill_assets.warehouse.rows.moves import cells_moved_from
from backfill_assets.warehouse.spark.session import batch_session
from backfill_assets.warehouse.spark.spark_errors import WarehouseUnwritableError
from backfill_assets_tests.warehouse.shop import (
    STAMP,
    batch,
    commit_cells,
    content,
    day,
    days,
    frame,
    order,
    orders,
    partitions_touched,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def kind_of(action: dict[str, Any]) -> str:
    """An entry's action by its name, and nothing of what the entry says of itself."""
    return next(iter(action))


def filled(spark: SparkSession, path: str) -> None:
    rows = batch(spark, sales(), path, days(1, 2), sale(1, "a"), sale(1, "b"), sale(2, "a"))
    commit_cells(rows, sales(), days(1, 2), ticket(path, 1))


def test_a_batch_replaces_exactly_its_cells(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    rows = batch(spark, sales(), path, days(2), sale(2, "c", 5))
    committed = commit_cells(rows, sales(), days(2), ticket(path, 2))
    assert committed.delta_version == head(path) == 2
    assert committed.bytes > 0
    assert [row[1] for row in content(spark, path, "ds", "shop")] == ["a", "b", "c"]


def test_a_creation_that_was_cut_off_does_not_close_the_place_for_good(
    spark: SparkSession, tmp_path: Path
):
    path = tmp_path / "sales"
    left = path / "_delta_log" / "_staged_commits"
    left.mkdir(parents=True)
    name = "00000000000000000000.json.ec0a09ae-de72-4d4d-b930-132976d66c1a.tmp"
    (path / "_delta_log" / f".{name}").write_text("{")
    (path / "_delta_log" / f"..{name}.crc").touch()
    filled(spark, str(path))
    assert len(content(spark, str(path), "ds", "shop")) == 3
    assert not list(path.rglob("*.tmp"))


def test_a_batch_without_rows_empties_its_cells_and_is_still_a_commit(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    filled(spark, path)
    committed = commit_cells(
        batch(spark, sales(), path, days(1)), sales(), days(1), ticket(path, 2)
    )
    assert logged_commit(path, committed.delta_version).metadata == '{"batch":2}'
    assert [row[0] for row in content(spark, path, "shop")] == ["a"]


def test_every_cell_of_a_batch_is_one_file(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    numbers = range(1, 31)
    rows = [sale(number, shop) for number in numbers for shop in "abcdef"]
    batch_rows = batch(spark, sales(), path, days(*numbers), *rows).repartition(4)
    commit_cells(batch_rows, sales(), days(*numbers), ticket(path, 1))
    assert len(list((tmp_path / "sales").rglob("*.parquet"))) == 30


def test_metadata_comes_back_letter_for_letter_as_json(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    said = json.dumps({"sample": "costs ${env:HOME} and 'quotes'"})
    rows = batch(spark, sales(), path, days(1), sale(1, "a"))
    committed = commit_cells(rows, sales(), days(1), ticket(path, 1, said))
    text = logged_commit(path, committed.delta_version).metadata
    assert text is not None
    assert json.loads(text) == json.loads(said)


def test_a_commit_with_a_token_that_was_used_is_reported_lost(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    before = content(spark, path, "ds", "shop")
    rows = batch(spark, sales(), path, days(2), sale(2, "zombie"))
    with pytest.raises(CommitLostError, match="larger token"):
        commit_cells(rows, sales(), days(2), ticket(path, 1, "zombie"))
    assert content(spark, path, "ds", "shop") == before


def test_a_writer_that_wakes_after_a_takeover_commits_nothing(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    fence(path, app_id="commerce__sales", token=3)
    before, at = content(spark, path, "ds", "shop"), head(path)
    rows = batch(spark, sales(), path, days(2), sale(2, "zombie"))
    with pytest.raises(CommitLostError):
        commit_cells(rows, sales(), days(2), ticket(path, 2, "zombie"))
    with pytest.raises(CommitLostError):
        restore(path, 0, app_id="commerce__sales", token=2)
    with pytest.raises(CommitLostError):
        fence(path, app_id="commerce__sales", token=2)
    assert (content(spark, path, "ds", "shop"), head(path)) == (before, at)


@pytest.mark.connect
def test_the_holder_of_one_token_may_fence_restore_and_commit(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    rows = batch(spark, sales(), path, days(2, 3), sale(2, "bad"), sale(3, "bad"))
    commit_cells(rows, sales(), days(2, 3), ticket(path, 2))
    fence(path, app_id="commerce__sales", token=3)
    restore(path, 1, app_id="commerce__sales", token=3)
    assert [row[1] for row in content(spark, path, "ds", "shop")] == ["a", "b", "a"]
    rows = batch(spark, sales(), path, days(3), sale(3, "good"))
    commit_cells(rows, sales(), days(3), ticket(path, 3))
    assert last_token(path, "commerce__sales") == 3
    housekeeping = [is_ours(commit.metadata) for commit in logged_commits(path, -1)]
    assert housekeeping == [True, False, False, True, True, False]


def test_a_restore_rewrites_only_the_cells_that_were_touched(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    rows = batch(spark, sales(), path, days(2), sale(2, "bad"))
    commit_cells(rows, sales(), days(2), ticket(path, 2))
    restored = restore(path, 1, app_id="commerce__sales", token=3)
    assert partitions_touched(path, restored.delta_version) == {"2024-01-02"}


@pytest.mark.connect
def test_a_merge_updates_inserts_and_deletes_within_its_cells(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "orders"), orders()
    first = batch(
        spark, model, path, days(1, 2), order(1, 1), order(2, 1), order(3, 1), order(4, 2)
    )
    commit_cells(first, model, days(1, 2), ticket(path, 1))
    second = batch(spark, model, path, days(1), order(1, 1), order(2, 1, 9), order(5, 1))
    committed = commit_cells(second, model, days(1), ticket(path, 2))
    assert logged_commit(path, committed.delta_version).metadata == '{"batch":2}'
    found = [(key, int(amount)) for key, amount in content(spark, path, "order_id", "amount")]
    assert found == [(1, 1), (2, 9), (4, 1), (5, 1)]
    assert partitions_touched(path, committed.delta_version) == {"2024-01-01"}


def test_a_merge_sees_a_null_that_became_a_value(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "orders"), orders()
    commit_cells(batch(spark, model, path, days(1), order(1, 1)), model, days(1), ticket(path, 1))
    rows = batch(spark, model, path, days(1), order(1, 1, gone="FALSE"))
    commit_cells(rows, model, days(1), ticket(path, 2))
    assert content(spark, path, "order_id", "gone") == [(1, False)]


def test_a_row_that_moves_leaves_its_old_cell_in_the_same_commit(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "orders")
    model = orders(kind=IncrementalByUniqueKey(time_column="ds", rows_move=True))
    rows = batch(spark, model, path, days(1), order(1, 1), order(2, 1))
    commit_cells(rows, model, days(1), ticket(path, 1))
    computed = contract(frame(spark, model.schema, order(1, 2)), model)
    moved_from = cells_moved_from(computed, model, days(2), table_now(path))
    assert moved_from == days(1)
    rows = result_rows(computed, model, days(2), table_now(path), STAMP, moved_from)
    commit_cells(rows, model, days(1, 2), ticket(path, 2))
    found = [(key, str(ds)) for key, ds in content(spark, path, "order_id", "ds")]
    assert found == [(1, "2024-01-02"), (2, "2024-01-01")]


def test_two_merges_at_once_each_name_their_own_batch(spark: SparkSession, tmp_path: Path):
    model, paths = orders(), [str(tmp_path / name) for name in ("one", "two")]
    for path in paths:
        rows = batch(spark, model, path, days(1), order(1, 1))
        commit_cells(rows, model, days(1), ticket(path, 1))
    start, failures = threading.Barrier(2), []

    def merge(path: str, said: str) -> None:
        try:
            own = batch_session(spark)
            rows = batch(own, model, path, days(1), order(1, 1, 7))
            start.wait()
            commit_cells(rows, model, days(1), ticket(path, 2, said))
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=merge, args=(path, f"batch of {path}")) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [logged_commit(path, head(path)).metadata for path in paths] == [
        f"batch of {path}" for path in paths
    ]


def test_old_commits_survive_checkpoints_long_after_the_default_retention(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    filled(spark, path)
    log = tmp_path / "sales" / "_delta_log"
    aged = time.time() - 90 * 86_400
    for token in range(2, 14):
        for file in log.iterdir():
            os.utime(file, (aged, aged))
        rows = batch(spark, sales(), path, days(1), sale(1, "a", token))
        commit_cells(rows, sales(), days(1), ticket(path, token))
    assert list(log.glob("*.checkpoint*.parquet"))
    said = [commit.metadata for commit in logged_commits(path, 0)]
    assert said == [f'{{"batch":{token}}}' for token in range(1, 14)]
    old = spark.read.format("delta").option("versionAsOf", 1).load(path)
    assert old.count() == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_named(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    before = content(spark, path, "ds", "shop")
    folders = [tmp_path / "sales", *(tmp_path / "sales").glob("*")]
    rows = batch(spark, sales(), path, days(2), sale(2, "x"))
    for folder in folders:
        folder.chmod(0o555)
    try:
        with pytest.raises(WarehouseUnwritableError, match="published is unchanged"):
            commit_cells(rows, sales(), days(2), ticket(path, 2))
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert content(spark, path, "ds", "shop") == before


def test_a_table_can_not_be_made_below_a_file(spark: SparkSession, tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WarehouseUnwritableError):
        create_table(lambda: spark, sales(), str(tmp_path / "file" / "sales"), app_id="s", token=1)


def test_tables_are_partitioned_by_cell_and_keep_their_log(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    create_table(lambda: spark, sales(), path, app_id="s", token=1)
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()
    assert detail["partitionColumns"] == ["_cell"]
    assert detail["properties"]["delta.enableExpiredLogCleanup"] == "false"


def test_a_batch_of_one_day_touches_only_its_own_files(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "orders"), orders()
    numbers = range(1, 11)
    rows = batch(spark, model, path, days(*numbers), *(order(n, n) for n in numbers))
    commit_cells(rows, model, days(*numbers), ticket(path, 1))
    (target,) = [day(4)]
    second = batch(spark, model, path, [target], order(4, 4, 8), order(40, 4))
    committed = commit_cells(second, model, [target], ticket(path, 2))
    assert partitions_touched(path, committed.delta_version) == {"2024-01-04"}
    kinds = {*map(kind_of, actions_of(path, committed.delta_version))}
    assert kinds == {"commitInfo", "txn", "remove", "add"}
