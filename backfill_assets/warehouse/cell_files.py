"""The files of cells: a cell of a table is a list of immutable Parquet files, and nothing else.

They are written into a folder of their own below the table, before any log names them. What no log
ever names is garbage: it is taken away by who wrote it, or by `backfill gc`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING
from urllib.parse import unquote

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import instant_text
from backfill_assets.warehouse.delta_log import CorruptTableError, local_folder
from backfill_assets.warehouse.file_statistics import statistics_of
from backfill_assets.warehouse.spark_errors import PinGoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval

_PARQUET = ".parquet"
_FOLDER = re.compile("b-[0-9a-f]{32}/")
ANY_FOLDER = "b-*"
_PARTITION = f"{CELL_COLUMN}="
# A task's files become visible together, when the task is committed, so a task that was tried twice
# leaves its files once; and no marker is left beside them.
_COMMITTER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
FOLDERS = {"timeZone": "UTC"}
"""How Spark writes and reads the cells of hours in names of folders, whatever its session's zone."""


class MislaidRowsError(BackfillAssetsError):
    """The files of a cell do not hold the rows that were audited of it."""

    def __init__(self, *, path: str, cell: str, audited: int, found: int) -> None:
        self.path, self.cell, self.audited, self.found = path, cell, audited, found
        super().__init__(
            f"{audited} rows of the cell {cell} of {path} were audited, and the files that were written "
            f"for it hold {found}. Nothing was committed. This is a defect: report it with the model's "
            "cadence and the settings of Spark"
        )


class UnseenFilesError(BackfillAssetsError):
    """Files that Spark has written are not where this process looks for them."""

    def __init__(self, *, path: str, written: int, found: int) -> None:
        self.path, self.written, self.found = path, written, found
        super().__init__(
            f"Spark has written {written} rows for {path}, and the files that this process sees there "
            f"hold {found}. Nothing was committed. Spark's executors and this process must share the "
            "folder, or the object store; if they do, run again"
        )


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A data file that a version of a table names, whether it is still there or not.

    Attributes:
        name: its path below the table.
        cell: the cell, as `cells.cell_text` writes it.
        bytes: its size.
        rows: how many it holds; None where the log does not say.
    """

    name: str
    cell: str
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class CellFile(NamedFile):
    """A data file that is there, and how a log names it.

    Attributes:
        rows: how many it holds.
        statistics: what Delta's log says of its rows, as JSON.
    """

    rows: int
    statistics: str


def rows_by_cell(files: Iterable[NamedFile]) -> Counter[str]:
    """Count the rows of each cell by what is said of its files."""
    rows = Counter[str]()
    for one in files:
        rows[one.cell] += one.rows or 0
    return rows


def new_folder() -> str:
    """Name a folder that no other batch has or had, whatever a restored state believes of its ids."""
    return f"b-{token_hex(16)}"


def is_written(name: str) -> bool:
    """Whether a file lies in a folder that `new_folder` has named."""
    return bool(_FOLDER.match(name))


def write_files(
    rows: DataFrame, cells: Sequence[Interval], path: str, folder: str
) -> tuple[CellFile, ...]:
    """Write rows as files of a table's cells, into a new folder below it that no log names.

    Args:
        rows: with `_cell`; rows of other cells are written like any.
        cells: how many the rows are of says how they are brought together.
        path: of the table, which need not be there yet.
        folder: its name.

    Returns:
        The files, described as they are seen from here.

    Raises:
        UnseenFilesError: not all that Spark has written is there.
    """
    from pyspark.sql import Observation, functions as F  # noqa: PLC0415 - who looks does not write

    counted = Observation()
    seen = _by_cell(rows, cells).observe(counted, F.count(F.lit(1)).alias("rows"))
    writer = seen.write.partitionBy(CELL_COLUMN).options(**_COMMITTER, **FOLDERS)
    writer.parquet(f"{path.rstrip('/')}/{folder}")
    files = files_in(path, folder)
    found, written = sum(one.rows for one in files), counted.get["rows"]
    if found != written:
        raise UnseenFilesError(path=path, written=written, found=found)
    return files


def files_in(path: str, folder: str) -> tuple[CellFile, ...]:
    """Describe the files of a folder that `write_files` has named."""
    store, root = _store(path)
    return tuple(
        _described(store, root, name, _cell_of(name)) for name in _names(store, root, folder)
    )


def files_of(table: DeltaTable, cells: Iterable[str] | None = None) -> tuple[NamedFile, ...]:
    """Name the files that some cells (all, unless named) of a version of a table consist of."""
    import pyarrow as pa  # noqa: PLC0415 - only who reads a table pays for it
    from pyarrow import compute  # noqa: PLC0415

    actions, held = table.get_add_actions(flatten=True), f"partition.{CELL_COLUMN}"
    told = [_ROWS] if _ROWS in actions.schema.names else []
    listed = actions.select(["path", "size_bytes", held, *told])
    found = pa.RecordBatchReader.from_stream(listed).read_all()
    # Thousands of files are told apart here, and only those that are asked for become Python's. Rows
    # of a stranger may have a cell that Python has no date for, or none.
    values = found.column(held)
    written = "%Y-%m-%d" if pa.types.is_date(values.type) else "%Y-%m-%dT%H:%M:%SZ"
    texts = compute.call_function("strftime", [values], compute.StrftimeOptions(written))
    texts = compute.fill_null(texts, _NO_CELL)
    found = found.set_column(2, "cell", texts)
    if cells is not None:
        asked = compute.SetLookupOptions(pa.array([*cells], pa.string()))
        found = found.filter(compute.call_function("is_in", [texts], asked))
    return tuple(
        NamedFile(unquote(one["path"]), one["cell"], one["size_bytes"], one.get(_ROWS))
        for one in found.to_pylist()
    )


def partition_values(cell: str) -> dict[str, str | None]:
    """Say which cell a file is of, as Delta's log has it."""
    return {CELL_COLUMN: None if cell == _NO_CELL else cell}


def files_at(
    path: str, delta_version: int, cells: Iterable[str] | None = None
) -> tuple[NamedFile, ...]:
    """Name the files that some cells (all, unless named) of a table consist of at a delta_version.

    Raises:
        CorruptTableError: the log is damaged, or does not reach so far.
    """
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        return files_of(DeltaTable(path, version=delta_version), cells)
    except DeltaError as error:
        raise CorruptTableError(path=path, found=str(error)) from error


def described(path: str, files: Iterable[NamedFile]) -> tuple[CellFile, ...]:
    """Read again what the log shall say of files that a version of the table has named before.

    Raises:
        PinGoneError: one of them is not there any more.
    """
    store, root = _store(path)
    try:
        return tuple(_described(store, root, one.name, one.cell) for one in files)
    except FileNotFoundError as error:
        raise PinGoneError(path=path, found=str(error)) from error


def copy_files(
    source: str, files: Iterable[NamedFile], path: str, folder: str
) -> tuple[CellFile, ...]:
    """Copy files of one table byte for byte into a new folder below another.

    Raises:
        PinGoneError: one of them is not there any more.
    """
    (here, from_), (there, to) = _store(source), _store(path)
    named = [
        (one, f"{folder}/{_PARTITION}{one.cell[:_DATE]}/{number:05d}-{one.name.rsplit('/', 1)[-1]}")
        for number, one in enumerate(files)
    ]
    try:
        for one, name in named:
            there.create_dir(f"{to}/{name.rsplit('/', 1)[0]}", recursive=True)
            _copy_file(f"{from_}/{one.name}", f"{to}/{name}", here, there)
    except FileNotFoundError as error:
        raise PinGoneError(path=source, found=str(error)) from error
    return tuple(_described(there, to, name, one.cell) for one, name in named)


def remove_folder(path: str, folder: str) -> None:
    """Take away a folder of files that no log names; what can't be taken away now, `gc` takes."""
    local = local_folder(path)
    with suppress(OSError):
        if local is None:
            store, root = _store(path)
            store.delete_dir_contents(f"{root}/{folder}", missing_dir_ok=True)
            return
        shutil.rmtree(local / folder, ignore_errors=True)
        local.rmdir()  # unless a table, or another batch's files, lie there


def missing(path: str, files: Iterable[NamedFile]) -> tuple[str, ...]:
    """Name those of these files that are not there, or not as large as they were."""
    wanted = [*files]
    if not wanted:
        return ()
    store, root = _store(path)
    infos = store.get_file_info([f"{root}/{one.name}" for one in wanted])
    return tuple(
        one.name for one, info in zip(wanted, infos, strict=True) if info.size != one.bytes
    )


def _by_cell(rows: DataFrame, cells: Sequence[Interval]) -> DataFrame:
    """Bring the rows of each cell together, so that a cell is one file; a large one is split."""
    if len(cells) == 1:
        return rows.hint("rebalance")
    return rows.repartition(CELL_COLUMN)


def _copy_file(source: str, path: str, here: FileSystem, there: FileSystem) -> None:
    with here.open_input_stream(source) as read, there.open_output_stream(path) as written:
        shutil.copyfileobj(read, written, _AT_ONCE)


_AT_ONCE = 2**22  # bytes in memory


def _store(path: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import FileSystem, LocalFileSystem  # noqa: PLC0415

    local = local_folder(path)
    if local is not None:
        return LocalFileSystem(), str(local.absolute())
    return FileSystem.from_uri(path.rstrip("/"))


def _names(store: FileSystem, root: str, folder: str) -> Iterator[str]:
    from pyarrow.fs import FileSelector  # noqa: PLC0415

    selector = FileSelector(f"{root}/{folder}", recursive=True, allow_not_found=True)
    for one in sorted(store.get_file_info(selector), key=lambda info: info.path):
        name = one.path.removeprefix(f"{root}/")
        if one.is_file and name.endswith(_PARQUET) and name.split("/")[1].startswith(_PARTITION):
            yield name


def _described(store: FileSystem, root: str, name: str, cell: str) -> CellFile:
    size, said = statistics_of(store, f"{root}/{name}")
    # As it is: readers of the log don't put an escaped pair of surrogates together again.
    return CellFile(name, cell, size, said["numRecords"], json.dumps(said, ensure_ascii=False))


def _cell_of(name: str) -> str:
    """Write the cell of a file's folder as the log has it; one that no date is stays as it is."""
    text = unquote(name.split("/")[1].removeprefix(_PARTITION))
    if len(text) <= _DATE:
        return text
    try:
        known = datetime.fromisoformat(text)
    except ValueError:  # such a row is of no cell of the batch, which the audit says
        return text
    return instant_text(known if known.tzinfo else known.replace(tzinfo=UTC))


_DATE, _ROWS = len("2024-01-01"), "num_records"
_NO_CELL = "__HIVE_DEFAULT_PARTITION__"
