"""Ready records as the state keeps them: a fact per cell, valid over a span of delta_versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval import instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import ChangedAt, Content, changed_at
from backfill_assets.snapshots.ready import ReadyRecord
from backfill_assets.state.cells import bounds, cell_of, reached
from backfill_assets.state.rows import insert_all, read_as, values_of
from backfill_assets.state.tables import BATCHES, READY_RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.batch import BatchCommit

_RECORDS = READY_RECORDS.c


@dataclass(frozen=True, slots=True)
class Maker:
    """Which batch made a ready cell, by which snapshot and why.

    Attributes:
        cell: the cell.
        fingerprint: the snapshot.
        plan_id: the plan that it served; None for none, and where the batch is not known.
        reason: why it ran; empty where the batch is not known.
        started_at: when it was opened; None where the batch is not known.
    """

    cell: Interval
    fingerprint: str
    plan_id: str | None
    reason: str
    started_at: datetime | None


def valid_at(at: int | None) -> sa.ColumnElement[bool]:
    """Select the records that are valid at a delta_version; None is the latest."""
    if at is None:
        return _RECORDS.valid_to.is_(None)
    still = sa.or_(_RECORDS.valid_to.is_(None), _RECORDS.valid_to > at)
    return sa.and_(_RECORDS.valid_from <= at, still)


def ready_records(connection: sa.Connection, version: str, at: int | None) -> list[ReadyRecord]:
    """Read the records of a version that are valid at a delta_version, by cell."""
    wanted = sa.select(READY_RECORDS).where(_RECORDS.version == version, valid_at(at))
    return [_record(row) for row in connection.execute(wanted.order_by(_RECORDS.starts))]


def ready_cells(
    connection: sa.Connection, version: str, at: int, within: IntervalSet
) -> IntervalSet:
    """Read which of these cells are ready at a delta_version."""
    if not within:
        return within
    wanted = sa.select(_RECORDS.starts, _RECORDS.ends).where(
        _RECORDS.version == version, valid_at(at), reached(READY_RECORDS, within)
    )
    rows = connection.execute(wanted).all()
    return IntervalSet.of_pairs((row.starts, row.ends) for row in rows) & within


def held(connection: sa.Connection, version: str, at: int) -> IntervalSet:
    """Read every cell that is ready at a delta_version."""
    wanted = sa.select(_RECORDS.starts, _RECORDS.ends).where(
        _RECORDS.version == version, valid_at(at)
    )
    return IntervalSet.of_pairs((row.starts, row.ends) for row in connection.execute(wanted))


def contents(
    connection: sa.Connection, version: str, at: int | None, within: IntervalSet
) -> dict[Interval, Content]:
    """Read what the ready cells hold at a delta_version; None is the latest."""
    if not within:
        return {}
    columns = [_RECORDS.starts, _RECORDS.ends, _RECORDS.content]
    wanted = sa.select(*columns).where(
        _RECORDS.version == version, valid_at(at), reached(READY_RECORDS, within)
    )
    rows = connection.execute(wanted.order_by(_RECORDS.starts)).all()
    return {cell_of(row): row.content for row in rows if cell_of(row) in within}


def stamps(
    connection: sa.Connection, version: str, at: int | None, within: IntervalSet
) -> list[tuple[tuple[int, int], ChangedAt]]:
    """Read the bounds and stamps of ready cells at a delta_version; None is the latest.

    Nothing of their contents is read, so it is fast where many cells changed at once.
    """
    if not within:
        return []
    wanted = sa.select(_RECORDS.starts, _RECORDS.ends, _RECORDS.changed_at).where(
        _RECORDS.version == version, valid_at(at), reached(READY_RECORDS, within)
    )
    rows = connection.execute(wanted.order_by(_RECORDS.starts))
    return [
        ((row.starts, row.ends), row.changed_at)
        for row in rows
        if within.covers(row.starts, row.ends)
    ]


def records_within(
    connection: sa.Connection, version: str, at: int | None, within: IntervalSet
) -> dict[Interval, ReadyRecord]:
    """Read the records of these cells that are valid at a delta_version; None is the latest."""
    if not within:
        return {}
    wanted = sa.select(READY_RECORDS).where(
        _RECORDS.version == version, valid_at(at), reached(READY_RECORDS, within)
    )
    records = (_record(row) for row in connection.execute(wanted.order_by(_RECORDS.starts)))
    return {each.cell: each for each in records if each.cell in within}


def records_ever(connection: sa.Connection, version: str, within: IntervalSet) -> list[ReadyRecord]:
    """Read every record of these cells, replaced ones too, the earliest first."""
    if not within:
        return []
    wanted = sa.select(READY_RECORDS).where(
        _RECORDS.version == version, reached(READY_RECORDS, within)
    )
    ordered = wanted.order_by(_RECORDS.valid_from, _RECORDS.starts)
    records = (_record(row) for row in connection.execute(ordered))
    return [each for each in records if each.cell in within]


def current_cells(connection: sa.Connection, version: str, within: IntervalSet) -> list[Interval]:
    """Name those of these cells whose record has not been replaced yet."""
    if not within:
        return []
    columns = [_RECORDS.starts, _RECORDS.ends]
    wanted = sa.select(*columns).where(
        _RECORDS.version == version, valid_at(None), reached(READY_RECORDS, within)
    )
    return [cell for row in connection.execute(wanted) if (cell := cell_of(row)) in within]


def built_by(connection: sa.Connection, version: str, root_id: str, at: int | None) -> IntervalSet:
    """Read which of the cells that are ready at a delta_version a root run or backfill built."""
    columns = [_RECORDS.starts, _RECORDS.ends]
    wanted = (
        sa.select(*columns)
        .join(BATCHES, BATCHES.c.batch_id == _RECORDS.batch_id)
        .where(_RECORDS.version == version, valid_at(at), BATCHES.c.root_id == root_id)
    )
    return IntervalSet.of(cell_of(row) for row in connection.execute(wanted))


def makers(connection: sa.Connection, version: str, at: int) -> list[Maker]:
    """Read what made each cell that is ready at a delta_version, by cell."""
    own = [_RECORDS.starts, _RECORDS.ends, _RECORDS.fingerprint]
    of_batch = [BATCHES.c.plan_id, BATCHES.c.reason, BATCHES.c.started_at]
    wanted = (
        sa.select(*own, *of_batch)
        .outerjoin(BATCHES, BATCHES.c.batch_id == _RECORDS.batch_id)
        .where(_RECORDS.version == version, valid_at(at))
        .order_by(_RECORDS.starts)
    )
    return [
        Maker(cell_of(row), row.fingerprint, row.plan_id, row.reason or "", row.started_at)
        for row in connection.execute(wanted)
    ]


def watermark(connection: sa.Connection, version: str) -> datetime | None:
    """Read where the last ready cell of a version ends."""
    last = sa.select(sa.func.max(_RECORDS.ends)).where(_RECORDS.version == version, valid_at(None))
    ends = connection.execute(last).scalar()
    return None if ends is None else instant_of(ends)


def is_recorded(connection: sa.Connection, commit: BatchCommit, delta_version: int) -> bool:
    """Whether this very commit has its records already."""
    wanted = sa.select(_RECORDS.starts).where(
        _RECORDS.version == commit.version,
        _RECORDS.valid_from == delta_version,
        _RECORDS.batch_id == commit.batch_id,
    )
    return connection.execute(wanted.limit(1)).first() is not None


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
    return read_as(ReadyRecord, row, cell=cell_of(row))
