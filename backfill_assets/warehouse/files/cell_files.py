"""Write, copy, list and remove the Parquet files of cells; a cell of a table is a list of such files.

Files are immutable. They are written into a folder of their own below the table, before any log names
them. A file that no log ever names is garbage: its writer or `backfill gc` removes it.

A cell of a day or longer has files of its own, named by a partition. Cells finer than a day share the
files of their **block**, the local day: such a table has no partitions, `_cell` is a column of its
files, and the log's statistics give the first and last cell of a file.
"""

from __future__ import annotations

import json
import re
import shutil
from bisect import bisect_left, bisect_right
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import compress
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.files.cells import cell_text, instant_text
from backfill_assets.warehouse.files.file_statistics import statistics_of
from backfill_assets.warehouse.log.delta_log import ABSENT, head, opened_log
from backfill_assets.warehouse.log.places import file_system, folder_entries, local_folder
from backfill_assets.warehouse.spark.spark_errors import (
    DamagedFileError,
    PinGoneError,
    error_of_ours,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem
    from pyarrow.parquet import ParquetFile, ParquetWriter
    from pyspark.sql import DataFrame

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval

_SPARK = b"org.apache.spark.version"
_PARQUET = ".parquet"
_FOLDER = re.compile("b-[0-9a-f]{32}/")
ANY_FOLDER = "b-*"
NO_CELL = "__HIVE_DEFAULT_PARTITION__"
"""The cell, as a log has it, of rows of a foreign writer that have none."""
_PARTITION = f"{CELL_COLUMN}="
# A task's files become visible together, when the task is committed, so a task that was tried twice
# leaves its files once; and no marker is left beside them.
_COMMITTER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
CELL_OF_FOLDER = (
    "TRY_CAST(regexp_extract(_metadata.file_path, '/(?:_cell|cells)=([^/]*)/[^/]*$', 1) AS DATE)"
)
"""Spark SQL for the `_cell` of a row that is read from a file for which `folder_says_cell` holds."""
FOLDERS = {"timeZone": "UTC"}
"""How Spark writes and reads the cells of hours in names of folders, whatever its session's zone."""


class UnseenFilesError(BackfillAssetsError):
    """Files that Spark has written are missing where this process looks for them."""

    def __init__(self, *, path: str, written: int, found: int) -> None:
        self.path, self.written, self.found = path, written, found
        super().__init__(
            f"Spark has written {counted(written, 'row')} for {path}, and the files that this process sees there "
            f"hold {found}. Nothing was committed. Spark's executors and this process must share the "
            "folder, or the object store; if they do, run again"
        )


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A data file that a version of a table names, whether it is still there or not.

    Attributes:
        name: its path below the table.
        first: the first cell that it may hold rows of, as `cells.cell_text` writes it.
        last: the last such cell; the first one where each cell has files of its own.
        bytes: its size.
        rows: how many it holds; None where the log does not say.
    """

    name: str
    first: str
    last: str
    bytes: int
    rows: int | None

    def may_hold(self, cells: Sequence[str]) -> Sequence[str]:
        """Give those of some sorted cells that it may hold rows of."""
        return cells[bisect_left(cells, self.first) : bisect_right(cells, self.last)]


@dataclass(frozen=True, slots=True)
class CellFile(NamedFile):
    """An existing data file, and its entry in a log.

    Attributes:
        rows: how many it holds.
        statistics: those of Delta's log on its rows, as JSON.
    """

    rows: int
    statistics: str


def rows_by_cell(path: str, files: Iterable[NamedFile]) -> Counter[str]:
    """Count the rows of each cell in files of a table: by the log's entries, or by reading `_cell`.

    Raises:
        DamagedFileError: one that has to be read can't be.
    """
    store, root = file_system(path)
    rows = Counter[str]()
    for file in files:
        if file.first == file.last and file.rows is not None:
            rows[file.first] += file.rows
        else:
            rows.update(_counted(store, root, file))
    return rows


def _counted(store: FileSystem, root: str, file: NamedFile) -> Counter[str]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with store.open_input_file(f"{root}/{file.name}") as opened, _readable(root, file.name):
        cells = parquet.read_table(opened, columns=[CELL_COLUMN])[CELL_COLUMN]
    counts = pa.Table.from_batches([pa.RecordBatch.from_struct_array(cells.value_counts())])
    return Counter(
        dict(zip(_texts(counts["values"]).to_pylist(), counts["counts"].to_pylist(), strict=True))
    )


def new_folder() -> str:
    """Name a folder that no other batch has or had, even if a restored state repeats ids."""
    return f"b-{token_hex(16)}"


def _folder_of(file: NamedFile) -> str:
    """Name the folder of a copy: as Spark does for a cell of a day or longer, which Polars reads by no other name."""
    of_one_cell = file.first == file.last and len(file.first) == _DATE
    return f"{_PARTITION if of_one_cell else 'cells='}{file.first[:_DATE]}"


def folder_says_cell(file: NamedFile) -> bool:
    """Whether the folder of a file of a day's or a coarser cell names this cell, as all of ours do."""
    folder = file.name.split("/")[-2:-1]
    return folder in ([f"{_PARTITION}{file.first}"], [f"cells={file.first}"])


def is_written(name: str) -> bool:
    """Whether a file lies in a folder that `new_folder` has named."""
    return bool(_FOLDER.match(name))


def has_blocks(cadence: Cadence, path: str) -> bool:
    """Whether the files of a table hold the cells of a block, or each those of one cell.

    Tables of cells finer than a day have blocks, but for those that an older release has made.

    Raises:
        CorruptTableError: the log is damaged.
    """
    if not cadence.unit.is_subday or head(path) == ABSENT:
        return cadence.unit.is_subday
    return not partition_columns(path)


def partition_columns(path: str) -> list[str]:
    """Name the columns by which a table is partitioned.

    Raises:
        CorruptTableError: the log is damaged.
    """
    return opened_log(path).metadata().partition_columns


def write_files(
    parts: Sequence[DataFrame], block: str | None, path: str, folder: str, *, together: bool
) -> tuple[CellFile, ...]:
    """Write rows as files of a table's cells, into a new folder below it that no log names.

    Args:
        parts: rows with `_cell`, all with the same columns; rows of other cells are written like any. One part is
            computed and written after the other.
        block: Spark SQL that gives the block of a row; None for a table in which each cell has files
            of its own.
        path: of the table, which need not be there yet.
        folder: its name.
        together: whether all rows are of one cell.

    Returns:
        The files, as this process sees them.

    Raises:
        UnseenFilesError: a file that Spark has written is missing.
    """
    to = f"{path.rstrip('/')}/{folder}"
    written = sum(_written_rows(rows, block, to, together=together) for rows in parts)
    files = files_in(path, folder)
    visible = sum(file.rows for file in files)
    if visible != written:
        raise UnseenFilesError(path=path, written=written, found=visible)
    return files


def _written_rows(rows: DataFrame, block: str | None, to: str, *, together: bool) -> int:
    """Add rows to a folder as files, and give their number."""
    from pyspark.sql import Observation, functions as F  # noqa: PLC0415 - only writers need it

    by, counted = CELL_COLUMN, Observation()
    if block is not None:
        by = _unused(rows.columns)
        rows = rows.withColumn(by, F.expr(block))
    # The rows of each cell or block are brought together in one file; a large one is split.
    brought = rows.hint("rebalance") if together else rows.repartition(by)
    seen = brought.observe(counted, F.count(F.lit(1)).alias("rows"))
    writer = seen.write.mode("append").partitionBy(by).options(**_COMMITTER, **FOLDERS)
    writer.parquet(to)
    return counted.get["rows"]


def _unused(names: Sequence[str]) -> str:
    """Name the column of blocks, which is in no file, unlike every column of the rows."""
    name = "block"
    while name in {used.lower() for used in names}:
        name += "_"
    return name


def files_in(path: str, folder: str) -> tuple[CellFile, ...]:
    """Describe the files of a folder that `write_files` has named."""
    store, root = file_system(path)
    return tuple(_described(store, root, name) for name in _names(store, root, folder))


def files_of(table: DeltaTable, cells: Iterable[str] | None = None) -> tuple[NamedFile, ...]:
    """Name the files that may hold rows of some cells (all, unless named) of a version of a table."""
    listed, reach = _listed(table)
    if cells is not None:
        sorted_cells = sorted(cells)
        within = [
            bisect_right(sorted_cells, last) > bisect_left(sorted_cells, first)
            for first, last in reach
        ]
        listed, reach = listed.filter(_mask(within)), list(compress(reach, within))
    return tuple(
        NamedFile(unquote(entry["path"]), first, last, entry["size_bytes"], entry.get(_ROWS))
        for entry, (first, last) in zip(listed.to_pylist(), reach, strict=True)
    )


def _listed(table: DeltaTable) -> tuple[pa.Table, list[tuple[str, str]]]:
    """List the files of a version of a table, and the cells from which and to which each one reaches.

    Rows of a foreign writer may have no cell, and a foreign writer's file of a block may hold any cell.
    Nothing here may make Arrow of Python's values: that imports pandas, which takes longer than the list.
    """
    import pyarrow as pa  # noqa: PLC0415 - only readers of a table need it

    actions, named = table.get_add_actions(flatten=True), f"partition.{CELL_COLUMN}"
    names = set(actions.schema.names)
    edges = [named, named] if named in names else [f"min.{CELL_COLUMN}", f"max.{CELL_COLUMN}"]
    own = [column for column in ("path", "size_bytes", _ROWS) if column in names]
    columns = [*own, *(edge for edge in dict.fromkeys(edges) if edge in names)]
    listed = pa.RecordBatchReader.from_stream(actions.select(columns)).read_all()
    unknown = [NO_CELL, NO_CELL] if named in names else ["", NO_CELL]
    first, last = (
        [word if text is None else text for text in _texts(listed[edge]).to_pylist()]
        if edge in names
        else [word] * len(listed)
        for edge, word in zip(edges, unknown, strict=True)
    )
    # Another system's rows may have a cell that Python has no date for.
    return listed.select(own), list(zip(first, last, strict=True))


def _mask(within: list[bool]) -> pa.Array:
    """Make Arrow of truth values without pandas."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.Array.from_buffers(pa.uint8(), len(within), [None, pa.py_buffer(bytes(within))]).cast(
        pa.bool_()
    )


def _texts(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write cells of a log or a file as `cells.cell_text` does; NULL stays NULL."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    written = "%Y-%m-%d" if pa.types.is_date(cells.type) else "%Y-%m-%dT%H:%M:%SZ"
    return compute.call_function("strftime", [cells], compute.StrftimeOptions(written))


def partition_values(columns: Sequence[str], file: NamedFile) -> dict[str, str | None]:
    """Give a file's cell as Delta's log writes it; empty for a table with blocks."""
    return dict.fromkeys(columns, None if file.first == NO_CELL else file.first)


def files_at(
    path: str, delta_version: int, cells: Iterable[str] | None = None
) -> tuple[NamedFile, ...]:
    """Name the files that may hold rows of some cells (all, unless named) at a delta_version.

    Raises:
        CorruptTableError: the log is damaged, or does not reach so far.
    """
    if delta_version == ABSENT:
        return ()
    return files_of(opened_log(path, delta_version), cells)


def files_changed(path: str, since: int) -> tuple[NamedFile, ...]:
    """Name the files that a table's head has and an older version had not, or the other way round.

    Raises:
        CorruptTableError: the log is damaged, or does not reach so far.
    """
    before, now = set(files_at(path, since)), set(files_of(opened_log(path)))
    return tuple(before ^ now)


def described(path: str, files: Iterable[NamedFile]) -> tuple[CellFile, ...]:
    """Read again the log's entries for files that an earlier version of the table has named.

    Raises:
        PinGoneError: one of them is not there any more.
        DamagedFileError: one of them can't be read.
    """
    store, root = file_system(path)
    with _pinned(path):
        return tuple(_described(store, root, file.name, (file.first, file.last)) for file in files)


def copy_files(
    source: str, files: Iterable[NamedFile], cells: Iterable[str], path: str, folder: str
) -> tuple[CellFile, ...]:
    """Copy the rows of some cells from files of one table into a new folder below another.

    A file that holds only these cells is copied byte for byte.

    Raises:
        PinGoneError: one of them is not there any more.
        DamagedFileError: one of them can't be read.
    """
    (here, from_), (there, to), requested_cells = file_system(source), file_system(path), {*cells}
    copied: list[CellFile] = []
    with _pinned(source):
        for number, file in enumerate(files):
            file_cells = _held(here, from_, file)
            if not file_cells & requested_cells:
                continue
            name = f"{folder}/{_folder_of(file)}/{number:05d}{_PARQUET}"
            there.create_dir(f"{to}/{name.rsplit('/', 1)[0]}", recursive=True)
            if file_cells <= requested_cells:
                _copy_file(f"{from_}/{file.name}", f"{to}/{name}", here, there)
                copied.append(_described(there, to, name, (file.first, file.last)))
            else:
                with _opened(here, from_, file) as rows:
                    _write_part(rows, there, f"{to}/{name}", file_cells & requested_cells)
                copied.append(_described(there, to, name))
    return tuple(copied)


def cells_in(path: str, file: NamedFile) -> frozenset[str]:
    """Name the cells that a file of a table holds rows of.

    Raises:
        PinGoneError: the file is not there any more.
    """
    with _pinned(path):
        return _held(*file_system(path), file)


def whole_and_partly(
    path: str, files: Iterable[NamedFile], cells: Collection[str]
) -> tuple[list[NamedFile], list[NamedFile]]:
    """Separate files of a table that hold only rows of these cells from those that hold others, too.

    Raises:
        PinGoneError: one of them is not there any more.
        DamagedFileError: one of them can't be read.
    """
    (store, root), requested_cells = file_system(path), {*cells}
    whole: list[NamedFile] = []
    partly: list[NamedFile] = []
    with _pinned(path):
        for file in files:
            (whole if _held(store, root, file) <= requested_cells else partly).append(file)
    return whole, partly


def join_files(path: str, files: Sequence[NamedFile], folder: str) -> CellFile:
    """Write the rows of files of a table as one file, a group of rows at a time.

    A column that some of them lack is NULL in their rows.

    Raises:
        PinGoneError: one of them is not there any more.
        DamagedFileError: one of them can't be read.
    """
    import pyarrow as pa  # noqa: PLC0415

    store, root = file_system(path)
    name = f"{folder}/{_folder_of(files[0])}/00000{_PARQUET}"
    store.create_dir(f"{root}/{name.rsplit('/', 1)[0]}", recursive=True)
    with _pinned(path), ExitStack() as stack:
        parts = [stack.enter_context(_opened(store, root, file)) for file in files]
        schema = pa.unify_schemas([part.schema for part in parts])
        if any(not part.schema.equals(schema) for part in parts):
            schema = schema.remove_metadata()  # Spark's metadata is of one file only
        with _writer(store, f"{root}/{name}", schema, parts[0].codec) as joined:
            for part in parts:
                for rows in part.groups():
                    alike = [schema.empty_table(), rows]
                    joined.write_table(pa.concat_tables(alike, promote_options="default"))
    return _described(store, root, name)


def _held(store: FileSystem, root: str, file: NamedFile) -> frozenset[str]:
    """Name the cells of a file, which is read only if it may hold several."""
    if file.first == file.last:
        return frozenset([file.first])
    return frozenset(_counted(store, root, file))


@contextmanager
def _pinned(path: str) -> Iterator[None]:
    """Turn a missing file into the error that a pinned version has lost it."""
    try:
        yield
    except FileNotFoundError as error:
        raise PinGoneError(path=path, found=str(error)) from error


def remove_folder(path: str, folder: str) -> None:
    """Remove a folder of files that no log names; files that can't be removed now are left to `gc`."""
    local = local_folder(path)
    with suppress(OSError):
        if local is None:
            store, root = file_system(path)
            store.delete_dir_contents(f"{root}/{folder}", missing_dir_ok=True)
            return
        shutil.rmtree(local / folder, ignore_errors=True)
        local.rmdir()  # unless it holds a table or another batch's files


def spark_versions(path: str, files: Iterable[NamedFile]) -> frozenset[str]:
    """Name the releases of Spark that wrote some files; other writers are left out."""
    from pyarrow.parquet import read_metadata  # noqa: PLC0415 - only readers of files need it

    store, root = file_system(path)
    notes = (read_metadata(f"{root}/{file.name}", filesystem=store).metadata for file in files)
    return frozenset(note[_SPARK].decode() for note in notes if note and _SPARK in note)


def missing_files(path: str, files: Iterable[NamedFile]) -> tuple[str, ...]:
    """Name those of these files that are not there, or not as large as they were."""
    expected_files = [*files]
    if not expected_files:
        return ()
    store, root = file_system(path)
    infos = store.get_file_info([f"{root}/{file.name}" for file in expected_files])
    return tuple(
        file.name
        for file, info in zip(expected_files, infos, strict=True)
        if info.size != file.bytes
    )


def whole_cells(path: str, cadence: Cadence, rows: Mapping[Interval, int]) -> IntervalSet:
    """Give those of some cells whose files hold their rows, and are there, at a table's head.

    A vacuum by another system, or a disk, may have lost files.

    Args:
        path: of the table.
        cadence: of its cells.
        rows: how many each cell has.

    Raises:
        DamagedFileError: a file of several cells, which is read to count them, can't be.
    """
    by_text = {cell_text(cadence, cell): cell for cell in rows}
    files = files_at(path, head(path), by_text) if by_text else ()
    gone = {*missing_files(path, files)}
    held = rows_by_cell(path, (file for file in files if file.name not in gone))
    return IntervalSet.of(cell for text, cell in by_text.items() if held[text] == rows[cell])


def _copy_file(source: str, path: str, here: FileSystem, there: FileSystem) -> None:
    with here.open_input_stream(source) as read, there.open_output_stream(path) as written:
        shutil.copyfileobj(read, written, _AT_ONCE)


_AT_ONCE = 2**22  # bytes in memory


def _write_part(rows: _Rows, there: FileSystem, path: str, cells: Iterable[str]) -> None:
    """Write the rows of some cells of a file as a file of its own, a group of rows at a time.

    Its types, their order and Spark's metadata in the file stay as they are.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    instants = pa.array([datetime.fromisoformat(cell) for cell in cells])
    with _writer(there, path, rows.schema, rows.codec) as part:
        for group in rows.groups():
            cell_column = group[CELL_COLUMN]
            options = compute.SetLookupOptions(instants.cast(cell_column.type))
            chosen = group.filter(compute.call_function("is_in", [cell_column], options))
            if chosen.num_rows:  # a group without rows has neither a least nor a largest cell
                part.write_table(chosen)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of an open file of a table, a group at a time."""

    file: ParquetFile
    root: str
    name: str

    @property
    def schema(self) -> pa.Schema:
        return self.file.schema_arrow

    @property
    def codec(self) -> str:
        codec = self.file.metadata.row_group(0).column(0).compression
        return "NONE" if codec == "UNCOMPRESSED" else codec

    def groups(self) -> Iterator[pa.Table]:
        for number in range(self.file.num_row_groups):
            with _readable(self.root, self.name):
                group = self.file.read_row_group(number)
            yield group


@contextmanager
def _opened(store: FileSystem, root: str, file: NamedFile) -> Iterator[_Rows]:
    from pyarrow import parquet  # noqa: PLC0415

    with store.open_input_file(f"{root}/{file.name}") as opened:
        with _readable(root, file.name):
            parquet_file = parquet.ParquetFile(opened)
        yield _Rows(parquet_file, root, file.name)


@contextmanager
def _readable(root: str, name: str) -> Iterator[None]:
    """Name a file that is not what was written; what a disk or a store says is left as it is.

    Raises:
        DamagedFileError: it can't be read.
    """
    from pyarrow import ArrowInvalid  # noqa: PLC0415

    try:
        yield
    except (ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None) is not None or error_of_ours(error) is not error:
            raise
        found = " ".join(str(error).split()).rstrip(" .")
        raise DamagedFileError(path=root, found=f"{name}: {found}") from error


@contextmanager
def _writer(store: FileSystem, path: str, schema: pa.Schema, codec: str) -> Iterator[ParquetWriter]:
    """Write a file as Spark does: with its types, and its metadata from a file of the same schema."""
    from pyarrow import parquet  # noqa: PLC0415

    with (
        store.open_output_stream(path) as stream,
        parquet.ParquetWriter(
            stream, schema, compression=codec, store_decimal_as_integer=True
        ) as writer,
    ):
        yield writer


def _names(store: FileSystem, root: str, folder: str) -> Iterator[str]:
    infos = folder_entries(store, f"{root}/{folder}", recursive=True)
    for info in sorted(infos, key=lambda info: info.path):
        name = info.path.removeprefix(f"{root}/")
        if info.is_file and name.endswith(_PARQUET) and "=" in name.split("/")[1]:
            yield name


def _described(
    store: FileSystem, root: str, name: str, reach: tuple[str, str] | None = None
) -> CellFile:
    """Describe a file; its first and last cell are read from it unless they are given."""
    with _readable(root, name):
        size, statistics = statistics_of(store, f"{root}/{name}")
    first, last = reach or _reach(name, statistics)
    # Not escaped: readers of the log don't join an escaped pair of surrogates.
    text = json.dumps(statistics, ensure_ascii=False)
    return CellFile(name, first, last, size, statistics["numRecords"], text)


def _reach(name: str, statistics: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """Give the first and last cell of a file that `write_files` or `_write_part` has written."""
    folder = name.split("/")[1]
    if folder.startswith(_PARTITION):
        cell = _cell_of(folder)
        return cell, cell
    least, largest = (
        statistics["minValues"].get(CELL_COLUMN),
        statistics["maxValues"].get(CELL_COLUMN),
    )
    if least is None or largest is None:
        return "", NO_CELL
    return _instant(least), _instant(largest)


def _instant(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))


def _cell_of(folder: str) -> str:
    """Write the cell of a file's folder as the log has it; text that is no date stays as it is."""
    text = unquote(folder.removeprefix(_PARTITION))
    if len(text) <= _DATE:
        return text
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:  # such a row is in no cell of the batch; the audit reports it
        return text
    return instant_text(instant if instant.tzinfo else instant.replace(tzinfo=UTC))


_DATE, _ROWS = len("2024-01-01"), "num_records"
