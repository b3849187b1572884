"""What a cell holds, as numbers: row count, checksum of the key, checksum per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval import Interval


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one cell.

    Attributes:
        rows: how many.
        key: checksum of the grain key over all rows: equal keys, equal number.
        columns: per column, the checksum of (grain key, value) over all rows.
    """

    rows: int
    key: int
    columns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ChangedAt:
    """When (on the state's counter) a cell's row set and each of its columns last changed."""

    row_set: int
    columns: Mapping[str, int]

    def latest(self, columns: frozenset[str] | None) -> int:
        """The last change that a reader of these columns sees; None reads every column."""
        if columns is None:
            return max((self.row_set, *self.columns.values()))
        read = columns & self.columns.keys()
        return max((self.row_set, *(self.columns[name] for name in read)))


def changed_at(old: tuple[Content, ChangedAt] | None, new: Content, now: int) -> ChangedAt:
    """Carry over what did not change; stamp with `now` (the counter) what did.

    This is early cutoff: a cell rebuilt with the same content keeps all its stamps, so nothing
    that reads it moves.
    """
    if old is None:
        return ChangedAt(now, dict.fromkeys(new.columns, now))
    before, stamps = old
    same_rows = (before.rows, before.key) == (new.rows, new.key)
    return ChangedAt(
        row_set=stamps.row_set if same_rows else now,
        columns={
            name: stamps.columns.get(name, now)
            if same_rows and before.columns.get(name) == checksum
            else now
            for name, checksum in new.columns.items()
        },
    )


@dataclass(frozen=True, slots=True)
class CellProfile:
    """One aggregation's answer for one cell of a batch.

    Attributes:
        cell: the interval.
        content: what the computed rows of the cell are.
        failing: per audit name, how many rows fail it (duplicates beyond the first for `Unique`).
        sums: per audit name of a `Reconciles`, (own sum, upstream sum) as exact decimal text.
    """

    cell: Interval
    content: Content
    failing: Mapping[str, int]
    sums: Mapping[str, tuple[str, str]]
