from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.warehouse.files.tables import MissingTableError, Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.inputs import Input, SchemaDriftError, compute, read_cells
from backfill_assets.warehouse.rows.reading import read_pinned
from backfill_assets.warehouse.sources.source_rows import cells_with_rows
from backfill_assets.warehouse.spark.session import batch_session
from backfill_assets.warehouse.spark.spark_errors import (
    DamagedFileError,
    PinGoneError,
    explaining_errors,
)
from backfill_assets_tests.models.authoring import query_of
from backfill_assets_tests.warehouse.shop import batch, commit_cells, day, days, sale, sales, ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BERLIN = Cadence(Unit.DAY, "Europe/Berlin", start=datetime(2024, 1, 1, tzinfo=UTC))
EVENT_COLUMNS = (Column("at", "timestamp"), Column("n", "int"))


def events(path: str, **changes: Any) -> Source:  # noqa: ANN401
    declared: dict[str, Any] = {
        "name": "web.raw_events",
        "path": path,
        "cadence": BERLIN,
        "columns": EVENT_COLUMNS,
        "times": TimeColumns(event="at"),
    }
    return Source(**{**declared, **changes})


def land(spark: SparkSession, path: str) -> None:
    """One event an hour of 1 and 2 January 2024, UTC."""
    spark.sql(
        "SELECT TIMESTAMP'2024-01-01 00:00:00+00:00' + make_interval(0,0,0,0,id) AS at, "
        "CAST(id AS INT) AS n, 'more' AS undeclared FROM range(48)"
    ).write.format("delta").save(path)


def test_a_source_is_cut_by_the_local_days_of_its_zone(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "events")
    land(spark, path)
    cells = IntervalSet.of([BERLIN.cell("2024-01-02")])
    rows = read_cells(spark, Input(events(path), table_now(path), cells))
    assert rows.columns == ["at", "n"]
    assert sorted(row["n"] for row in rows.collect()) == list(range(23, 47))


def test_cells_with_rows_are_those_that_a_source_has_landed(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "events")
    land(spark, path)
    asked = IntervalSet.of(BERLIN.cell(f"2024-01-0{number}") for number in (2, 3, 4))
    found = cells_with_rows(spark, path, events(path), asked)
    assert found == IntervalSet.of([BERLIN.cell("2024-01-02"), BERLIN.cell("2024-01-03")])


def test_a_drifted_source_is_named_with_what_was_found(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "events")
    land(spark, path)
    for columns, found in (
        ((*EVENT_COLUMNS, Column("user", "string")), "missing"),
        ((Column("at", "timestamp"), Column("n", "bigint")), "is int, expected bigint"),
    ):
        source = events(path, columns=columns)
        with pytest.raises(SchemaDriftError, match=found):
            read_cells(spark, Input(source, table_now(path), IntervalSet.of(days(1))))


def test_a_source_has_fields_of_any_name(spark: SparkSession, tmp_path: Path):
    path, dtype = str(tmp_path / "events"), "array<struct<`a b`:int,`c.d`:struct<`e, f`:string>>>"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (at TIMESTAMP, n INT, `nested one` {dtype}) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    source = events(path, columns=(*EVENT_COLUMNS, Column("nested one", dtype)))
    rows = read_cells(spark, Input(source, table_now(path), IntervalSet.of(days(1))))
    assert rows.columns == ["at", "n", "nested one"]

    source = events(
        path, columns=(*EVENT_COLUMNS, Column("nested one", "array<struct<`a b`:int>>"))
    )
    with pytest.raises(SchemaDriftError, match=r"struct<`a b`:int,`c\.d`:struct<`e, f`:string>>"):
        read_cells(spark, Input(source, table_now(path), IntervalSet.of(days(1))))


def test_an_absent_source_is_named_with_its_path(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "nothing")
    with pytest.raises(MissingTableError, match="land it first"):
        read_cells(spark, Input(events(path), Table(path, ABSENT), IntervalSet.of(days(1))))


def upstream(spark: SparkSession, path: str) -> Input:
    numbers = range(1, 11)
    rows = batch(spark, sales(), path, days(*numbers), *(sale(n, "a", n) for n in numbers))
    commit_cells(rows, sales(), days(*numbers), ticket(path, 1))
    return Input(sales(), table_now(path), IntervalSet.of([day(4, 2)]))


def test_an_upstream_is_read_at_its_pin_in_exactly_its_cells(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    sales_input = upstream(spark, path)
    later = batch(spark, sales(), path, days(4), sale(4, "later"))
    commit_cells(later, sales(), days(4), ticket(path, 2))
    rows = read_cells(spark, sales_input)
    assert rows.columns == ["ds", "shop", "amount"]
    assert sorted((str(row["ds"]), row["shop"]) for row in rows.collect()) == [
        ("2024-01-04", "a"),
        ("2024-01-05", "a"),
    ]


def test_only_the_files_of_the_cells_that_are_read_are_scanned(spark: SparkSession, tmp_path: Path):
    sales_input = upstream(spark, str(tmp_path / "sales"))
    files = {file.split("_cell=")[1][:10] for file in read_cells(spark, sales_input).inputFiles()}
    assert files == {"2024-01-04", "2024-01-05"}


def test_an_upstream_without_a_commit_has_its_columns_and_no_rows(spark: SparkSession):
    rows = read_cells(spark, Input(sales(), Table("nowhere", ABSENT), IntervalSet.of(days(1))))
    assert (rows.columns, rows.count()) == (["ds", "shop", "amount"], 0)


def test_sql_and_functions_compute_over_the_same_inputs(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    sales_input = upstream(spark, path)
    sql = sales(
        name="commerce.daily",
        upstreams=["commerce.sales"],
        query=SqlQuery("SELECT ds, shop, amount FROM commerce.sales WHERE ds >= :start_ds"),
    )
    code = "def f(inputs, interval):\n    return inputs['commerce.sales'].where('day(ds) = 5')\n"
    function = sales(upstreams=["commerce.sales"], query=FunctionQuery("f", code))
    inputs = {"commerce.sales": sales_input}
    for model in (sql, function):
        found = compute(batch_session(spark), model, day(5), inputs).collect()
        assert [str(row["ds"]) for row in found] == ["2024-01-05"]


PACKAGE = {
    "shop/__init__.py": "",
    "shop/rates.py": "RATE = {rate}.0\n\ndef rated(amounts):\n    return amounts * RATE\n",
    "shop/visits.py": """
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf

from . import rates
from .rates import rated

@pandas_udf("double")
def total(amounts: pd.Series) -> float:
    return float(rated(amounts).sum())

@udf("double")
def again(amount):
    return amount * rates.RATE

def visits(inputs, interval):
    rows = inputs["commerce.sales"].groupBy("shop").agg(total(F.lit(1.0)).alias("n"))
    return rows.select("n", again("n").alias("more"))
""",
}


def test_udfs_run_on_workers_as_their_own_snapshot_says(spark: SparkSession, tmp_path: Path):
    inputs = {"commerce.sales": upstream(spark, str(tmp_path / "sales"))}
    found: list[tuple[float, float]] = []
    for rate in (2, 3):
        text = PACKAGE["shop/rates.py"].format(rate=rate)
        query = query_of(tmp_path / str(rate), {**PACKAGE, "shop/rates.py": text})
        model = sales(upstreams=["commerce.sales"], query=query)
        (row,) = compute(batch_session(spark), model, day(5), inputs).collect()
        found.append((row["n"], row["more"]))

    assert found == [(4.0, 8.0), (6.0, 18.0)]


def test_readers_do_not_see_the_cell_column(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    upstream(spark, path)
    assert read_pinned(spark, sales(), Table(path, 1)).columns == ["ds", "shop", "amount"]


def test_a_pin_that_is_gone_is_named(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    upstream(spark, path)
    with pytest.raises(PinGoneError, match="built again by a plan"):
        read_pinned(spark, sales(), Table(path, 99))


@pytest.mark.parametrize(
    ("harm", "kind"),
    [(Path.unlink, PinGoneError), (lambda path: path.write_bytes(b"PAR1?"), DamagedFileError)],
    ids=["gone", "damaged"],
)
def test_a_file_that_can_not_be_read_is_named_with_what_to_do(
    spark: SparkSession, tmp_path: Path, harm: Callable[[Path], object], kind: type[Exception]
):
    path = str(tmp_path / "sales")
    upstream(spark, path)
    (file, *_) = tmp_path.glob("sales/**/*.parquet")

    rows = read_pinned(spark, sales(), Table(path, 1))
    harm(file)

    with (
        pytest.raises(kind, match=f"{file.name}.*backfill plan --restate"),
        explaining_errors(path),
    ):
        rows.collect()
