"""Iceberg's description of a table says what Delta's log says: held against it by reading both."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType
from hypothesis import given, settings, strategies as st
from pyarrow import compute
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo
from pyiceberg.table import StaticTable

from backfill_assets.warehouse.iceberg.field_ids import field_id
from backfill_assets.warehouse.iceberg.folder import Folder
from backfill_assets.warehouse.iceberg.metadata import current_at, drop_metadata, write_metadata
from backfill_assets.warehouse.iceberg.schema import iceberg_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2024, 6, 1, tzinfo=UTC)
MODEL = "web.visits"
ALWAYS_TRUE = AlwaysTrue()
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "day": (pa.date32(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "at": (
        pa.timestamp("us", "UTC"),
        st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001
            lambda at: at.replace(tzinfo=UTC)
        ),
    ),
    "text": (pa.string(), st.text(max_size=40)),
    "money": (pa.decimal128(18, 2), st.decimals(-1000, 1000, places=2)),
    "share": (pa.float64(), st.floats(allow_nan=False)),
    "is_new": (pa.bool_(), st.booleans()),
    "tags": (pa.list_(pa.string()), st.lists(st.text(max_size=3), max_size=2)),
    "place": (
        pa.struct([("city", pa.string()), ("zip", pa.int32())]),
        st.fixed_dictionaries({"city": st.text(max_size=3), "zip": st.integers(0, 99999)}),
    ),
}
FILTERED = ("whole", "small", "day", "at", "text")
ROW = st.fixed_dictionaries({name: st.none() | drawn for name, (_, drawn) in COLUMNS.items()})
CELL = st.integers(0, 800).map(lambda days: date(2023, 1, 1) + timedelta(days=days))
BATCH = st.dictionaries(CELL, st.lists(ROW, max_size=3), min_size=1, max_size=3)


def table_of(cells: dict[date, list[dict[str, Any]]]) -> pa.Table:
    schema = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
    rows = [{**row, "_cell": cell} for cell, each in cells.items() for row in each]
    return pa.Table.from_pylist(rows, schema=schema.append(pa.field("_cell", pa.date32())))


def write(path: str, cells: dict[date, list[dict[str, Any]]]) -> None:
    """Replace some cells of a table."""
    listed = ", ".join(f"'{cell}'" for cell in cells)
    rows = table_of(cells)
    replaced = f"_cell IN ({listed})" if DeltaTable.is_deltatable(path) else None
    write_deltalake(path, rows, mode="overwrite", partition_by=["_cell"], predicate=replaced)


def described(
    path: str, delta_version: int, *, same: str | None = None, after: str | None = None
) -> str:
    return write_metadata(path, delta_version, model=MODEL, now=NOW, same=same, after=after or same)


def as_text(rows: pa.Table) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in rows.to_pylist())


def by_delta(path: str, delta_version: int) -> pa.Table:
    columns = [*COLUMNS]
    return DeltaTable(path, version=delta_version).to_pyarrow_table(columns=columns)


def by_iceberg(
    location: str, snapshot_id: int | None = None, row_filter: BooleanExpression = ALWAYS_TRUE
) -> pa.Table:
    table = StaticTable.from_metadata(location)
    return table.scan(row_filter, snapshot_id=snapshot_id).to_arrow()


@settings(max_examples=25, deadline=None)
@given(batches=st.lists(BATCH, min_size=1, max_size=4))
def test_every_version_reads_the_same_by_both_and_so_does_each_of_its_past_snapshots(
    batches: Sequence[dict[date, list[dict[str, Any]]]],
):
    with TemporaryDirectory() as folder:
        path, location = f"{folder}/web__visits__1", None
        for number, cells in enumerate(batches):
            write(path, cells)
            location = described(path, number, same=location)
            assert as_text(by_iceberg(location)) == as_text(by_delta(path, number))
        last = StaticTable.from_metadata(location or "")
        for number, snapshot in enumerate(last.snapshots()):
            then = by_iceberg(location or "", snapshot_id=snapshot.snapshot_id)
            assert as_text(then) == as_text(by_delta(path, number))


@settings(max_examples=25, deadline=None)
@given(cells=BATCH, column=st.sampled_from(FILTERED), drawn=st.data())
def test_no_file_with_a_row_that_is_asked_for_is_skipped(
    cells: dict[date, list[dict[str, Any]]], column: str, drawn: st.DataObject
):
    values = [row[column] for each in cells.values() for row in each if row[column] is not None]
    if not values:
        return
    value = drawn.draw(st.sampled_from(values))
    with TemporaryDirectory() as folder:
        path = f"{folder}/web__visits__1"
        write(path, cells)
        everything = by_delta(path, 0)
        asked = compute.field(column) == pa.scalar(value, COLUMNS[column][0])
        literal = value.isoformat() if isinstance(value, date) else value
        equal = EqualTo(column, literal)  # pyright: ignore[reportCallIssue] - its own metaclass
        found = by_iceberg(described(path, 0), row_filter=equal)
        assert as_text(found) == as_text(everything.filter(asked))


def test_a_batch_writes_the_manifests_of_its_own_years_only(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    row = dict.fromkeys(COLUMNS)
    write(path, {date(year, 5, 1): [row] for year in (2021, 2022, 2023)})
    first = described(path, 0)
    before = manifests(path)
    write(path, {date(2022, 6, 1): [row]})
    described(path, 1, same=first)
    assert (len(before), len(manifests(path) - before)) == (3, 1)


def manifests(path: str) -> set[str]:
    return {file.name for file in Path(path, "_iceberg").glob("manifest-*")}


def test_a_promoted_table_follows_on_what_the_name_stood_for(tmp_path: Path):
    old, new = str(tmp_path / "web__visits__1"), str(tmp_path / "web__visits__2")
    row = {**dict.fromkeys(COLUMNS), "whole": 1}
    write(old, {date(2024, 1, 1): [row]})
    write(new, {date(2024, 1, 1): [{**row, "whole": 2}]})
    before = described(old, 0)
    built = described(new, 0)
    promoted = described(new, 0, same=built, after=before)
    table = StaticTable.from_metadata(promoted)
    assert table.metadata.table_uuid == StaticTable.from_metadata(before).metadata.table_uuid
    values = [
        by_iceberg(promoted, snapshot_id=snapshot.snapshot_id)["whole"].to_pylist()
        for snapshot in table.snapshots()
    ]
    assert values == [[1], [2]]
    assert by_iceberg(promoted)["whole"].to_pylist() == [2]
    rolled_back = described(old, 0, same=before, after=promoted)
    assert by_iceberg(rolled_back)["whole"].to_pylist() == [1]
    history = [entry.snapshot_id for entry in StaticTable.from_metadata(rolled_back).history()]
    assert [history[0] == history[2], len(history)] == [True, 3]


def test_a_column_that_is_added_is_null_in_older_files(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    write_deltalake(path, pa.table({"a": [1]}))
    first = described(path, 0)
    later = pa.table({"a": [2], "b": ["x"]})
    write_deltalake(path, later, mode="append", schema_mode="merge")
    rows = by_iceberg(described(path, 1, same=first)).to_pylist()
    assert sorted(rows, key=lambda row: row["a"]) == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_where_a_column_changes_its_type_the_past_is_left_out_rather_than_misread(tmp_path: Path):
    old, new = str(tmp_path / "web__visits__1"), str(tmp_path / "web__visits__2")
    write_deltalake(old, pa.table({"a": [1]}))
    write_deltalake(new, pa.table({"a": ["one"]}))
    promoted = described(new, 0, same=None, after=described(old, 0))
    assert len(StaticTable.from_metadata(promoted).snapshots()) == 1
    assert by_iceberg(promoted)["a"].to_pylist() == ["one"]


def test_a_type_that_iceberg_lacks_leaves_its_column_out():
    delta = Schema([Field("a", PrimitiveType("long")), Field("b", PrimitiveType("void"))])
    assert [field.name for field in iceberg_schema(delta).fields] == ["a"]


def test_an_empty_table_has_a_name_without_rows(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    write(path, {date(2024, 1, 1): []})
    found = by_iceberg(described(path, 0))
    assert (found.num_rows, found.column_names) == (0, [*COLUMNS])


def test_cells_of_hours_that_share_a_file_are_read_whole(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    hours = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(3)]
    write_deltalake(path, pa.table({"a": [1, 2, 3], "_cell": hours}))
    assert by_iceberg(described(path, 0)).to_pylist() == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_a_deleted_description_is_written_anew(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    write_deltalake(path, pa.table({"a": [1]}))
    first = described(path, 0)
    for file in Path(path, "_iceberg").iterdir():
        file.unlink()
    write_deltalake(path, pa.table({"a": [2]}), mode="append")
    assert by_iceberg(described(path, 1, same=first)).num_rows == 2


def test_what_is_not_kept_is_deleted_unless_it_was_written_lately(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    write_deltalake(path, pa.table({"a": [1], "_cell": [date(2024, 1, 1)]}))
    first = described(path, 0)
    write_deltalake(path, pa.table({"a": [2], "_cell": [date(2024, 1, 2)]}), mode="append")
    second = described(path, 1, same=first)
    everything = len([*Path(path, "_iceberg").iterdir()])
    drop_metadata(path, [second], since=datetime(2000, 1, 1, tzinfo=UTC))
    assert len([*Path(path, "_iceberg").iterdir()]) == everything
    drop_metadata(path, [second], since=datetime(2999, 1, 1, tzinfo=UTC))
    assert Folder.of(path).read(first) is None
    assert sorted(by_iceberg(second)["a"].to_pylist()) == [1, 2]
    assert len([*Path(path, "_iceberg").iterdir()]) == 3


def test_what_a_name_stood_for_at_an_instant_was_written_last_before_it(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    for number in range(3):
        write_deltalake(path, pa.table({"a": [number]}), mode="append")
    by_version = {number: described(path, number) for number in range(3)}
    at = {number: datetime(2024, 1, 1 + number, tzinfo=UTC) for number in by_version}
    for number, location in by_version.items():
        os.utime(location.removeprefix("file://"), (at[number].timestamp(), at[number].timestamp()))
    assert current_at(path, by_version, at[0]) is None
    assert current_at(path, by_version, at[2]) == 1
    assert current_at(path, by_version, at[2] + timedelta(days=9)) == 2
    Path(by_version[1].removeprefix("file://")).unlink()
    assert current_at(path, by_version, at[2]) == 0, "of one that is gone nothing is known"


def test_duckdb_reads_a_name_through_pyiceberg(tmp_path: Path):
    path = str(tmp_path / "web__visits__1")
    write_deltalake(path, pa.table({"a": [1, 2], "money": [Decimal("1.50"), Decimal("2.50")]}))
    visits = StaticTable.from_metadata(described(path, 0)).scan().to_arrow()
    with duckdb.connect() as connection:
        connection.register("visits", visits)
        assert connection.sql("SELECT SUM(money) FROM visits").fetchall() == [(Decimal("4.00"),)]


def test_the_numbers_of_columns_keep_clear_of_those_that_iceberg_keeps_for_itself():
    numbers = [field_id(path) for path in ("a", "place.city", "tags.element")]
    assert all(0 < number < 2**31 - 200 for number in numbers)
    assert len({*numbers}) == 3
