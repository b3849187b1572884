"""The result of a look at a source: which cells got, lost or changed rows since the last look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.places import is_same_place
from backfill_assets.snapshots.state_view import UpstreamChange

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.ready import InputPin

BASELINE = 0
"""The stamp of what was there at the first look: older than everything that was ever built."""

UNREAD = -1
"""What counts as the delta_version of a pin that is not one of this table: none of its commits was read."""


@dataclass(frozen=True, slots=True)
class SourceCell:
    """One cell of a source.

    Attributes:
        cell: the interval.
        rows: how many it holds; 0 for one that lost all of them.
        content: identifies the rows, where they were read; None where the log's own statistics
            were enough.
        changed: of one that changed: the columns whose values did, where all other columns together
            are shown to hold the same rows. None: rows were added or removed, or it is unknown.
    """

    cell: Interval
    rows: int
    content: str | None = None
    changed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ChangedCells:
    """Cells of a source that got, lost or changed rows: one change, which is never published in part.

    Attributes:
        cells: as they are now.
        changed_at: the counter when that became known; None: now.
        since: of a first look: they changed after this delta_version, so they count as changed just
            after the last batch that has read it, an earlier one, or another table (`UNREAD`). None
            for any other look.
    """

    cells: tuple[SourceCell, ...]
    changed_at: int | None = None
    since: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedSource:
    """A source as it was looked at last.

    Attributes:
        source: its name.
        path: the place of its table (see `snapshots.places`).
        table_id: Delta's own id of the table: another one means that it was made anew.
        declared: the grid and the column that its cells are cut by, as text.
        head: the delta_version up to which every change is known: what batches read.
        observed_at: when.
        bytes: of its files at that head; None where no look of this release has counted them.
    """

    source: str
    path: str
    table_id: str
    declared: str
    head: int
    observed_at: datetime | None = None
    bytes: int | None = None

    def is_read_by(self, pin: InputPin) -> bool:
        """Whether a pin is one of this table; by its place where it does not say which it is of."""
        if self.table_id and pin.table_id:
            return self.table_id == pin.table_id
        return is_same_place(self.path, pin.path)


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a look at a source.

    Attributes:
        found: the source as it is now.
        before: the source as it was known when the look began; None for a first look. The first
            look to be written wins: one that began from another state is discarded.
        changes: what changed, in order; each is a change of its own.
        same: cells that were read and have not changed; stored, so that they need not be
            read again.
        forgotten: cells that are known and that the source does not declare any more.
        anew: forget every cell that is known: the changes name all there are.
        pins: of a first look: the delta_versions that batches have read, as far as it knew. If one
            has read another one meanwhile, the look counts nothing. None for any other look.
    """

    found: ObservedSource
    before: ObservedSource | None
    changes: tuple[ChangedCells, ...] = ()
    same: tuple[SourceCell, ...] = ()
    forgotten: tuple[Interval, ...] = ()
    anew: bool = False
    pins: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class SourcePin:
    """At which delta_version ready cells, and batches in flight, have read a source.

    Attributes:
        delta_version: of the source's table; `UNREAD` where they have read another table, or a later
            delta_version than it has.
        last: the counter when the last of the batches that read it there was opened.
        cells: what the cells of these batches span, batch by batch, `Full` models left out.
    """

    delta_version: int
    last: int
    cells: IntervalSet = field(default_factory=IntervalSet.empty)


def made_anew(known: ObservedSource, current: ObservedSource) -> str:
    """Say why a table is not the one of the last look; empty where it is the same, even if moved."""
    if known.table_id and current.table_id:
        if known.table_id != current.table_id:
            return f"its id was {known.table_id} and is {current.table_id}"
    elif known.path != current.path:
        return f"it lay at {known.path}"
    if current.head < known.head:
        return f"its head went back from delta_version {known.head} to {current.head}"
    return ""


def read_up_to(pin: InputPin, before: ObservedSource | None, current: ObservedSource) -> int:
    """Give the delta_version up to which a pin has read a source's table; `UNREAD` for none of it.

    Args:
        pin: of the source.
        before: the source as it was looked at last; None if it never was.
        current: the source as it is now.
    """
    tables = [current]
    if not (pin.table_id and current.table_id) and before is not None:
        tables = [] if made_anew(before, current) else [current, before]
    is_read = any(table.is_read_by(pin) for table in tables)
    return pin.delta_version if is_read and pin.delta_version <= current.head else UNREAD


_MOST_CHANGES = 1000


def listed(
    before: Iterable[UpstreamChange], current: Iterable[UpstreamChange]
) -> tuple[UpstreamChange, ...]:
    """Give the changes of a source, each with the cells that changed together, oldest first.

    A change within a later one is left out: a cell that has not read it has not read the later one
    either. If there are very many, the oldest are merged: that connects more cells, never fewer.

    Args:
        before: those that are known.
        current: those that came.
    """
    kept: list[UpstreamChange] = []
    later = IntervalSet.empty()
    for change in sorted((*before, *current), key=lambda change: change.number, reverse=True):
        if change.cells - later or not any(not change.cells - other.cells for other in kept):
            kept.append(change)
            later |= change.cells
    newest, oldest = kept[: _MOST_CHANGES - 1], kept[_MOST_CHANGES - 1 :]
    if oldest:
        cells = IntervalSet.union_all(change.cells for change in oldest)
        newest.append(UpstreamChange(oldest[0].number, cells))
    return tuple(reversed(newest))
