"""Columns of a source without a value in some cells are found in its log, and else in its files."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals import WHOLE_CELL, IntervalSet, Whole
from backfill_assets.models.column import Column
from backfill_assets.models.source import TimeColumns
from backfill_assets.warehouse.log.delta_log import head
from backfill_assets.warehouse.sources import null_counts
from backfill_assets.warehouse.sources.null_counts import source_columns
from backfill_assets_tests.builders import a_source, days
from backfill_assets_tests.s3 import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.planning.review.source_columns import SourceColumns
    from backfill_assets_tests.s3 import S3Server

SCHEMA = pa.schema([("ds", pa.date32()), ("id", pa.int64()), ("note", pa.string())])
SOURCE = a_source(columns=[Column("ds", "date"), Column("id", "bigint"), Column("note", "string")])


def append(
    path: Path,
    *rows: tuple[int, str | None],
    schema: pa.Schema = SCHEMA,
    **how: Any,  # noqa: ANN401
) -> None:
    held = [{"ds": date(2024, 1, at), "id": 1, "note": note} for at, note in rows]
    table = pa.Table.from_pylist(held, schema)
    write_deltalake(str(path), table, mode="append", **how)


def looked(path: Path, cells: IntervalSet, *columns: str) -> SourceColumns:
    asked = columns or ("ds", "id", "note")
    return source_columns(str(path), SOURCE, head(str(path)), asked, cells)


def test_a_cell_in_which_no_row_has_a_value_is_found(tmp_path: Path):
    append(tmp_path, (1, "a"), (1, None))
    append(tmp_path, (2, None), (2, None))
    append(tmp_path, (3, "c"))

    found = looked(tmp_path, days(1, 2, 3))

    assert found.without == {"note": days(2)}
    assert not found.untold
    assert not found.differing
    assert looked(tmp_path, days(1, 2, 3), "id").without == {}
    assert looked(tmp_path, days(1, 3)).without == {}


def test_days_that_share_a_file_with_some_nulls_are_untold(tmp_path: Path):
    append(tmp_path, (1, "a"), (2, None))

    found = looked(tmp_path, days(1, 2))

    assert found.untold == {"note": days(1, 2)}
    assert not found.without


def test_an_older_file_that_lacks_the_column_holds_no_value_of_it(tmp_path: Path):
    append(tmp_path, (1, None), schema=SCHEMA.remove(2))
    append(tmp_path, (2, "b"), schema_mode="merge")

    found = looked(tmp_path, days(1, 2))

    assert found.without == {"note": days(1)}
    assert not found.untold


def test_files_that_can_not_be_opened_are_untold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    append(tmp_path, (1, None), schema=SCHEMA.remove(2))
    append(tmp_path, (2, "b"), schema_mode="merge")
    monkeypatch.setattr(null_counts, "_MOST_FOOTERS", 0)

    assert looked(tmp_path, days(1, 2)).untold == {"note": days(1)}


UNCOUNTED = {"delta.dataSkippingNumIndexedCols": "0"}


def test_a_file_in_an_object_store_is_opened_whatever_its_folder_is_called(s3: S3Server):
    path = f"s3://{BUCKET}/{uuid4().hex}"
    shops = pa.table(
        {"ds": [date(2024, 1, 1)], "id": [1], "note": ["a #1 b%20?"], "more": [None]},
        SCHEMA.append(pa.field("more", pa.string())),
    )
    write_deltalake(path, shops, partition_by=["note"], configuration=UNCOUNTED)
    source = a_source(columns=[*SOURCE.schema, Column("more", "string")])

    found = source_columns(path, source, head(path), ("note", "more"), days(1))

    assert found.without == {"more": days(1)}
    assert any(".parquet" in request.path for request in s3.seen)


def test_a_file_of_a_clone_in_a_store_that_is_not_known_is_untold(tmp_path: Path):
    append(tmp_path, (1, None), configuration=UNCOUNTED)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"path":"part', '"path":"s3a://lake/base/part'))

    assert looked(tmp_path, days(1), "note").untold == {"note": days(1)}


def test_a_partition_without_a_value_is_a_hole(tmp_path: Path):
    append(tmp_path, (1, None), (2, "b"), partition_by=["note"])

    assert looked(tmp_path, days(1, 2)).without == {"note": days(1)}


def test_a_column_that_is_not_there_or_has_another_type_is_named(tmp_path: Path):
    retyped = pa.schema([("ds", pa.date32()), ("id", pa.string())])
    held = [{"ds": date(2024, 1, 1), "id": "x"}]
    write_deltalake(str(tmp_path), pa.Table.from_pylist(held, retyped))

    found = looked(tmp_path, days(1))

    assert found.differing == {"id": "string, declared bigint", "note": "missing"}
    assert looked(tmp_path, days(1), "ds").differing == {}


def test_a_source_that_is_read_as_a_whole_is_one_cell(tmp_path: Path):
    append(tmp_path, (1, None))
    append(tmp_path, (2, None))
    whole = a_source(columns=SOURCE.columns, cadence=Whole(), times=TimeColumns())
    every = IntervalSet.of([WHOLE_CELL])

    found = source_columns(str(tmp_path), whole, head(str(tmp_path)), ["note", "id"], every)

    assert found.without == {"note": every}
    assert not found.untold


def test_a_log_that_can_not_be_read_is_an_error_of_ours(tmp_path: Path):
    append(tmp_path, (1, "a"))
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("{", encoding="utf-8")

    with pytest.raises(BackfillAssetsError):
        source_columns(str(tmp_path), SOURCE, 0, ["note"], days(1))
