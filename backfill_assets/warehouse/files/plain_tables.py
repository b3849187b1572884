"""Plain tables: Delta tables whose rows at a pin are the rows of the files that their log names, and no others.

Spark reads these files by their names. Delta's own reader computes a table's state in the JVM, and asks it anew
for each query: about two seconds of a cold Spark's first batch (ADR 18). Whatever needs more than
files is left to Delta: deletion vectors, mapped columns, columns with defaults, and object stores, in which
Spark would ask for each file by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from backfill_assets.models.column import quoted
from backfill_assets.warehouse.files.file_spans import entries_of
from backfill_assets.warehouse.log.delta_log import delta_json_schema
from backfill_assets.warehouse.log.places import lies_elsewhere, local_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_FEATURES = frozenset({"timestampNtz"})
"""Features that a reader of Delta must know, and that any reader of Parquet has."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
_IN_FOLDERS = frozenset({"date", "integer", "long", "short", "string"})
"""Types whose values a folder's name says as Python writes them."""
_PATTERN = frozenset("{}[]*?\\")
"""What Spark takes for a pattern in the name of a file."""
_HIDDEN = ("_", ".")
_OF_FILE = "_metadata"
_MOST = 10_000
"""At most so many files are named to Spark in one query."""


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table at a pin, as its log describes it.

    Attributes:
        path: of a local folder.
        log: its log, at the pin.
        fields: its columns, as Delta and Spark describe them in JSON.
        partitioned_by: the columns by which it is partitioned; their values are not in the files.
    """

    path: str
    log: DeltaTable
    fields: tuple[Mapping[str, Any], ...]
    partitioned_by: tuple[str, ...]

    def entries(self, columns: Iterable[str]) -> list[dict[str, Any]]:
        """Give the log's entry on each file, flattened: its name, its partition, and these columns if there."""
        partition = [f"partition.{name}" for name in self.partitioned_by]
        listed = entries_of(self.log, {"path", *partition, *columns})
        return [{**entry, "path": unquote(entry["path"])} for entry in listed]

    def has_folders(self, entry: Mapping[str, Any]) -> bool:
        """Whether a file's folders are exactly `column=value` of its partition in the log, as Spark reads them."""
        types = {field["name"]: field["type"] for field in self.fields}
        expected_folders = [
            f"{name}={_in_folder(entry[f'partition.{name}'])}" for name in self.partitioned_by
        ]
        are_spelled = all(types[name] in _IN_FOLDERS for name in self.partitioned_by)
        folders = entry["path"].split("/")[:-1]
        # Spark takes `%41` in the name of a folder for the letter A.
        return not expected_folders or (
            are_spelled and folders == expected_folders and "%" not in "".join(folders)
        )

    def rows(self, spark: SparkSession, names: Sequence[str]) -> DataFrame:
        """Read what files hold: every column but those that stand in the names of folders.

        Args:
            spark: a session.
            names: of the files below the table.
        """
        fields = [field for field in self.fields if field["name"] not in self.partitioned_by]
        return self._read(spark, names, fields, recursiveFileLookup="true")

    def rows_in_folders(self, spark: SparkSession, names: Sequence[str]) -> DataFrame:
        """Read every column of files for which `has_folders` holds."""
        if not self.partitioned_by:
            return self.rows(spark, names)
        rows = self._read(spark, names, self.fields, basePath=self.path)
        # Spark puts the columns of folders last.
        return rows.select(*(quoted(field["name"]) for field in self.fields))

    def _read(
        self,
        spark: SparkSession,
        names: Sequence[str],
        fields: Sequence[Mapping[str, Any]],
        **options: str,
    ) -> DataFrame:
        from pyspark.sql.types import StructType  # noqa: PLC0415 - planning has no Spark

        schema = StructType.fromJson({"type": "struct", "fields": [*fields]})
        if not names:
            return spark.createDataFrame([], schema)
        paths = [f"{self.path.rstrip('/')}/{name}" for name in names]
        return spark.read.schema(schema).options(**options).parquet(*paths)


def plain_table(path: str, delta_version: int) -> PlainTable | None:
    """Describe a table; None for one that is left to Delta, which also tells what is wrong with its log."""
    from deltalake import DeltaTable  # noqa: PLC0415 - only readers of a table need it
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    if local_folder(path) is None or _PATTERN & {*path}:
        return None
    try:
        log = DeltaTable(path, version=delta_version)
        protocol, fields = log.protocol(), delta_json_schema(log)
        partitioned_by = tuple(log.metadata().partition_columns)
    except DeltaError:
        return None
    plain = protocol.min_reader_version == 1 or _FEATURES.issuperset(
        protocol.reader_features or [""]
    )
    # Metadata of a column but a comment changes how it is read: its name in files, its padding, its default.
    # A column of this name hides Spark's own, which says what file a row is read from.
    if not plain or any(
        {*field["metadata"]} - {"comment"} or field["name"].lower() == _OF_FILE for field in fields
    ):
        return None
    return PlainTable(path, log, tuple(fields), partitioned_by)


def can_be_named(names: Sequence[str]) -> bool:
    """Whether Spark reads files by these names, below a table, as they are."""
    return len(names) <= _MOST and not any(
        lies_elsewhere(name) or _PATTERN & {*name} or name.rpartition("/")[2].startswith(_HIDDEN)
        for name in names
    )


def _in_folder(value: object) -> str:
    return _NULL if value in (None, "") else str(value)
