from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings, strategies as st

from backfill_assets.intervals.cadence import Cadence, Daily, Hourly
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.column import Column
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.warehouse.file_rows import NeedsSparkError, changed_rows
from backfill_assets.warehouse.source_changes import life_of

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = (
    ("at", "date", pa.date32()),
    ("n", "bigint", pa.int64()),
    ("cost", "double", pa.float64()),
    ("money", "decimal(18,2)", pa.decimal128(18, 2)),
    ("name", "string", pa.string()),
)
SOURCE = Source(
    name="raw.events",
    path="events",
    cadence=Daily(start="2024-01-01"),
    times=TimeColumns(event="at"),
    columns=[Column(name, dtype) for name, dtype, _ in COLUMNS],
)
SCHEMA = pa.schema([(name, dtype) for name, _, dtype in COLUMNS])
Row = tuple[Any, ...]

ROWS = st.lists(
    st.tuples(
        st.integers(0, 3).map(lambda days: date(2024, 1, 1) + timedelta(days)),
        st.none() | st.integers(0, 2),
        st.sampled_from([None, 0.0, -0.0, float("nan"), 0.1 + 0.2, 0.3]),
        st.sampled_from([None, Decimal("0.00"), Decimal("1.10")]),
        st.sampled_from([None, "", "a", "None"]),
    ),
    max_size=6,
)


def arrow(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in COLUMNS]
    return pa.table(
        [pa.array(one, kind.type) for one, kind in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def canonical(row: Row) -> Row:
    return tuple(
        "nan" if str(one) == "nan" else 0.0 if one == 0.0 and isinstance(one, float) else one
        for one in row
    )


def said(path: Path, source: Source = SOURCE) -> dict[str, int]:
    until = DeltaTable(str(path)).version()
    found = changed_rows(str(path), source, 0, until, life_of(source))
    return {
        ranges_text(source.cadence, IntervalSet.of([cell])): rows for cell, rows in found.items()
    }


@settings(max_examples=60, deadline=None)
@given(before=ROWS, after=ROWS, more=ROWS)
def test_exactly_the_cells_whose_rows_differ_have_changed(
    tmp_path_factory: pytest.TempPathFactory, before: list[Row], after: list[Row], more: list[Row]
):
    path = tmp_path_factory.mktemp("rows")
    write_deltalake(str(path), arrow(before))
    write_deltalake(str(path), arrow(after), mode="overwrite")
    write_deltalake(str(path), arrow(more), mode="append")

    held = [Counter(map(canonical, rows)) for rows in (before, after + more)]
    differ = (held[0] - held[1]) + (held[1] - held[0])
    days = {row[0] for row in differ}
    expected = {
        day.isoformat(): sum(row[0] == day for row in after + more)
        - sum(row[0] == day for row in before)
        for day in days
    }
    assert said(path) == expected


@pytest.mark.parametrize(
    "cadence", [Daily(start="2024-01-01", tz="Europe/Berlin"), Hourly(start="2024-01-01")]
)
def test_instants_are_cut_on_the_sources_grid(tmp_path: Path, cadence: Cadence):
    source = Source(
        name="raw.events",
        path="events",
        cadence=cadence,
        times=TimeColumns(event="at"),
        columns=[Column("at", "timestamp")],
    )
    times = [datetime(2024, 1, 2, 22, 59, 59, 999_999, UTC), datetime(2024, 1, 2, 23, tzinfo=UTC)]
    kind = pa.timestamp("us", "UTC")
    write_deltalake(str(tmp_path), pa.table({"at": pa.array(times, kind)}))
    write_deltalake(
        str(tmp_path),
        pa.table({"at": pa.array([times[0], times[1], times[1]], kind)}),
        mode="overwrite",
    )

    expected = "2024-01-03" if cadence.tz != "UTC" else "2024-01-02-23:00"
    assert said(tmp_path, source) == {expected: 1}


def test_partitions_and_columns_that_came_later_are_read_as_delta_means_them(tmp_path: Path):
    rows = arrow(
        [
            (date(2024, 1, 1), 1, 1.0, Decimal("1.00"), "a"),
            (date(2024, 1, 2), 2, 2.0, Decimal("2.00"), None),
        ]
    )
    write_deltalake(str(tmp_path), rows.drop_columns(["name"]), partition_by=["at"])
    write_deltalake(
        str(tmp_path), rows, mode="overwrite", schema_mode="overwrite", partition_by=["at"]
    )

    assert said(tmp_path) == {"2024-01-01": 0}


def test_what_only_spark_reads_is_left_to_it(tmp_path: Path):
    rows = arrow([(date(2024, 1, 1), 1, 1.0, Decimal("1.00"), "a")])
    write_deltalake(str(tmp_path), rows)
    write_deltalake(str(tmp_path), rows, mode="overwrite")
    for file in tmp_path.glob("*.parquet"):
        file.unlink()

    with pytest.raises(NeedsSparkError, match="without Spark"):
        said(tmp_path)
