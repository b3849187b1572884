"""Count the NULLs of a source's files: as Delta's log has them, else as the files' own footers do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.source_columns import FileNulls, SourceColumns, filled
from backfill_assets.warehouse.files.file_spans import file_of, logged_files
from backfill_assets.warehouse.files.tables import delta_schema, same_type
from backfill_assets.warehouse.log.delta_log import delta_json_schema, opened_log
from backfill_assets.warehouse.log.places import file_system, lies_elsewhere
from backfill_assets.warehouse.sources.source_changes import is_cut

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pyarrow.fs import FileSystem

    from backfill_assets.models.source import Source

_MOST_FOOTERS = 200
"""Files whose footers are opened where the log does not tell: an older one may lack a column altogether."""


def source_columns(
    path: str, source: Source, delta_version: int, columns: Collection[str], cells: IntervalSet
) -> SourceColumns:
    """Tell which of some declared columns are there, and hold a value in each of these cells.

    Args:
        path: of the table.
        source: whose columns they are.
        delta_version: at which the table is read.
        columns: by name.
        cells: those that hold rows.

    Raises:
        CorruptTableError: the log is damaged, or of a form that only Spark reads.
    """
    types = dict(delta_schema(path, delta_version))
    declarations = [column for column in source.schema if column.name in columns]
    differing = {
        column.name: f"{types[column.name]}, declared {column.dtype}"
        if column.name in types
        else "missing"
        for column in declarations
        if column.name not in types or not same_type(types[column.name], column.dtype)
    }
    names = [column.name for column in declarations if column.name not in differing]
    if not names or not cells:
        return SourceColumns(differing)
    if _renamed(path, delta_version):
        return filled([FileNulls(None, None, {})], names, cells, differing)
    return filled(_files(path, source, delta_version, names, cells), names, cells, differing)


def _renamed(path: str, delta_version: int) -> bool:
    """Whether the files hold columns under other names than the table."""
    fields = delta_json_schema(opened_log(path, delta_version))
    return any("delta.columnMapping.physicalName" in field.get("metadata", {}) for field in fields)


def _files(
    path: str, source: Source, delta_version: int, columns: list[str], cells: IntervalSet
) -> Iterator[FileNulls]:
    opened = 0
    for entry in logged_files(path, delta_version):
        nulls = {column: _nulls(entry, column) for column in columns}
        rows, span = entry.get("num_records"), _span(entry, source)
        untold = [column for column, count in nulls.items() if count is None]
        if untold and (span is None or span & cells) and opened < _MOST_FOOTERS:
            opened += 1
            rows, counts = _footer(path, entry, untold)
            nulls |= counts
        is_one_cell = bool(span) and (not is_cut(source) or source.cadence.count(span.span()) == 1)
        yield FileNulls(span, rows, nulls, one_cell=is_one_cell)


def _span(entry: Mapping[str, Any], source: Source) -> IntervalSet | None:
    if not is_cut(source):
        return IntervalSet.of([WHOLE_CELL])
    return file_of(entry, str(source.time_column), source.cadence).cells(source.cadence)


def _nulls(entry: Mapping[str, Any], column: str) -> int | None:
    if f"partition.{column}" in entry:
        return entry.get("num_records") if entry[f"partition.{column}"] is None else 0
    return entry.get(f"null_count.{column}")


def _footer(
    path: str, entry: Mapping[str, Any], columns: list[str]
) -> tuple[int | None, dict[str, int | None]]:
    """Read a file's number of rows, and of NULLs; all of them in a column that it does not have."""
    from pyarrow import ArrowInvalid, parquet  # noqa: PLC0415 - only a checklist needs it

    try:
        store, file_path = _opened(path, unquote(entry["path"]))
        with store.open_input_file(file_path) as file:
            footer = parquet.read_metadata(file)
    except (OSError, ArrowInvalid):  # gone, or out of reach: the batch that reads it will say so
        return entry.get("num_records"), dict.fromkeys(columns)
    names = {*footer.schema.to_arrow_schema().names}
    return footer.num_rows, {
        column: _counted(footer, column) if column in names else footer.num_rows
        for column in columns
    }


def _opened(path: str, name: str) -> tuple[FileSystem, str]:
    """Give the store of a table's file, and its path there."""
    if lies_elsewhere(name):
        return file_system(quote(name, safe="/:") if "://" in name else name)
    store, root = file_system(path)
    return store, f"{root}/{name}"


def _counted(footer: Any, column: str) -> int | None:  # noqa: ANN401 - pyarrow's FileMetaData
    """Add up a column's NULLs; None where the file does not tell, as of nested columns."""
    chunks = [
        footer.row_group(group).column(at).statistics
        for group in range(footer.num_row_groups)
        for at in range(footer.num_columns)
        if footer.schema.column(at).path == column
    ]
    if not chunks or not all(chunk and chunk.has_null_count for chunk in chunks):
        return None
    return sum(chunk.null_count for chunk in chunks)
