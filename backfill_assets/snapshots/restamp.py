"""Compute the stamp of a workspace's cell, compared with the content that the environment publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.content import ChangedAt, changed_at

if TYPE_CHECKING:
    from backfill_assets.models.content import Content

NEVER_READ = 2**62
"""A number that no counter reaches."""

_NEW = -1


def stamps_in_workspace(
    published: tuple[Content, ChangedAt] | None, own: tuple[Content, ChangedAt]
) -> ChangedAt:
    """Stamp a workspace's cell by comparing it with the published one, for the workspace's other cells.

    An equal part has changed when the published one did, or earlier: when it was built in the
    workspace, whose other cells have read it there. A different part has changed with its own
    stamp: of a table that an earlier plan has built, when it was built there. Readers that the
    environment has built have not read it, whenever that was: see `unread`.

    Args:
        published: the published stamps and content; None for no published cell.
        own: those of the workspace's cell.
    """
    content, stamps = own
    compared_stamps = changed_at(published, content, _NEW)
    return ChangedAt(
        row_set=_or(compared_stamps.row_set, stamps.row_set),
        columns={
            name: _or(at, stamps.columns[name]) for name, at in compared_stamps.columns.items()
        },
    )


def unread(published: tuple[Content, ChangedAt] | None, content: Content) -> ChangedAt:
    """Stamp the same cell for a reader that the environment has built: it has read the published cell."""
    return changed_at(published, content, NEVER_READ)


def earlier(one: ChangedAt, other: ChangedAt) -> ChangedAt:
    """Give for the rows and each column the earlier of two stamps of one content."""
    return ChangedAt(
        row_set=min(one.row_set, other.row_set),
        columns={name: min(at, other.columns.get(name, at)) for name, at in one.columns.items()},
    )


def _or(stamp: int, own: int) -> int:
    return own if stamp == _NEW else min(stamp, own)
