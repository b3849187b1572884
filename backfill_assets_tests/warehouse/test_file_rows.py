from __future__ import annotations

from collections import Counter
from dataclasses import replace
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
from backfill_assets.warehouse.sources.file_rows import changed_rows
from backfill_assets.warehouse.sources.source_changes import life_of
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

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
        [pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def canonical(row: Row) -> Row:
    return tuple(
        "nan"
        if str(value) == "nan"
        else 0.0
        if value == 0.0 and isinstance(value, float)
        else value
        for value in row
    )


def said(path: Path, source: Source = SOURCE) -> dict[str, int]:
    until = DeltaTable(str(path)).version()
    found = changed_rows(str(path), source, 0, until, life_of(source))
    return {
        ranges_text(source.cadence, IntervalSet.of([cell])): change.more
        for cell, change in found.items()
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


@settings(max_examples=60, deadline=None)
@given(before=ROWS, seed=st.randoms(use_true_random=False))
def test_the_columns_that_did_not_change_hold_the_same_rows_together(
    tmp_path_factory: pytest.TempPathFactory, before: list[Row], seed: Random
):
    path = tmp_path_factory.mktemp("rows")
    after = [*before]
    for at in [number for number in (1, 2, 3, 4) if seed.random() < 0.5]:
        _shuffled(after, at, seed)  # values of a column change places between the rows of a day
    if before:
        after[0] = (after[0][0], seed.choice([7, after[0][1]]), *after[0][2:])
    write_deltalake(str(path), arrow(before))
    write_deltalake(str(path), arrow(after), mode="overwrite")

    for cell, change in changed_rows(str(path), SOURCE, 0, 1, life_of(SOURCE)).items():
        if change.columns is not None:
            kept = [at for at, (name, _, _) in enumerate(COLUMNS) if name not in change.columns]
            day = cell.start.date()
            assert _projected(before, kept, day) == _projected(after, kept, day)


def _shuffled(rows: list[Row], at: int, seed: Random) -> None:
    for day in sorted({row[0] for row in rows}):
        places = [number for number, row in enumerate(rows) if row[0] == day]
        values = [rows[number][at] for number in places]
        seed.shuffle(values)
        for number, value in zip(places, values, strict=True):
            rows[number] = (*rows[number][:at], value, *rows[number][at + 1 :])


def _projected(rows: list[Row], kept: list[int], day: date) -> Counter[Row]:
    return Counter(tuple(canonical(row)[at] for at in kept) for row in rows if row[0] == day)


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


def test_a_change_of_one_column_is_told_by_that_column(tmp_path: Path):
    rows = [(date(2024, 1, 1), n, 1.0, Decimal("1.00"), "a") for n in (1, 2)]
    write_deltalake(str(tmp_path), arrow(rows))
    write_deltalake(
        str(tmp_path), arrow([(*rows[0][:2], 2.0, *rows[0][3:]), rows[1]]), mode="overwrite"
    )

    (found,) = changed_rows(str(tmp_path), SOURCE, 0, 1, life_of(SOURCE)).values()
    assert (found.more, found.columns) == (0, {"cost"})


def test_a_column_that_is_gone_or_has_another_type_is_left_to_spark(tmp_path: Path):
    table = arrow([(date(2024, 1, 1), 1, 1.0, Decimal("1.00"), "a")])
    casts = table.set_column(1, "n", table.column("n").cast(pa.string()))
    for name, other in (("gone", table.drop_columns(["cost"])), ("cast", casts)):
        path = tmp_path / name
        write_deltalake(str(path), table)
        write_deltalake(str(path), other, mode="overwrite", schema_mode="overwrite")
        with pytest.raises(NeedsSparkError, match=r"is gone|has another type than before"):
            said(path)


def test_rows_are_counted_where_every_declared_column_is_a_partition(tmp_path: Path):
    source = replace(SOURCE, columns=[Column("at", "date")])
    rows = [(date(2024, 1, at), at, 1.0, Decimal("1.00"), "a") for at in (1, 1, 2)]
    write_deltalake(str(tmp_path), arrow(rows), partition_by=["at"])
    write_deltalake(str(tmp_path), arrow(rows[1:]), mode="overwrite")

    assert said(tmp_path, source) == {"2024-01-01": -1}


def test_bytes_and_long_texts_are_compared_by_value(tmp_path: Path):
    source = replace(SOURCE, columns=[*SOURCE.schema, Column("raw", "binary")])
    rows = arrow([(date(2024, 1, at), at, 1.0, Decimal("1.00"), "a\0" * at) for at in (1, 2)])
    for found in ([b"\xff\0", None], [b"\xff\0", b""]):
        raw = pa.array(found, pa.binary())
        write_deltalake(str(tmp_path), rows.append_column("raw", raw), mode="overwrite")

    assert said(tmp_path, source) == {"2024-01-02": 0}


def test_values_that_change_places_within_a_column_count_for_that_column(tmp_path: Path):
    rows = [(date(2024, 1, 1), n, cost, Decimal("1.00"), "a") for n, cost in ((1, 1.0), (2, 2.0))]
    swapped = [(*row[:2], other[2], *row[3:]) for row, other in zip(rows, rows[::-1], strict=True)]
    write_deltalake(str(tmp_path), arrow(rows))
    write_deltalake(str(tmp_path), arrow(swapped), mode="overwrite")

    (found,) = changed_rows(str(tmp_path), SOURCE, 0, 1, life_of(SOURCE)).values()
    assert found.columns == {"cost"}
