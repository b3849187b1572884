"""Read statistics of a Parquet file from its footer, in the form of Delta's log.

Readers skip files by them, so they hold only exact values: the number of rows, of NULLs, and the
least and largest value of whole numbers, dates, instants in whole milliseconds and short texts. Other
columns have no statistics, so readers read the file.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyarrow.fs import FileSystem
    from pyarrow.parquet import FileMetaData, Statistics

_LONGEST_TEXT = 32


def statistics_of(store: FileSystem, path: str) -> tuple[int, dict[str, Any]]:
    """Give a file's size in bytes, and its statistics.

    Raises:
        FileNotFoundError: it is not there.
    """
    from pyarrow import parquet  # noqa: PLC0415 - only publishing needs it

    with store.open_input_file(path) as file:
        return file.size(), _statistics(parquet.read_metadata(file))


def _statistics(footer: FileMetaData) -> dict[str, Any]:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    nulls: dict[str, int] = {}
    least: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    for number in range(footer.num_columns):
        parts = [group.column(number) for group in groups]
        name = footer.schema.column(number).path
        chunks = [part.statistics for part in parts]
        if "." in name or not parts or not all(chunk and chunk.has_null_count for chunk in chunks):
            continue
        nulls[name] = sum(chunk.null_count for chunk in chunks)
        edges = _edges(chunks)
        if edges is not None:
            least[name], largest[name] = edges
    return {
        "numRecords": footer.num_rows,
        "minValues": least,
        "maxValues": largest,
        "nullCount": nulls,
    }


def _edges(chunks: Sequence[Statistics]) -> tuple[Any, Any] | None:
    """Give the least and the largest value; None where they are not exact."""
    if not all(chunk.has_min_max for chunk in chunks):
        return None
    try:
        values = [value for chunk in chunks for value in (chunk.min, chunk.max)]
    except (
        ValueError,
        OverflowError,
    ):  # a date outside of Python's range, or bytes that are no text
        return None
    if not all(_is_exact(value) for value in values):
        return None
    return _in_json(min(values)), _in_json(max(values))


def _is_exact(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    if isinstance(value, datetime):
        return value.tzinfo is not None and not value.microsecond % 1000
    return isinstance(value, (int, date)) and not isinstance(value, bool)


def _in_json(value: Any) -> Any:  # noqa: ANN401 - whatever a column holds
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"
    return value.isoformat() if isinstance(value, date) else value
