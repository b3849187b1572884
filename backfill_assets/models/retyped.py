"""Let contents of a column whose type has changed be compared: equal checksums prove nothing there.

Spark hashes whole numbers, decimals of up to 18 digits by their digits, and timestamps alike: 15000 as a
bigint and 150.00 as a decimal(12,2) have one checksum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.column import canonical_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.models.model import Model

_ANOTHER_TYPE = "another type"


def as_another_type(
    contents: Mapping[Interval, Content], old: Model | None, new: Model | None
) -> Mapping[Interval, Content]:
    """Give contents that one declaration built, to be compared with those that another one built.

    The checksums of columns that have another type there equal none of these; a comparison of the rows decides.
    Where a declaration is not known (None), they are taken as they are.
    """
    if old is None or new is None:
        return contents
    before, after = _types(old), _types(new)
    columns = frozenset(
        name for name in before.keys() & after.keys() if before[name] != after[name]
    )
    if not columns:
        return contents
    key = not columns.isdisjoint(old.key)  # a value is hashed with its row's key
    marked = frozenset(before) if key else columns
    return {
        cell: content.as_rounded(marked, _ANOTHER_TYPE, key=key)
        for cell, content in contents.items()
    }


def _types(model: Model) -> dict[str, str]:
    return {column.name: canonical_type(column.dtype) for column in model.schema}
