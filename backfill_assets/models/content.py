"""The content of a cell as numbers: row count, checksum of the key, checksum per column."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.models.number import NumberFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.intervals.interval import Interval

Checksum: TypeAlias = "int | str"
"""A sum of hashes, with the algorithm that made it.

A number is the sum over values of types that every release has hashed alike. Of the other types,
``exact:<sum>`` is today's checksum, and ``rounded:<sum>:<batch>`` one of a release that took floats to
nine digits: it equals no checksum but itself, so that its cell counts as changed when it is built again.
"""

_ROUNDED = "rounded:"

ONCE_ROUNDED = re.compile(r"\b(float|real|double|variant)\b", re.IGNORECASE)
"""Finds a type, also a nested one, whose values an earlier release did not hash exactly."""


def once_rounded(types: Mapping[str, str], key: Iterable[str]) -> frozenset[str]:
    """Name the columns whose checksums an earlier release made of rounded values.

    A value is hashed with its row's key, so a rounded key spoils them all.

    Args:
        types: Spark's simple type string of every column.
        key: the columns of the grain key.
    """
    columns = frozenset(name for name, dtype in types.items() if ONCE_ROUNDED.search(dtype))
    return frozenset(types) if columns & frozenset(key) else columns


def checksum(total: int, *, exact: bool) -> Checksum:
    """Name a sum of hashes by its algorithm: `exact` for a type that was rounded once."""
    return f"exact:{total}" if exact else total


def checksum_within(total: int, tolerance: float) -> str:
    """Name a sum of hashes of values on a tolerance's grid: sums of two grids are never equal."""
    return f"{tolerance!r}:{total}"


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one cell.

    Attributes:
        rows: how many.
        key: checksum of the grain key over all rows: equal keys, equal checksum.
        columns: per column, the checksum of (grain key, value) over all rows.
        within: per column that declares a tolerance, `checksum_within` it. It decides on early cutoff
            alone: two contents with the same rows are equal whatever it is.
    """

    rows: int
    key: Checksum
    columns: Mapping[str, Checksum]
    within: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    def holds_still(self, column: str, after: Content) -> bool:
        """Whether readers of a column may ignore the content that follows this one.

        The rows are assumed to have equal keys. A column that has been followed within a tolerance
        is followed within that one only: under another, or none, its readers may have missed too much.
        """
        followed = self.within.get(column)
        if followed is not None:
            return after.within.get(column) == followed
        return column in self.columns and self.columns[column] == after.columns[column]

    def in_doubt(self, other: Content) -> bool:
        """Whether two checksums differ, possibly only because one of them is of rounded values, or of another type."""
        pairs = ((checksum, other.columns.get(name)) for name, checksum in self.columns.items())
        return any(
            one != another and (_is_rounded(one) or _is_rounded(another))
            for one, another in ((self.key, other.key), *pairs)
        )

    def as_rounded(self, columns: frozenset[str], batch_id: str, *, key: bool) -> Content:
        """Mark checksums that decide nothing, as those of a release that rounded floats: they equal those of the same batch alone.

        Args:
            columns: whose checksums were made of rounded values, or of values of another type.
            batch_id: the batch that made the rows, or another name that those which are compared don't have.
            key: whether the key's checksum was as well.
        """

        def marked(checksum: Checksum) -> Checksum:
            return f"{_ROUNDED}{checksum}:{batch_id}" if isinstance(checksum, int) else checksum

        checksums = {
            name: marked(checksum) if name in columns else checksum
            for name, checksum in self.columns.items()
        }
        return replace(self, key=marked(self.key) if key else self.key, columns=checksums)


def _is_rounded(checksum: Checksum | None) -> bool:
    return isinstance(checksum, str) and checksum.startswith(_ROUNDED)


@dataclass(frozen=True, slots=True)
class ChangedAt:
    """When (on the state's counter) a cell's row set and each of its columns last changed."""

    row_set: int
    columns: Mapping[str, int]

    def latest(self, columns: frozenset[str] | None) -> int:
        """The last change that a reader of these columns sees; None reads every column."""
        read = self.columns if columns is None else columns & self.columns.keys()
        return max(self.row_set, *(self.columns[name] for name in read)) if read else self.row_set


def changed_at(old: tuple[Content, ChangedAt] | None, new: Content, now: int) -> ChangedAt:
    """Keep the stamps of parts that did not change; stamp the others with `now` (the counter).

    This is early cutoff: a cell rebuilt with the same content keeps all its stamps, so its readers
    are not rebuilt. Readers of a column that differs within its tolerance are not, either.
    """
    if old is None:
        return ChangedAt(now, dict.fromkeys(new.columns, now))
    before, stamps = old
    same_rows = (before.rows, before.key) == (new.rows, new.key)
    return ChangedAt(
        row_set=stamps.row_set if same_rows else now,
        columns={
            name: stamps.columns.get(name, now)
            if same_rows and before.holds_still(name, new)
            else now
            for name in new.columns
        },
    )


@dataclass(frozen=True, slots=True)
class CellProfile:
    """The result of the aggregation for one cell of a batch.

    Attributes:
        cell: the interval.
        content: the content of its computed rows.
        failing: per audit name, how many rows fail it (duplicates beyond the first for `Unique`).
        sums: per audit name of a `Reconciles`, (own sum, upstream sum) as exact decimal text.
        numbers: per audit name of a `Numbering`, the number and those that it is compared with.
    """

    cell: Interval
    content: Content
    failing: Mapping[str, int]
    sums: Mapping[str, tuple[str, str]]
    numbers: Mapping[str, NumberFound] = field(default_factory=dict[str, NumberFound])
