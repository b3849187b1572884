"""Draw one model cell by cell, where a table lies over another or a workspace has built."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval import Interval, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.content import ChangedAt, Content, changed_at
from backfill_assets.snapshots.state_view import NEVER_READ, ReadyRun
from backfill_assets.state.batch_rows import OF_BATCH
from backfill_assets.state.cells import bounds, reached
from backfill_assets.state.ready import valid_at
from backfill_assets.state.tables import BATCHES, READY_RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from backfill_assets.snapshots.environment import Layer, Pointer
    from backfill_assets.snapshots.ready import ReadyRecord

_RECORDS = READY_RECORDS.c
_SAME, _OTHERWISE = 0, 1
_OF_LAYER = (
    sa.select(
        _RECORDS.starts,
        _RECORDS.ends,
        _RECORDS.batch_id,
        _RECORDS.built_at,
        sa.type_coerce(_RECORDS.changed_at, sa.Text).label("stamps"),
        sa.type_coerce(_RECORDS.content, sa.Text).label("held"),
        *(column.label(name) for name, column in OF_BATCH.items()),
    )
    .outerjoin(BATCHES, BATCHES.c.batch_id == _RECORDS.batch_id)
    .where(_RECORDS.version == sa.bindparam("of_version"), valid_at(sa.bindparam("at")))
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One ready cell, its stamps and content as canonical text: equal values are equal text.

    `unread` and `replaces` are empty but in a workspace's own cells: see `ReadyRun`.
    """

    starts: int
    ends: int
    batch_id: str
    built_at: int
    changed_at: str
    content: str
    layer: int
    unread: str = ""
    pinned_at: int | None = None
    replaces: int | None = None
    bytes_per_second: float | None = None
    began_at: datetime | None = None
    fingerprint: str | None = None
    reason: str | None = None

    @property
    def sources_at(self) -> int:
        """The counter when it pinned its sources."""
        return self.built_at if self.pinned_at is None else self.pinned_at


def cells_at(
    connection: sa.Connection, pointer: Pointer, within: IntervalSet | None = None
) -> list[Cell]:
    """Read every ready cell of a pointer, from the table that answers for it, in order."""
    by_start: dict[int, Cell] = {}
    for number, layer in enumerate(pointer.layers):
        for each in _of_table(connection, layer, number, within):
            hidden = number > 0 and pointer.certain.covers(each.starts, each.ends)
            if each.starts not in by_start and not hidden:
                by_start[each.starts] = each
    return [by_start[starts] for starts in sorted(by_start)]


def compared_with(
    connection: sa.Connection, own: list[Cell], published: Pointer | None
) -> list[Cell]:
    """Stamp the cells of a workspace's own table for those who have read what people read there now."""
    mine = IntervalSet.of_pairs((cell.starts, cell.ends) for cell in own if cell.layer == 0)
    there = [] if published is None or not mine else cells_at(connection, published, mine)
    return [
        _compared(cell, _within(there, *_bounds(cell))) if cell.layer == 0 else cell for cell in own
    ]


def told_at(there: Sequence[Cell], held: ReadyRecord) -> int | None:
    """Give the number by which stamps tell who has read a cell that something else is read there now.

    Args:
        there: the cells that are read now, in order.
        held: what was read.

    Returns:
        The lowest number of all that differs; 0 where something is gone; None where all is as it was.
    """
    at = bounds(held.cell)
    now = _within(there, at["starts"], at["ends"])
    spans = [*map(_bounds, now)]
    if not IntervalSet.of_pairs(spans).covers(at["starts"], at["ends"]):
        return 0
    if spans != [(at["starts"], at["ends"])]:
        return min(told for cell in now for told, _ in _pairs(_stamps(cell.changed_at), cell))
    (cell,) = now
    known = ChangedAt(_SAME, dict.fromkeys(held.content.columns, _SAME))
    differs = changed_at((held.content, known), _content(cell.content), _OTHERWISE)
    return min((told for one, told in _pairs(differs, cell) if one == _OTHERWISE), default=None)


def _pairs(stamps: ChangedAt, cell: Cell) -> Iterator[tuple[int, int]]:
    """Yield stamps of a cell's rows and columns, each with the one that the cell has."""
    own = _stamps(cell.changed_at)
    yield stamps.row_set, own.row_set
    for name, at in stamps.columns.items():
        yield at, own.columns[name]


def _within(there: Sequence[Cell], starts: int, ends: int) -> Sequence[Cell]:
    """Give the cells that lie in a span: several, or a longer one, where the cadence is another one."""
    first = bisect_right(there, starts, key=attrgetter("ends"))
    return there[first : bisect_left(there, ends, key=attrgetter("starts"))]


def runs_of(cells: Iterable[Cell], *, own: bool) -> tuple[ReadyRun, ...]:
    """Join touching cells that share batch, stamps and table.

    Args:
        cells: in order.
        own: whether the upper table is the environment's own.
    """
    return tuple(_run(run, own=own) for run in _joined(cells))


def answered(cells: Iterable[Cell], layer: int) -> IntervalSet:
    """The cells that one of the tables answers for."""
    return IntervalSet.of_pairs((cell.starts, cell.ends) for cell in cells if cell.layer == layer)


def _of_table(
    connection: sa.Connection, layer: Layer, number: int, within: IntervalSet | None
) -> Iterator[Cell]:
    query = _OF_LAYER if within is None else _OF_LAYER.where(reached(READY_RECORDS, within))
    here = {"of_version": layer.version, "at": layer.delta_version}
    for row in connection.execute(query, here):
        who = (row.batch_id, row.built_at)
        what = (row.stamps, row.held, number)
        of_batch = {name: getattr(row, name) for name in OF_BATCH}
        yield Cell(row.starts, row.ends, *who, *what, **of_batch)


def _compared(own: Cell, replaced: Sequence[Cell]) -> Cell:
    sources_at = max((cell.sources_at for cell in replaced), default=None)
    published = replaced[0] if [*map(_bounds, replaced)] == [_bounds(own)] else None
    if published is None:
        not_read = _unread(own.content, None)
    elif published.content == own.content:
        not_read = published.changed_at
    else:
        not_read = _unread(own.content, (published.content, published.changed_at))
    return replace(own, unread=not_read, replaces=sources_at)


def _bounds(cell: Cell) -> tuple[int, int]:
    return cell.starts, cell.ends


def _joined(cells: Iterable[Cell]) -> Iterator[Cell]:
    before: Cell | None = None
    for each in cells:
        if before is not None and before.ends == each.starts and _alike(before, each):
            before = replace(before, ends=each.ends)
            continue
        if before is not None:
            yield before
        before = each
    if before is not None:
        yield before


def _alike(cell: Cell, other: Cell) -> bool:
    return (cell.batch_id, cell.built_at, cell.changed_at, cell.layer, cell.unread, cell.replaces) == (
        other.batch_id, other.built_at, other.changed_at, other.layer, other.unread, other.replaces,
    )  # fmt: skip


def _run(cell: Cell, *, own: bool) -> ReadyRun:
    interval = Interval(instant_of(cell.starts), instant_of(cell.ends))
    stamps = _stamps(cell.changed_at)
    unread = _stamps(cell.unread) if cell.unread else None
    mine = own and cell.layer == 0
    built = (cell.built_at, stamps, cell.batch_id)
    of_batch = {name: getattr(cell, name) for name in OF_BATCH}
    return ReadyRun(interval, *built, mine, unread, replaces=cell.replaces, **of_batch)


@lru_cache(maxsize=4096)
def _stamps(text: str) -> ChangedAt:
    return _loaded(text)


@lru_cache(maxsize=16_384)
def _unread(own: str, published: tuple[str, str] | None) -> str:
    """Stamp a cell that differs from the published one for those who have read that: see `Cell`.

    One command draws its workspace several times, and cells without rows are all alike. There is room
    for a year of hours: of more cells than it holds, each would push out the one that is asked for next.

    Args:
        own: the content of the workspace's cell.
        published: the content and the stamps of the published one, if there is one.
    """
    old = published and (_content(published[0]), _stamps(published[1]))
    stamps = changed_at(old, _content(own), NEVER_READ)
    return _written(stamps.row_set, tuple(stamps.columns.items()))


@lru_cache(maxsize=4096)
def _written(row_set: int, columns: tuple[tuple[str, int], ...]) -> str:
    """Write stamps; a batch's cells share theirs, and writing is most of the work."""
    return dumps(ChangedAt(row_set, dict(columns)))


def _content(text: str) -> Content:
    return _loaded(text)


def _loaded(text: str) -> Any:  # noqa: ANN401 - the caller knows the type
    return loads(text, (Content, ChangedAt))
