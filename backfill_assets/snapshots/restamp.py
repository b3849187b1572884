"""Compute the stamp of a workspace's cell, compared with the content that the environment publishes."""

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

    What is equal has changed when the published one did, or earlier: when it came to be in the
    workspace, whose other cells have read it there. What is different has changed with its own
    stamp, but not before the workspace was opened: readers of the published cell have not read it.

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


def unread(published: tuple[Content, ChangedAt] | None, content: Content) -> ChangedAt:
    """Tell the same for a cell that the environment has built: it has read what is published."""
    return changed_at(published, content, NEVER_READ)


def earlier(one: ChangedAt, other: ChangedAt) -> ChangedAt:
    """Give for the rows and each column the earlier of two stamps of one content."""
    return ChangedAt(
        row_set=min(one.row_set, other.row_set),
        columns={name: min(at, other.columns.get(name, at)) for name, at in one.columns.items()},
    )


def _or(told: int, own: int, floor: int) -> int:
    return max(own, floor) if told == _NEW else min(told, own)
