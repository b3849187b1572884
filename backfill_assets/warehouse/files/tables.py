"""Tables: a Delta table at a path, read at one delta_version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.text import first_of
from backfill_assets.models.column import canonical_type, quoted
from backfill_assets.warehouse.files.plain_tables import can_be_named, plain_table
from backfill_assets.warehouse.log.delta_log import (
    ABSENT,
    LOG_FOLDER,
    delta_json_schema,
    head,
    opened_log,
)
from backfill_assets.warehouse.log.places import file_system, folder_entries
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.warehouse.files.file_spans import CellsRead

_SIMPLE = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_PLAIN = {"string", "boolean", "float", "double", "binary", "date", "timestamp", "timestamp_ntz"}
_DECIMAL = r"decimal\(\d+,\d+\)"
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class MissingTableError(BackfillAssetsError):
    """There is no table at a declared path."""

    def __init__(self, *, name: str, path: str) -> None:
        self.name, self.path = name, path
        super().__init__(
            f"'{name}' has no Delta table at {path}; land it first, or correct its path"
        )


class TablesWithoutStateError(BackfillAssetsError):
    """There is no state, but there are tables that one has written."""

    def __init__(self, state: str, data_root: str, tables: list[str]) -> None:
        self.state, self.data_root, self.tables = state, data_root, tables
        super().__init__(
            f"there is no state at {state}, but {data_root} holds tables that a state has written: "
            f"{first_of(tables, 1)}; expected the state that belongs to them. Correct BACKFILL_STATE_URL "
            "or BACKFILL_DATA_DIR; if that state is lost, restore its backup, or run `backfill state "
            "rebuild`. Nothing was written"
        )


class TablesNotListedError(BackfillAssetsError):
    """Which tables a state has written can't be seen."""

    def __init__(self, data_root: str, reason: str) -> None:
        self.data_root = data_root
        super().__init__(
            f"the tables below {data_root} can't be listed: {reason}; expected a place that can be read. "
            "Correct BACKFILL_DATA_DIR, or the access to it. Nothing was written"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """One table to read: a Delta table at one version, possibly over others.

    Attributes:
        path: a local folder or a URI.
        delta_version: Delta's own number; `ABSENT` for a table without a commit.
        cells: which cells' rows come from it; None for every cell that no table above it answers for.
        under: the tables that answer for other cells, the upper first; a cell that two of them
            name comes from the upper one.
    """

    path: str
    delta_version: int
    cells: IntervalSet | None = None
    under: tuple[Table, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        return self.delta_version > ABSENT or any(layer.exists for layer in self.under)


def table_now(path: str) -> Table:
    """Give a table at its head.

    Raises:
        CorruptTableError: the log is damaged.
    """
    return Table(path, head(path))


def refuse_tables_without_state(state: str, data_root: str) -> None:
    """Refuse to work without a state where a state has written tables already.

    Args:
        state: where the state would lie.
        data_root: folder or URI under which tables lie.

    Raises:
        TablesWithoutStateError: there are tables of one.
        TablesNotListedError: that can't be seen.
    """
    tables = written_tables(data_root)
    if tables:
        named = ["/".join(path.split("/")[-2:]) for path in tables.values()]
        raise TablesWithoutStateError(state, data_root, named)


def written_tables(data_root: str) -> dict[str, str]:
    """Give the path of each table below a data root that a state has written, by version.

    They lie at ``tables/<subject>/<version>``, and have a log; a version begins with its subject, so a source
    that others have landed there is none of them.

    Raises:
        TablesNotListedError: the folder can't be read, or the store does not answer.
    """
    files, root = file_system(data_root)
    try:
        tables = _with_a_log(files, root)
    except OSError as error:
        raise TablesNotListedError(data_root, str(error)) from error
    place = data_root.rstrip("/")
    return {path.rpartition("/")[2]: f"{place}{path.removeprefix(root)}" for path in tables}


def _with_a_log(files: FileSystem, root: str) -> list[str]:
    from pyarrow.fs import FileType  # noqa: PLC0415 - slow to import

    tables = sorted(
        table.path
        for subject in folder_entries(files, f"{root}/tables")
        if subject.type is FileType.Directory
        for table in folder_entries(files, subject.path)
        if table.base_name.startswith(subject.base_name) and "__" in table.base_name
    )
    logs = files.get_file_info([f"{table}/{LOG_FOLDER}" for table in tables])
    return [
        table for table, log in zip(tables, logs, strict=True) if log.type is FileType.Directory
    ]


def snapshot_df(
    spark: SparkSession, path: str, delta_version: int, read: CellsRead | None = None
) -> DataFrame:
    """Read a table of any writer as it was at one delta_version.

    Args:
        spark: a session.
        path: of the table.
        delta_version: at which it is read.
        read: the cells whose rows are needed, so that others need not be read; None for every row.

    Raises:
        PinGoneError: that version can't be read any more.
        CorruptTableError: the log is damaged.
    """
    plain = plain_table(path, delta_version)
    if plain is None:
        return delta_rows(spark, path, delta_version)
    entries = plain.entries(read.statistics if read else ())
    files = [entry for entry in entries if read is None or read.may_hold(entry)]
    names = [str(entry["path"]) for entry in files]
    if not can_be_named(names) or not all(map(plain.has_folders, files)):
        return delta_rows(spark, path, delta_version)
    with explaining_errors(path):
        return plain.rows_in_folders(spark, names)


def delta_rows(spark: SparkSession, path: str, delta_version: int) -> DataFrame:
    """Let Delta read a table as it was at one delta_version.

    Raises:
        PinGoneError: that version can't be read any more.
        CorruptTableError: the log is damaged.
    """
    with explaining_errors(path):
        frame = spark.read.format("delta").option("versionAsOf", delta_version).load(path)
        _ = frame.schema  # analysed here, so that a broken table is named here
        return frame


def delta_schema(path: str, delta_version: int) -> tuple[tuple[str, str], ...]:
    """Read (column, Spark type) of a table without Spark.

    Raises:
        CorruptTableError: the log is damaged.
    """
    return columns_in(opened_log(path, delta_version))


def columns_in(log: DeltaTable) -> tuple[tuple[str, str], ...]:
    """Read (column, Spark type) of a table whose log is open."""
    return tuple((field["name"], sql_type(field["type"])) for field in delta_json_schema(log))


def delta_type(dtype: str) -> str | None:
    """Give Delta's name of a Spark type; None for a nested or an unknown type."""
    plain = canonical_type(dtype)
    words = {short: long for long, short in _SIMPLE.items()}
    if plain in words:
        return words[plain]
    return plain if plain in _PLAIN or re.fullmatch(_DECIMAL, plain) else None


def same_type(dtype: str, other: str) -> bool:
    """Compare two Spark type strings, whatever their spelling."""
    return canonical_type(dtype) == canonical_type(other)


def type_of(dtype: DataType) -> str:
    """Write a type of Spark's as its SQL takes it: it does not quote the names of fields itself."""
    simple = dtype.simpleString()
    return sql_type(dtype.jsonValue()) if "struct<" in simple else simple


def sql_type(dtype: Any) -> str:  # noqa: ANN401 - Delta's JSON: a name, or a nested object
    """Write a type as Spark SQL takes it.

    Args:
        dtype: as Delta and Spark describe it in JSON.
    """
    if isinstance(dtype, str):
        return _SIMPLE.get(dtype, dtype)
    match dtype["type"]:
        case "array":
            return f"array<{sql_type(dtype['elementType'])}>"
        case "map":
            return f"map<{sql_type(dtype['keyType'])},{sql_type(dtype['valueType'])}>"
        case _:
            fields = (
                f"{_field_name(field['name'])}:{sql_type(field['type'])}"
                for field in dtype["fields"]
            )
            return f"struct<{','.join(fields)}>"


def _field_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)
