"""Compaction: the files that have piled up in a block become one, and no row changes.

A new hour adds a small file to its day, and a rebuilt one leaves two where one was.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.warehouse.cell_files import files_at, join_files, partition_columns
from backfill_assets.warehouse.cells import block_of
from backfill_assets.warehouse.commit import unwritten_cells
from backfill_assets.warehouse.delta_log import ABSENT, head, logged_commit
from backfill_assets.warehouse.housekeeping import created_by
from backfill_assets.warehouse.log_entry import exchange_files
from backfill_assets.warehouse.ticket import COMPACTED, Committed, Ticket

if TYPE_CHECKING:
    from backfill_assets.warehouse.cell_files import NamedFile

_LARGE = 2**26
"""Bytes of a block whose files stay as they are: to write them again would cost more than it saves."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A table whose files were joined, or would be.

    Attributes:
        path: of the table.
        files: how many were joined.
        blocks: into how many.
    """

    path: str
    files: int
    blocks: int


def what_to_compact(path: str) -> Compacted:
    """Say which files of a table would be joined.

    Raises:
        CorruptTableError: the log is damaged.
    """
    piles = _piles(path)
    return Compacted(path, sum(map(len, piles)), len(piles))


def compact(path: str, *, app_id: str, token: int) -> Committed | None:
    """Join the files of each block of a table, in one commit that changes no row; None for nothing.

    Args:
        path: of the table, whose commit lock the caller holds.
        app_id: the table's name for transaction ids.
        token: of the commit lock.

    Raises:
        CommitLostError: another writer has taken the table over.
        PinGoneError: a file is not there any more.
    """
    if not (piles := _piles(path)):
        return None
    gone = [one for pile in piles for one in pile]
    with unwritten_cells(path) as written:
        written.files = tuple(
            join_files(path, pile, f"{written.folder}/{number}")
            for number, pile in enumerate(piles)
        )
        written.offered = True
        return exchange_files(gone, written.files, Ticket(path, app_id, token, COMPACTED))


def _piles(path: str) -> list[list[NamedFile]]:
    """Give the files of each block that has several small ones, oldest cells first."""
    at = head(path)
    made = created_by(logged_commit(path, 0).metadata) if at > ABSENT else None
    if made is None or partition_columns(path):
        return []
    cadence = stored_model(made).cadence
    if not cadence.unit.is_subday:
        return []
    blocks: defaultdict[str, list[NamedFile]] = defaultdict(list)
    for one in sorted(files_at(path, at), key=lambda file: (file.first, file.name)):
        blocks[block_of(cadence, one.first)].append(one)
    piles = (pile for pile in blocks.values() if len(pile) > 1)
    return [pile for pile in piles if sum(one.bytes for one in pile) < _LARGE]
