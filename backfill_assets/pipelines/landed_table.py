"""Write a source's sample data once as a Delta table, and recognise it by its label.

The label names the origin of the rows (how many, which seed). It is in the commit's `userMetadata`, so
landing the same data again does nothing, whatever else has been committed to the table since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.models.source import Source

_LABEL = "landing"


class ForeignTableError(BackfillAssetsError):
    """Where a source should be landed lies a table that was not landed by us."""

    def __init__(self, *, source: str, path: str) -> None:
        self.source, self.path = source, path
        super().__init__(
            f"the table of '{source}' at {path} was not written by a landing of this project; "
            "expected no table, or one of ours, so nothing was overwritten: move that table away, "
            "or choose another data folder"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedTable:
    """Sample data of one source.

    Attributes:
        source: whose table it is.
        label: names the origin of the rows; another label replaces the table.
        rows: makes the rows.
        partition_by: the columns that the table is partitioned by.
    """

    source: Source
    label: str
    rows: Callable[[SparkSession], DataFrame]
    partition_by: tuple[str, ...] = ()

    def __call__(self, spark: SparkSession, data_root: str | Path) -> bool:
        """Land the source below `data_root`, unless it is landed already.

        Returns:
            Whether anything was written.

        Raises:
            ForeignTableError: another table lies there.
        """
        path = table_path(self.source, data_root)
        label = _label_found(self.source.name, path, _commits(path))
        if label == self.label:
            return False
        (
            self.rows(spark)
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .option("userMetadata", json.dumps({_LABEL: self.source.name, "label": self.label}))
            .option("delta.enableExpiredLogCleanup", "false")  # old pins, and the label, are kept
            .partitionBy(*self.partition_by)
            .save(path)
        )
        return True

    def is_landed(self, data_root: str | Path) -> bool:
        """Whether the table is landed already, without Spark."""
        path = table_path(self.source, data_root)
        return _label_found(self.source.name, path, _commits(path)) == self.label


def table_path(source: Source, data_root: str | Path) -> str:
    """Give where a source's table lies: its own URI or absolute path, or below the data folder."""
    if "://" in source.path or Path(source.path).is_absolute():
        return source.path
    return f"{str(data_root).rstrip('/')}/{source.path}"


def _commits(path: str) -> Iterable[Mapping[str, Any]]:
    """The table's commits, newest first; none without a table."""
    try:
        return DeltaTable(path).history()
    except TableNotFoundError:
        return ()


def _label_found(source: str, path: str, commits: Iterable[Mapping[str, Any]]) -> str | None:
    """The label of the newest landing; None without a table."""
    commits = list(commits)
    for commit in commits:
        metadata = _metadata(commit)
        if metadata.get(_LABEL) == source:
            return str(metadata["label"])
    if commits:
        raise ForeignTableError(source=source, path=path)
    return None


def _metadata(commit: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        metadata = json.loads(commit.get("userMetadata") or "{}")
    except json.JSONDecodeError:
        return {}
    return metadata if isinstance(metadata, dict) else {}
