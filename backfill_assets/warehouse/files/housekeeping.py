"""Write commits that hold no batch: a new table, a fence, a restore, new columns.

Joining a block's files (`compaction`) is such a commit, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.errors import RequestError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import dumps
from backfill_assets.models.column import CELL_COLUMN, quoted, require_storable
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.warehouse.files.cell_files import files_changed, has_blocks
from backfill_assets.warehouse.files.cells import cell_of_text, cell_type
from backfill_assets.warehouse.files.log_entry import kept_log, set_cells, write_entry
from backfill_assets.warehouse.files.stored_columns import column_changes, stored_columns
from backfill_assets.warehouse.files.tables import delta_schema, delta_type
from backfill_assets.warehouse.log.delta_log import (
    ABSENT,
    clear_unborn,
    head,
    logged_commits,
)
from backfill_assets.warehouse.log.object_store import refuse_careless_store
from backfill_assets.warehouse.log.places import local_folder
from backfill_assets.warehouse.log.ticket import (
    COMPACTED,
    CREATED,
    EVOLVED,
    FENCED,
    RESTORED,
    FoundCommit,
    Ticket,
    commit_properties,
)
from backfill_assets.warehouse.spark.session import RETENTION
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalake import CommitProperties, DeltaTable
    from pyspark.sql import SparkSession

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.cell_files import NamedFile


def is_ours(metadata: str | None) -> bool:
    """Whether a commit is one of ours that holds no batch."""
    if not metadata:
        return False
    return keeps_rows(metadata) or metadata.startswith((CREATED, RESTORED, EVOLVED))


def keeps_rows(metadata: str | None) -> bool:
    """Tell whether a commit is one of ours after which every cell holds what it held before."""
    return metadata in {FENCED, COMPACTED}


def created_by(metadata: str | None) -> str | None:
    """Give the stored model that a new table was made for; None for other commits.

    It is what runs again after the state was lost, unless a later definition that kept the table is loaded.
    """
    if not metadata or not metadata.startswith(CREATED):
        return None
    return json.loads(metadata)["definition"]


def restored_to(metadata: str | None) -> int | None:
    """Give the delta_version whose content a restore of ours brought back; None for others."""
    if not metadata or not metadata.startswith(RESTORED):
        return None
    return int(metadata.removeprefix(RESTORED).removesuffix("}"))


def create_table(
    spark: Callable[[], SparkSession], model: Model, path: str, *, app_id: str, token: int
) -> bool:
    """Create a model's empty table, cut by cell or by block, unless it is there.

    Its first entry carries the token, so a writer whose lock was taken over before there was a table
    fails as it would with an old one.

    Args:
        spark: gives a session; asked only where there is no table.
        model: whose columns it gets.
        path: where; files that no log names may lie there.
        app_id: the table's name for transaction ids.
        token: of the commit lock.

    Returns:
        Whether it was created here.

    Raises:
        WarehouseUnwritableError: the place can't be written.
        CarelessStoreError: it is an object store that loses commits.
        CorruptTableError: something damaged lies there.
    """
    from deltalake import DeltaTable, Schema  # noqa: PLC0415 - once a table
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    if head(path) != ABSENT:
        return False
    clear_unborn(path)
    columns = {**stored_columns(model), CELL_COLUMN: cell_type(model.cadence)}
    schema = {"type": "struct", "fields": _fields(spark, columns)}
    cut = {"partition_by": [CELL_COLUMN], "configuration": _KEPT}
    if has_blocks(model.cadence, path):
        cut = {"partition_by": [], "configuration": {**_KEPT, **_ALL_STATISTICS}}
    created = Ticket(path, app_id, token, f"{CREATED}{json.dumps(dumps(model))}}}")
    with explaining_errors(path):
        if local_folder(path) is None:
            refuse_careless_store(path)
        try:
            DeltaTable.create(
                path,
                Schema.from_json(json.dumps(schema)),
                **cut,
                commit_properties=commit_properties(created, created.transactions[0]),
            )
        except DeltaError:
            if head(path) == ABSENT:
                raise
            return False
    return True


_KEPT = {
    f"delta.{name}": value
    for name, value in {
        "enableExpiredLogCleanup": "false",
        "checkpointInterval": "10",
        **RETENTION,
    }.items()
}
_ALL_STATISTICS = {"delta.dataSkippingNumIndexedCols": "-1"}
"""Else a wide table has no statistics of its last column, `_cell`."""


def _fields(spark: Callable[[], SparkSession], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Give columns in Delta's own words; all of them may be NULL.

    Raises:
        DeclarationError: Delta can't hold one of their names.
    """
    fields = _described(spark, columns)
    require_storable(_names(fields))
    return fields


def _names(dtype: Any) -> Iterator[str]:  # noqa: ANN401 - Delta's JSON: a name, an object, a list
    """Name every field in a type, nested ones too."""
    if isinstance(dtype, list):
        for field in cast("list[Any]", dtype):
            yield field["name"]
            yield from _names(field["type"])
    elif isinstance(dtype, dict):
        for part in ("fields", "elementType", "keyType", "valueType"):
            yield from _names(cast("dict[str, Any]", dtype).get(part))


def _described(
    spark: Callable[[], SparkSession], columns: Mapping[str, str]
) -> list[dict[str, Any]]:
    delta_types = {name: delta_type(dtype) for name, dtype in columns.items()}
    if None not in delta_types.values():
        return [
            {"name": name, "type": dtype, "nullable": True, "metadata": {}}
            for name, dtype in delta_types.items()
        ]
    listed = ", ".join(f"{quoted(name)} {dtype}" for name, dtype in columns.items())
    return json.loads(spark().createDataFrame([], listed).schema.json())["fields"]


def fence(path: str, *, app_id: str, token: int) -> FoundCommit:
    """Commit an empty entry with a new token: writers with smaller tokens fail from now on.

    Raises:
        CommitLostError: another writer has taken the table over with a larger token yet.
    """
    return set_cells((), (), lambda _: None, Ticket(path, app_id, token, FENCED))


def restore(path: str, to_version: int, *, app_id: str, token: int) -> FoundCommit:
    """Restore a table: its files, its columns and its properties.

    Args:
        path: of the table.
        to_version: the delta_version whose content comes back.
        app_id: the table's name for transaction ids.
        token: of the commit lock.

    Raises:
        CommitLostError: another writer has taken the table over.
        PinGoneError: that version can't be read any more.
    """

    def restore_files(table: DeltaTable, properties: CommitProperties) -> None:
        table.restore(
            to_version, commit_properties=properties, post_commithook_properties=kept_log()
        )

    return write_entry(Ticket(path, app_id, token, f"{RESTORED}{to_version}}}"), restore_files)


def evolve_table(
    spark: Callable[[], SparkSession], model: Model, path: str, *, app_id: str, token: int
) -> FoundCommit | None:
    """Give a table the columns that its model declares and it lacks, in a fenced commit.

    Existing rows hold NULL in them. If no column is missing, nothing is written. A column
    that the model does not declare any more stays in the table: readers don't see it, and the
    snapshot that knew it can still be rolled back to.

    Raises:
        RequestError: a column has another type.
        CommitLostError: another writer has taken the table over.
    """
    from deltalake import Field  # noqa: PLC0415 - only where a column is added

    added = lacking_columns(model, path)
    if not added:
        return None
    fields = [Field.from_json(json.dumps(field)) for field in _fields(spark, added)]

    def add(table: DeltaTable, properties: CommitProperties) -> None:
        table.alter.add_columns(
            fields, commit_properties=properties, post_commithook_properties=kept_log()
        )

    return write_entry(Ticket(path, app_id, token, f"{EVOLVED}{json.dumps(added)}}}"), add)


def lacking_columns(model: Model, path: str) -> Mapping[str, str]:
    """Name the columns that a model declares and its table lacks, with their types; nothing is written.

    Raises:
        RequestError: the table has a column of another type, which a definition may have left that was taken back.
        CorruptTableError: its log is damaged.
    """
    changes = column_changes(stored_columns(model), dict(delta_schema(path, head(path))))
    if changes.retyped:
        raise RequestError(
            found=f"'{model.name}' can't go on in its table at {path}: it changes the type of "
            f"{', '.join(changes.retyped)}. A table that history was written to only gains columns",
            do="Keep the column, or plan the change as breaking, which gives it a table of its own",
        )
    return changes.added


def cells_touched(cadence: Cadence, path: str, delta_version: int) -> IntervalSet:
    """Give the cells whose rows may have been added or removed since a version.

    These are the cells of files that were added or removed, restricted to the cells in the commits'
    own metadata. Commits of other writers, and restores, have no such metadata: their files decide.
    """
    reached = IntervalSet.of(reach(cadence, file) for file in files_changed(path, delta_version))
    named = IntervalSet.empty()
    for commit in logged_commits(path, delta_version):
        if not commit.changes_data:
            continue
        batch = BatchCommit.from_json(commit.metadata)
        if batch is None:
            return reached
        named |= IntervalSet.of(cell.cell for cell in batch.cells) | batch.emptied
    return reached & named


def reach(cadence: Cadence, file: NamedFile) -> Interval:
    """Give the span of the cells that a file may hold rows of: every cell where the log has no span."""
    try:
        first, last = cell_of_text(cadence, file.first), cell_of_text(cadence, file.last)
    except ValueError:
        return WHOLE_CELL
    return Interval(first.start, last.end)
