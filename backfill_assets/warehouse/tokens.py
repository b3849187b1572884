"""Tokens: what fences one writer of a table off from the one before it."""

from __future__ import annotations

from backfill_assets.warehouse.delta_log import ABSENT, CorruptTableError, head

FENCE = '{"@":"Fence"}'
RESTORE = '{"@":"Restore"}'
CREATED = '{"@":"TableCreated"}'


def is_housekeeping(metadata: str | None) -> bool:
    """Whether a commit is one of ours that changes no audited content by itself."""
    return metadata in (FENCE, RESTORE, CREATED)


def last_token(path: str, app_id: str) -> int:
    """Give the largest token that a table's log holds; 0 when there is none.

    Raises:
        CorruptTableError: the log is damaged.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - a tenth of a second that help must not pay
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    if head(path) == ABSENT:
        return 0
    try:
        return DeltaTable(path).transaction_version(app_id) or 0
    except DeltaError as error:
        raise CorruptTableError(path=path, found=str(error)) from error
