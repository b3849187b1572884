"""Ready records as the state keeps them: a fact per cell, valid over a span of delta_versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import ChangedAt, Content, changed_at
from backfill_assets.snapshots.ready import ReadyRecord
from backfill_assets.state.cells import bounds, cell_of, reached
from backfill_assets.state.rows import insert_all, values_of
from backfill_assets.state.tables import READY_RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.batch import BatchCommit

_RECORDS = READY_RECORDS.c
_CELL = (_RECORDS.starts, _RECORDS.ends)


def valid_at(at: int | sa.BindParameter[int] | None) -> sa.ColumnElement[bool]:
    """Select the records that are valid at a delta_version; None is the latest."""
    if at is None:
        return _RECORDS.valid_to.is_(None)
    still = sa.or_(_RECORDS.valid_to.is_(None), _RECORDS.valid_to > at)
    return sa.and_(_RECORDS.valid_from <= at, still)


def ready_records(connection: sa.Connection, version: str, at: int | None) -> list[ReadyRecord]:
    """Read the records of a version that are valid at a delta_version, by cell."""
    return [_record(row) for row in _rows(connection, version, at, None, READY_RECORDS)]


def ready_cells(
    connection: sa.Connection, version: str, at: int, within: IntervalSet | None = None
) -> IntervalSet:
    """Read which of these cells are ready at a delta_version; without any, read which are."""
    rows = _rows(connection, version, at, within, *_CELL)
    cells = IntervalSet.of_pairs((row.starts, row.ends) for row in rows)
    return cells if within is None else cells & within


def contents(
    connection: sa.Connection, version: str, at: int | None, within: IntervalSet
) -> dict[Interval, Content]:
    """Read what the ready cells hold at a delta_version; None is the latest."""
    rows = _rows(connection, version, at, within, *_CELL, _RECORDS.content)
    return {cell_of(row): row.content for row in rows if within.covers(row.starts, row.ends)}


def stamps(
    connection: sa.Connection, version: str, at: int | None, within: IntervalSet
) -> list[tuple[tuple[int, int], ChangedAt]]:
    """Read the bounds and stamps of ready cells at a delta_version; None is the latest.

    Nothing of their contents is read, so it is fast where many cells changed at once.
    """
    rows = _rows(connection, version, at, within, *_CELL, _RECORDS.changed_at)
    return [
        ((row.starts, row.ends), row.changed_at)
        for row in rows
        if within.covers(row.starts, row.ends)
    ]


def records_within(
    connection: sa.Connection, version: str, at: int | None, within: IntervalSet
) -> dict[Interval, ReadyRecord]:
    """Read the records of these cells that are valid at a delta_version; None is the latest."""
    rows = _rows(connection, version, at, within, READY_RECORDS)
    return {cell_of(row): _record(row) for row in rows if within.covers(row.starts, row.ends)}


def records_ever(connection: sa.Connection, version: str) -> list[ReadyRecord]:
    """Read every record of a version, replaced ones too; none of a version that was collected."""
    query = sa.select(READY_RECORDS).where(_RECORDS.version == version)
    return [_record(row) for row in connection.execute(query)]


def current_cells(connection: sa.Connection, version: str, within: IntervalSet) -> list[Interval]:
    """Name those of these cells whose record has not been replaced yet."""
    rows = _rows(connection, version, None, within, *_CELL)
    return [cell_of(row) for row in rows if within.covers(row.starts, row.ends)]


def _rows(
    connection: sa.Connection,
    version: str,
    at: int | None,
    within: IntervalSet | None,
    *columns: sa.Table | sa.Column[Any],
) -> Sequence[sa.Row[Any]]:
    """Read columns of the records that are valid at a delta_version, by cell.

    Given cells, those that lie between the first and the last of them.
    """
    if within is not None and not within:
        return []
    query = sa.select(*columns).where(_RECORDS.version == version, valid_at(at))
    if within is not None:
        query = query.where(reached(READY_RECORDS, within))
    return connection.execute(query.order_by(_RECORDS.starts)).all()


def is_recorded(connection: sa.Connection, commit: BatchCommit, delta_version: int) -> bool:
    """Whether this very commit has its records already."""
    query = sa.select(_RECORDS.starts).where(
        _RECORDS.version == commit.version,
        _RECORDS.valid_from == delta_version,
        _RECORDS.batch_id == commit.batch_id,
    )
    return connection.execute(query.limit(1)).first() is not None


def replace_records(
    connection: sa.Connection,
    commit: BatchCommit,
    delta_version: int,
    now: int,
    under: Mapping[Interval, ReadyRecord],
) -> None:
    """Close the records of a commit's cells and open new ones, stamped where content changed.

    Args:
        connection: to the state.
        commit: what was committed.
        delta_version: Delta's number of it.
        now: the counter.
        under: what a table under the commit's own held in these cells, for those it did not.
    """
    cells = IntervalSet.of(each.cell for each in commit.cells)
    before = records_within(connection, commit.version, None, cells)
    after = _successors(commit, {**under, **before}, now)
    closed = [each.cell for each in after if each.cell in before]
    gone = current_cells(connection, commit.version, commit.emptied)
    close_records(connection, commit.version, [*closed, *gone], delta_version)
    open_records(connection, after, delta_version)


def close_records(
    connection: sa.Connection, version: str, cells: Iterable[Interval], delta_version: int
) -> None:
    """End the current records of cells with the commit that replaced them, or took them away."""
    closed = sa.update(READY_RECORDS).where(
        _RECORDS.version == version,
        _RECORDS.valid_to.is_(None),
        _RECORDS.starts == sa.bindparam("cell"),
    )
    replaced = [{"cell": bounds(cell)["starts"]} for cell in cells]
    if replaced:
        connection.execute(closed.values(valid_to=delta_version), replaced)


def open_records(
    connection: sa.Connection, opened: Iterable[ReadyRecord], delta_version: int
) -> None:
    """Write records that are valid from a commit on."""
    current = {"valid_from": delta_version, "valid_to": None}
    rows = [{**values_of(each, without="cell"), **bounds(each.cell), **current} for each in opened]
    insert_all(connection, READY_RECORDS, rows)


def restamp(connection: sa.Connection, restamped: Iterable[ReadyRecord]) -> None:
    """Write other stamps into records that are there: `built_at` and `changed_at`."""
    update = sa.update(READY_RECORDS).where(
        _RECORDS.version == sa.bindparam("of"),
        _RECORDS.starts == sa.bindparam("cell"),
        _RECORDS.valid_from == sa.bindparam("since"),
    )
    rows = [
        {
            "of": each.version,
            "cell": bounds(each.cell)["starts"],
            "since": each.valid_from,
            "built": each.built_at,
            "changed": each.changed_at,
        }
        for each in restamped
    ]
    if rows:
        built: sa.BindParameter[Any] = sa.bindparam("built")
        changed: sa.BindParameter[Any] = sa.bindparam("changed")
        connection.execute(update.values(built_at=built, changed_at=changed), rows)


def _successors(
    commit: BatchCommit, before: Mapping[Interval, ReadyRecord], now: int
) -> list[ReadyRecord]:
    made: list[ReadyRecord] = []
    for each in commit.cells:
        old = before.get(each.cell)
        stamps = changed_at(
            None if old is None else (old.content, old.changed_at), each.content, now
        )
        builder = (commit.built_at, commit.fingerprint, commit.batch_id)
        if not commit.interval.contains(each.cell):
            # Rows moved here, but the cell was not computed again: it is as fresh as it was, and one
            # that was never built does not become ready.
            if old is None:
                continue
            builder = (old.built_at, old.fingerprint, old.batch_id)
        made.append(ReadyRecord(commit.version, each.cell, 0, None, *builder, each.content, stamps))
    return made


def _record(row: sa.Row[Any]) -> ReadyRecord:
    """Read a record field by field: there are many, and `read_as` takes half as long again."""
    who = (row.built_at, row.fingerprint, row.batch_id)
    span = (row.valid_from, row.valid_to)
    return ReadyRecord(row.version, cell_of(row), *span, *who, row.content, row.changed_at)
