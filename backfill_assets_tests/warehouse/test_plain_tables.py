from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.intervals.cadence import Cadence, Daily, Hourly
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.warehouse.files.cells import time_predicate
from backfill_assets.warehouse.files.file_spans import CellsRead
from backfill_assets.warehouse.files.plain_tables import plain_table
from backfill_assets.warehouse.files.tables import delta_rows, snapshot_df
from backfill_assets.warehouse.log.delta_log import head
from backfill_assets.warehouse.log.places import lies_elsewhere
from backfill_assets.warehouse.sources.file_rows import changed_rows
from backfill_assets.warehouse.sources.null_counts import source_columns
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError, PinGoneError
from backfill_assets_tests.builders import a_source

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FIRST = datetime(1960, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("clock", pa.timestamp("us")),
        ("n", pa.int64()),
        ("name", pa.string()),
    ]
)
DAYS = (0, 1, 2, 3650, 3653, 23376, 23377)
"""Days after FIRST: before 1970, around its first days, and in 2024."""
ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from(DAYS),
        st.none() | st.tuples(st.sampled_from(DAYS), st.integers(0, 86_399_999_999)),
        st.none() | st.integers(-2, 2),
        st.sampled_from([None, "", "a", "b/c", "d e", "é", "=%", "{x}", "_hidden"]),
    ),
    min_size=1,
    max_size=5,
)


def arrow(rows: list[Any]) -> pa.Table:
    days = [None if day is None else (FIRST + timedelta(day)).date() for day, *_ in rows]
    instants = [
        None if at is None else FIRST + timedelta(at[0], microseconds=at[1]) for _, at, *_ in rows
    ]
    clocks = [instant and instant.replace(tzinfo=None) for instant in instants]
    return pa.table(
        [days, instants, clocks, [row[2] for row in rows], [row[3] for row in rows]], SCHEMA
    )


def held(rows: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in rows.collect())


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    commits=st.lists(ROWS, min_size=1, max_size=3),
    partitioned_by=st.sampled_from([[], ["day"], ["n"], ["name"], ["day", "n"], ["at"]]),
    emptied=st.booleans(),
    time=st.sampled_from(["day", "at", "clock"]),
    cadence=st.sampled_from(
        [
            Daily(start="1950-01-01"),
            Daily(start="1950-01-01", tz="America/New_York"),
            Hourly(start="1950-01-01"),
        ]
    ),
    asked=st.lists(st.sampled_from(DAYS), min_size=1, max_size=2),
)
def test_files_by_their_names_hold_the_rows_that_delta_gives(  # noqa: PLR0913, PLR0917
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[list[Any]],
    partitioned_by: list[str],
    emptied: bool,  # noqa: FBT001
    time: str,
    cadence: Cadence,
    asked: list[int],
):
    path = str(tmp_path_factory.mktemp("table") / "rows")
    for rows in commits:
        write_deltalake(path, arrow(rows), mode="append", partition_by=partitioned_by or None)
    if emptied:
        DeltaTable(path).delete("n = 0")

    for at in range(head(path) + 1):
        named, delta = snapshot_df(spark, path, at), delta_rows(spark, path, at)
        assert named.dtypes == delta.dtypes
        assert held(named) == held(delta)

    cells = IntervalSet.of(
        Interval(start, start + timedelta(1)) for start in (FIRST + timedelta(day) for day in asked)
    )
    delta = delta_rows(spark, path, head(path))
    where = time_predicate(time, dict(delta.dtypes)[time], cadence, cells)
    read = CellsRead(time, cadence, cells)
    assert held(snapshot_df(spark, path, head(path), read).where(where)) == held(delta.where(where))


@pytest.mark.parametrize(
    ("declared", "changed"),
    [
        ("", "ALTER TABLE {} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)"),
        ("", "ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
        (", padded CHAR(5)", ""),
        (", _metadata STRING", ""),
        (
            "",
            "ALTER TABLE {} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        ),
    ],
)
def test_a_table_that_needs_more_than_its_files_is_left_to_delta(
    spark: SparkSession, tmp_path: Path, declared: str, changed: str
):
    path = str(tmp_path / "rows")
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} (n INT{declared}) USING delta")
    more = ", 'ab'" if declared else ""
    spark.sql(f"INSERT INTO {table} VALUES (1{more}), (2{more})")  # noqa: S608
    if changed:
        spark.sql(changed.format(table))
    if "Defaults" in changed:
        spark.sql(f"ALTER TABLE {table} ADD COLUMN later INT")
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN later SET DEFAULT 7")
    else:
        spark.sql(f"DELETE FROM {table} WHERE n = 1")  # noqa: S608

    assert plain_table(path, head(path)) is None
    assert held(snapshot_df(spark, path, head(path))) == held(delta_rows(spark, path, head(path)))


def test_files_of_another_table_that_a_shallow_clone_names_are_read(
    spark: SparkSession, tmp_path: Path
):
    path, base = str(tmp_path / "clone"), str(tmp_path / "base")
    rows = pa.table({"ds": [FIRST.date(), FIRST.date()], "id": [1, 2], "note": [None, None]})
    write_deltalake(
        base,
        rows.cast(pa.schema([("ds", pa.date32()), ("id", pa.int64()), ("note", pa.string())])),
        configuration={"delta.dataSkippingNumIndexedCols": "0"},
    )
    spark.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{base}`")
    columns = (Column("ds", "date"), Column("id", "bigint"), Column("note", "string"))
    cell = Daily(start="1950-01-01").cell("1960-01-01")
    source = a_source(columns=columns, cadence=Daily(start="1950-01-01"))

    assert held(snapshot_df(spark, path, head(path))) == held(delta_rows(spark, path, head(path)))
    found = source_columns(path, source, head(path), ("id", "note"), IntervalSet.of([cell]))
    assert found.without.keys() == {"note"}

    spark.sql(f"UPDATE delta.`{path}` SET id = 3 WHERE id = 2")  # noqa: S608 - a literal
    with pytest.raises(NeedsSparkError, match="a file lies elsewhere"):
        changed_rows(path, source, 0, head(path), IntervalSet.of([cell]))


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("file:/lake/base/part-0.parquet", True),
        ("s3a://lake/base/part-0.parquet", True),
        ("/lake/base/part-0.parquet", True),
        ("part-0.parquet", False),
        ("at=2024-01-01 10:00:00/part-0.parquet", False),
        ("name=a%3A%2Fb/part-0.parquet", False),
    ],
)
def test_a_place_of_its_own_is_told_from_a_name_below_the_table(name: str, *, elsewhere: bool):
    assert lies_elsewhere(name) is elsewhere


def test_a_folder_whose_name_is_a_pattern_to_spark_is_left_to_delta(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "rows{1}")
    write_deltalake(path, pa.table({"n": [1, 2]}))

    assert plain_table(path, 0) is None
    assert held(snapshot_df(spark, path, 0)) == {(1,): 1, (2,): 1}


def test_a_date_that_python_does_not_know_is_read_with_the_other_rows_of_its_file(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "rows")
    cadence = Daily(start="2024-01-01")
    for days in ("DATE'10000-01-01'", "DATE'10000-01-01', DATE'2024-01-02'"):
        rows = spark.sql(f"SELECT explode(array({days})) AS day").coalesce(1)
        rows.write.format("delta").mode("append").save(path)

    read = CellsRead("day", cadence, IntervalSet.of([cadence.cell("2024-01-02")]))

    assert snapshot_df(spark, path, head(path), read).count() == 2
    assert snapshot_df(spark, path, head(path)).count() == 3


@pytest.mark.parametrize("day", ["10000-01-01", "-0001-01-01"])
def test_a_folder_of_a_date_that_python_does_not_know_is_read_by_delta(
    spark: SparkSession, tmp_path: Path, day: str
):
    path = str(tmp_path / "rows")
    rows = spark.sql(f"SELECT 1 AS n, DATE'{day}' AS day")
    rows.write.format("delta").partitionBy("day").save(path)

    found = snapshot_df(spark, path, head(path)).selectExpr("n", "CAST(day AS STRING)").collect()

    expected = delta_rows(spark, path, head(path)).selectExpr("n", "CAST(day AS STRING)").collect()
    assert found == expected


def test_a_day_is_read_from_its_own_files_alone(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "rows")
    days = [date(2024, 1, number) for number in (1, 2, 3)]
    write_deltalake(path, pa.table({"day": days, "n": [1, 2, 3]}), partition_by=["day"])
    cadence = Daily(start="2024-01-01")

    read = CellsRead("day", cadence, IntervalSet.of([cadence.cell("2024-01-02")]))

    assert held(snapshot_df(spark, path, 0, read)) == {(date(2024, 1, 2), 2): 1}


def test_a_file_that_was_vacuumed_is_told_as_a_pin_that_is_gone(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "rows")
    write_deltalake(path, pa.table({"n": [1]}))
    for file in tmp_path.glob("rows/*.parquet"):
        file.unlink()

    with pytest.raises(PinGoneError, match="vacuumed"):
        snapshot_df(spark, path, 0)
