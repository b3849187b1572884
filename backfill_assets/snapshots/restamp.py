"""When a cell's content last changed, told against what people read in it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.content import ChangedAt, changed_at

if TYPE_CHECKING:
    from backfill_assets.models.content import Content

NEVER_READ = 2**62
"""A number that no counter reaches."""

_NEW = -1


def against(
    published: tuple[Content, ChangedAt] | None, own: tuple[Content, ChangedAt], floor: int
) -> ChangedAt:
    """Tell a workspace's cell against what the environment publishes.

    What is equal has changed when the published one did; what is different, with its own stamp, but
    not before the workspace was opened: whoever reads what is published has not read this.

    Args:
        published: what people read there; None for nothing.
        own: what the workspace holds.
        floor: the number after the one with which the workspace was opened.
    """
    content, stamps = own
    told = changed_at(published, content, _NEW)
    return ChangedAt(
        row_set=_or(told.row_set, stamps.row_set, floor),
        columns={
            name: _or(at, stamps.columns.get(name, floor), floor)
            for name, at in told.columns.items()
        },
    )


def _or(told: int, own: int, floor: int) -> int:
    return max(own, floor) if told == _NEW else told
