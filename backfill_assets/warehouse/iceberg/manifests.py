"""Iceberg's manifests: lists of a table's data files with their statistics, those of one year together.

A manifest is never changed. One whose files and columns are the same as before is named again, so a batch
writes the manifests of its own years only.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, IntegerType, LongType, StringType, TimestamptzType

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.iceberg.avro import MemoryFile
from backfill_assets.warehouse.iceberg.schema import iceberg_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalake import DeltaTable
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    from backfill_assets.warehouse.iceberg.folder import Folder

FORMAT = 2
_NAME = re.compile(r".*/manifest-([0-9a-f]{32})-[0-9a-f]{32}\.avro")
_YEAR = len("2024")
_FIRST = 1
"""The number in the order of snapshots under which all files count as added: no deletion ever refers to it."""

# Of other types Delta's statistics are not exact, or are none.
_BOUNDED = (DateType, IntegerType, LongType, StringType, TimestamptzType)
# Delta cuts instants to milliseconds, so the largest may be greater by less than one.
_REST = timedelta(microseconds=999)


def _manifests_of(
    table: DeltaTable, schema: Schema, folder: Folder, before: str | None
) -> list[ManifestFile]:
    """Write the manifests of a version of a table, and name again those that are there."""
    by_content = _by_content(folder, before)
    files = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    columns = ":".join(f"{field.field_id} {field.field_type}" for field in schema.fields)
    manifests: list[ManifestFile] = []
    for rows in _by_year(files):
        content = _content(columns, files, rows)
        manifest = by_content.get(content)
        manifests.append(
            _written(files.take(rows).to_pylist(), schema, folder, content)
            if manifest is None
            else manifest
        )
    return manifests


def _by_content(folder: Folder, listed: str | None) -> dict[str, ManifestFile]:
    """Read a list of manifests, by what they say; nothing of one that was deleted."""
    manifests = () if listed is None else listed_manifests(folder, listed)
    named = ((_NAME.fullmatch(each.manifest_path), each) for each in manifests)
    return {name[1]: manifest for name, manifest in named if name}


def listed_manifests(folder: Folder, listed: str) -> tuple[ManifestFile, ...]:
    """Read a list of manifests; an empty one if it was deleted."""
    content = folder.read(listed)
    return () if content is None else (*read_manifest_list(MemoryFile(listed, content)),)


def write_list(
    table: DeltaTable, folder: Folder, before: str | None, snapshot_id: int
) -> tuple[Schema, str]:
    """Write the list of the manifests of a version of a table.

    Args:
        table: at the version.
        folder: where they are written.
        before: the list of an older snapshot's manifests; None if there is none.
        snapshot_id: of the snapshot.

    Returns:
        Iceberg's schema of the table, and where the list lies.
    """
    schema = iceberg_schema(table.schema())
    listed = MemoryFile(folder.new_name(f"snapshot-{table.version():08d}", "avro"))
    with write_manifest_list(FORMAT, listed, snapshot_id, None, _FIRST, "null") as writer:
        writer.add_manifests(_manifests_of(table, schema, folder, before))
    folder.write(listed.location, listed.content)
    return schema, listed.location


def _by_year(files: pa.Table) -> list[list[int]]:
    """Put the rows of files whose cells begin in one year together; those without a cell apart."""
    named = (f"partition.{CELL_COLUMN}", f"min.{CELL_COLUMN}")
    column = next((name for name in named if name in files.schema.names), None)
    years: dict[str, list[int]] = defaultdict(list)
    cells = [None] * len(files) if column is None else files[column].cast(pa.string()).to_pylist()
    for row, cell in enumerate(cells):
        years[(cell or "")[:_YEAR]].append(row)
    return [years[year] for year in sorted(years)]


def _content(columns: str, files: pa.Table, rows: Sequence[int]) -> str:
    """Name what a manifest says: files never change, so their names say all about their rows."""
    digest = hashlib.sha256(columns.encode())
    for name in sorted(files["path"].take(rows).to_pylist()):
        digest.update(b"\n" + name.encode())
    return digest.hexdigest()[:32]


def _written(
    files: Sequence[Mapping[str, Any]], schema: Schema, folder: Folder, content: str
) -> ManifestFile:
    output = MemoryFile(folder.new_name(f"manifest-{content}", "avro"))
    fields = [field for field in schema.fields if isinstance(field.field_type, _BOUNDED)]
    spec = UNPARTITIONED_PARTITION_SPEC
    with write_manifest(FORMAT, spec, schema, output, _FIRST, "null") as manifest:
        for file in files:
            manifest.existing(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.EXISTING,
                    snapshot_id=_FIRST,
                    sequence_number=_FIRST,
                    file_sequence_number=_FIRST,
                    data_file=_data_file(file, fields, folder.table),
                )
            )
    folder.write(output.location, output.content)
    written = manifest.to_manifest_file()
    written.sequence_number = _FIRST
    return written


def _data_file(file: Mapping[str, Any], fields: Sequence[NestedField], table: str) -> DataFile:
    nulls = {
        field.field_id: count
        for field in fields
        if (count := file.get(f"null_count.{field.name}")) is not None
    }
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table}/{unquote(file['path'])}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=file["num_records"],
        file_size_in_bytes=file["size_bytes"],
        null_value_counts=nulls,
        lower_bounds=_bounds(file, fields, "min"),
        upper_bounds=_bounds(file, fields, "max"),
    )


def _bounds(file: Mapping[str, Any], fields: Sequence[NestedField], which: str) -> dict[int, bytes]:
    bounds: dict[int, bytes] = {}
    for field in fields:
        value = file.get(f"{which}.{field.name}")
        if value is None:
            continue
        if isinstance(value, datetime) and which == "max":
            value += _REST
        bounds[field.field_id] = to_bytes(field.field_type, value)
    return bounds
