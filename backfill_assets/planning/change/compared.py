"""What a comparison of two tables of one model counts: group by group, and in each column by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.models.codec import ADDED_LATER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Measure:
    """One column in one group.

    Attributes:
        changed: in how many rows of both tables its value differs; 0 for a column of one side only.
        old_filled: in how many old rows it is not NULL.
        new_filled: in how many new rows it is not NULL.
        old_sum: exact sum of the old values; None unless it is numeric there, and all values have one.
        new_sum: the same of the new ones.
        old_distinct: how many different values the old rows have; None unless it was asked for.
        new_distinct: the same of the new ones.
        old_percentiles: p5, p50 and p95 of the old finite numbers; None unless it was asked for, or
            without any.
        new_percentiles: the same of the new ones.
    """

    changed: int
    old_filled: int
    new_filled: int
    old_sum: Decimal | None
    new_sum: Decimal | None
    old_distinct: int | None = field(default=None, metadata=ADDED_LATER)
    new_distinct: int | None = field(default=None, metadata=ADDED_LATER)
    old_percentiles: tuple[float, ...] | None = field(default=None, metadata=ADDED_LATER)
    new_percentiles: tuple[float, ...] | None = field(default=None, metadata=ADDED_LATER)

    @property
    def differs(self) -> bool:
        """Whether a value, how many there are, or their sum is different."""
        old = (self.old_filled, self.old_sum)
        return bool(self.changed) or old != (self.new_filled, self.new_sum)


@dataclass(frozen=True, slots=True)
class Group:
    """One line of a comparison.

    Attributes:
        by: the values of the columns that it is grouped by, as text.
        old_rows: rows in the old table.
        new_rows: rows in the new one.
        keys_added: rows whose key only the new table has.
        keys_removed: rows whose key only the old one has.
        rows_changed: rows of both in which a column that both have differs.
        columns: every column but the key's.
    """

    by: tuple[str | None, ...]
    old_rows: int
    new_rows: int
    keys_added: int
    keys_removed: int
    rows_changed: int
    columns: Mapping[str, Measure]

    @property
    def differs(self) -> bool:
        """Whether anything is different."""
        return bool(self.keys_added or self.keys_removed or self.rows_changed)
