from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.intervals.cadence import Cadence, Daily, Hourly, Monthly, Weekly, Whole
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import ROWS
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.warehouse.files.rows_in_files import rows_of_source_in_files
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.inputs import Input
from backfill_assets.warehouse.rows.upstream_sums import sums_by_spark, sums_in_files
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError
from backfill_assets_tests.warehouse.shop import (
    DAILY,
    commit_cells,
    days,
    frame,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.models.model import Model

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("day", "date"),
    Column("at", "timestamp"),
    Column("cost", "decimal(18,4)"),
    Column("clicks", "bigint"),
    Column("wide", "decimal(30,2)"),
)
ARROW = pa.schema(
    [
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("cost", pa.decimal128(18, 4)),
        ("clicks", pa.int64()),
        ("wide", pa.decimal128(30, 2)),
    ]
)
SUMMED = ("cost", ROWS, "clicks", "wide")
FIRST = datetime(2024, 3, 30, tzinfo=UTC)
"""A day before the clocks of Berlin go forward."""
GRIDS = (
    Daily(start="2024-01-01"),
    Daily(start="2024-01-01", tz="Europe/Berlin"),
    Daily(start="2024-01-01", tz="America/Sao_Paulo"),
    Weekly(start="2024-01-01"),
    Monthly(start="2024-01-01", tz="Europe/Berlin"),
)

_instants = st.integers(0, 4 * 24 * 3_600 * 1_000_000 - 1).map(
    lambda micros: FIRST + timedelta(microseconds=micros)
)
_rows = st.lists(
    st.fixed_dictionaries(
        {
            "day": _instants.map(lambda at: at.date()) | st.none(),
            "at": _instants | st.none(),
            "cost": st.decimals(-(10**13), 10**13, places=4) | st.none(),
            "clicks": st.integers(-(2**63), 2**63 - 1) | st.none(),
            "wide": st.decimals(-(10**27), 10**27, places=2) | st.none(),
        }
    ),
    max_size=30,
)


def source(time: str | None = "day", columns: Sequence[Column] = COLUMNS) -> Source:
    return Source(
        name="raw.events",
        path="events",
        cadence=Daily(start="2024-01-01"),
        columns=columns,
        times=TimeColumns(event=time) if time else TimeColumns(),
    )


def landed(path: Path, rows: list[dict[str, Any]], *partitions: str) -> Table:
    table = pa.Table.from_pylist(rows, schema=ARROW)
    write_deltalake(str(path), table, mode="overwrite", partition_by=[*partitions] or None)
    return table_now(str(path))


def by_spark(
    spark: SparkSession, upstream: Input, cells: Sequence[Interval], cadence: Cadence
) -> dict[int, list[str]]:
    found = sums_by_spark(spark, upstream, SUMMED, cells, cadence).collect()
    return {row["cell"]: row["answers"] for row in found}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=_rows,
    asked=st.sampled_from([(grid, time) for grid in GRIDS for time in ("day", "at")])
    | st.just((Hourly(start="2024-01-01"), "at")),
    partitions=st.sampled_from([(), ("day",)]),
    left_out=st.sets(st.integers(0, 5)),
)
def test_files_say_of_a_source_what_spark_says(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    asked: tuple[Cadence, str],
    partitions: tuple[str, ...],
    left_out: set[int],
):
    cadence, time = asked
    table = landed(tmp_path_factory.mktemp("source"), rows, *partitions)
    upstream = Input(source(time), table, IntervalSet.empty())
    every = cadence.cells(Interval(cadence.floor(FIRST), cadence.next(FIRST + timedelta(days=2))))
    cells = [cell for place, cell in enumerate(every) if place not in left_out]

    found = sums_in_files(upstream, SUMMED, cells, cadence)

    assert found == by_spark(spark, upstream, cells, cadence)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    under=st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 9)), max_size=6),
    over=st.lists(st.integers(-9, 9), max_size=4),
)
def test_files_say_of_a_model_in_layers_what_spark_says(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    under: list[tuple[int, int]],
    over: list[int],
):
    model, folder = sales(), tmp_path_factory.mktemp("layers")
    paths = [str(folder / name) for name in ("under", "over")]
    written = [
        [sale(day, f"shop {at}", amount) for at, (day, amount) in enumerate(under)],
        [sale(2, f"shop {at}", amount) for at, amount in enumerate(over)],
    ]
    for path, rows, cells in zip(paths, written, (days(1, 2, 3, 4), days(2)), strict=True):
        computed = contract(frame(spark, model.schema, *rows), model)
        commit_cells(computed, model, cells, ticket(path, 1))
    lower, upper = map(table_now, paths)
    table = Table(upper.path, upper.delta_version, IntervalSet.of(days(2)), (lower,))
    upstream = Input(model, table, IntervalSet.of(days(1, 2, 3)))
    summed = ("amount", ROWS)

    found = sums_in_files(upstream, summed, days(1, 2, 3), DAILY)

    asked = sums_by_spark(spark, upstream, summed, days(1, 2, 3), DAILY).collect()
    assert found == {row["cell"]: row["answers"] for row in asked}


KINDS = {
    "day": ("date", pa.date32()),
    "local": ("timestamp_ntz", pa.timestamp("us")),
    "score": ("double", pa.float64()),
    "huge": ("decimal(38,2)", pa.decimal128(38, 2)),
    "clicks": ("bigint", pa.int64()),
}


def test_spark_is_asked_where_columns_have_other_names_in_the_files(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "t")
    mapped = "'delta.columnMapping.mode' = 'name'"
    columns = ", ".join(f"{column.name} {column.dtype}" for column in COLUMNS)
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta TBLPROPERTIES ({mapped})")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (DATE'2024-01-01', NULL, 1.5, 2, 3)")  # noqa: S608 - literals
    upstream = Input(source(), table_now(path), IntervalSet.empty())

    with pytest.raises(NeedsSparkError, match="its rows are not only what its files hold"):
        sums_in_files(upstream, SUMMED, days(1), DAILY)

    assert by_spark(spark, upstream, days(1), DAILY) == {19723: ["1.5000", "1", "2", "3.00"]}


def test_spark_is_asked_where_a_layer_lacks_a_column(spark: SparkSession, tmp_path: Path):
    model, path = sales(), str(tmp_path / "t")
    computed = contract(frame(spark, model.schema, sale(1, "a")), model)
    commit_cells(computed, model, days(1), ticket(path, 1))
    later = sales(columns=(*model.schema, Column("tax", "decimal(18,2)")))
    upstream = Input(later, table_now(path), IntervalSet.of(days(1)))

    with pytest.raises(NeedsSparkError, match="tax"):
        sums_in_files(upstream, ["tax"], days(1), DAILY)

    (row,) = sums_by_spark(spark, upstream, ["tax"], days(1), DAILY).collect()
    assert row["answers"] == ["0.00"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"time": None}, "all of its rows are summed"),
        ({"cadence": Whole()}, "all of its rows are summed"),
        ({"columns": ("score",)}, "double is summed by it alone"),
        ({"columns": ("huge",)}, r"decimal128\(38, 2\) is summed by it alone"),
        ({"time": "local"}, r"its event time is a timestamp\[us\]"),
        ({"cadence": Hourly(start="2024-01-01")}, r"its event time is a date32\[day\]"),
        ({"delta_version": 7}, "its rows are not only what its files hold"),
    ],
    ids=[
        "no time",
        "a whole model",
        "a double",
        "38 digits",
        "a local time",
        "a date's hour",
        "gone",
    ],
)
def test_spark_is_asked_where_files_alone_do_not_tell(
    tmp_path: Path, changed: dict[str, Any], reason: str
):
    columns = {name: pa.nulls(1, kind) for name, (_, kind) in KINDS.items()}
    rows = pa.table({**columns, "day": pa.array([date(2024, 1, 1)])})
    write_deltalake(str(tmp_path / "t"), rows)
    asked = {"time": "day", "columns": ("clicks",), "cadence": DAILY, "delta_version": 0, **changed}
    table = Table(str(tmp_path / "t"), asked["delta_version"])
    upstream = Input(
        source(asked["time"], [Column(name, kind) for name, (kind, _) in KINDS.items()]),
        table,
        IntervalSet.empty(),
    )

    with pytest.raises(NeedsSparkError, match=reason):
        sums_in_files(upstream, asked["columns"], days(1), asked["cadence"])


def test_spark_is_asked_where_the_log_does_not_say_when_a_files_rows_are(
    spark: SparkSession, tmp_path: Path
):
    path, (model, column) = str(tmp_path / "t"), (timed(), Column("at", "timestamp"))
    noon = "TIMESTAMP'2024-01-01 12:00:00.000001Z'"  # not exact to the millisecond, as logs have it
    rows = contract(frame(spark, model.schema, f"({noon}, 1)", f"({noon}, 2)"), model)
    commit_cells(rows, model, days(1), ticket(path, 1))
    ours_as_a_source = source("at", [column, Column("clicks", "bigint")])
    upstream = Input(ours_as_a_source, table_now(path), IntervalSet.empty())

    with pytest.raises(NeedsSparkError, match="does not say from where to where the column 'at'"):
        sums_in_files(upstream, ["clicks"], days(1), DAILY)


def timed() -> Model:
    """A model whose time is an instant."""
    return sales(
        columns=[Column("at", "timestamp"), Column("clicks", "bigint")],
        kind=IncrementalByTimeRange("at"),
        unique_key=["at", "clicks"],
        query=SqlQuery("SELECT at, clicks FROM commerce.raw_sales"),
    )


def test_spark_is_asked_for_more_rows_than_are_read_here(tmp_path: Path):
    row = {"day": date(2024, 1, 1), "clicks": 1}
    table = landed(tmp_path / "t", [{**dict.fromkeys(ARROW.names), **row}] * 3)

    def read(most: int) -> int:
        parts = rows_of_source_in_files(table, "day", days(1)[0], DAILY, ["clicks"], most)
        return sum(part.num_rows for part in parts)

    assert read(3) == 3
    with pytest.raises(NeedsSparkError, match="there are more than 2 rows"):
        read(2)
