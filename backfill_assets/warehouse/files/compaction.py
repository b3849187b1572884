"""Join the small files of a block into one, without changing a row.

Each new hour adds a small file to its day, and each rebuilt hour splits one file into two.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import Whole
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.warehouse.files.cell_files import files_at, join_files, partition_columns
from backfill_assets.warehouse.files.cells import block_of
from backfill_assets.warehouse.files.commit import unwritten_cells
from backfill_assets.warehouse.files.housekeeping import created_by
from backfill_assets.warehouse.files.log_entry import exchange_files
from backfill_assets.warehouse.log.delta_log import ABSENT, head, logged_commit
from backfill_assets.warehouse.log.ticket import COMPACTED, FoundCommit, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.warehouse.files.cell_files import NamedFile
    from backfill_assets.warehouse.files.commit import WrittenCells

_LARGE = 2**26
"""Bytes of a block from which on its files stay: writing them again would cost more than it saves."""


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
    """List the files of a table that would be joined.

    Raises:
        CorruptTableError: the log is damaged.
    """
    _, piles = _piles(path)
    return Compacted(path, sum(map(len, piles)), len(piles))


@contextmanager
def joined_files(path: str) -> Iterator[Joined]:
    """Write the files of each block of a table as one, which no log names until they are offered.

    Raises:
        CorruptTableError: the log is damaged.
        PinGoneError: a file is not there any more.
    """
    cadence, piles = _piles(path)
    with unwritten_cells(path, cadence) as written:
        written.files = tuple(
            join_files(path, pile, f"{written.folder}/{number}")
            for number, pile in enumerate(piles)
        )
        yield Joined(written, tuple(file for pile in piles for file in pile))


@dataclass(frozen=True, slots=True)
class Joined:
    """Files that hold the same rows as other files of a table, and may replace them."""

    written: WrittenCells
    instead_of: tuple[NamedFile, ...]

    def commit(self, *, app_id: str, token: int) -> FoundCommit:
        """Replace the other files by them, in one commit that changes no row.

        Args:
            app_id: the table's name for transaction ids.
            token: of the table's commit lock, which the caller holds.

        Raises:
            CommitLostError: another writer has taken the table over.
            CommitConflictError: one of the others has gone meanwhile.
        """
        ticket = Ticket(self.written.path, app_id, token, COMPACTED)
        self.written.offered = True
        return exchange_files(self.instead_of, self.written.files, ticket)


def _piles(path: str) -> tuple[Cadence, list[list[NamedFile]]]:
    """Give the files of each block that has several small ones, oldest cells first."""
    at = head(path)
    if at == ABSENT or partition_columns(path):
        return Whole(), []
    made = created_by(logged_commit(path, 0).metadata)
    cadence = stored_model(made).cadence if made else Whole()
    if not cadence.unit.is_subday:
        return cadence, []
    blocks: defaultdict[str, list[NamedFile]] = defaultdict(list)
    for file in sorted(files_at(path, at), key=lambda file: (file.first, file.name)):
        if file.first:  # the block of a foreign file without statistics is unknown
            blocks[block_of(cadence, file.first)].append(file)
    piles = (pile for pile in blocks.values() if len(pile) > 1)
    return cadence, [pile for pile in piles if sum(file.bytes for file in pile) < _LARGE]
