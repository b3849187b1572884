"""Log entries: the one way in which a table of ours comes to hold other files.

An entry says which files some cells consist of from now on. It is written by deltalake, never by the
JVM, on the very version whose token was read: compare-and-set, so a writer that wakes up after its
lock was taken over fails, whatever it was about to publish.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cell_files import files_of, missing, partition_values
from backfill_assets.warehouse.delta_log import CorruptTableError
from backfill_assets.warehouse.spark_errors import CommitConflictError, explaining
from backfill_assets.warehouse.ticket import (
    CommitLostError,
    Committed,
    Ticket,
    found,
    in_log,
    named,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
    from deltalake.transaction import AddAction, RemoveAction

    from backfill_assets.warehouse.cell_files import CellFile


class FilesGoneError(BackfillAssetsError):
    """Files that an entry would name are not there, or not whole."""

    def __init__(self, *, path: str, names: Sequence[str]) -> None:
        self.path, self.names = path, tuple(names)
        super().__init__(
            f"{len(names)} files that were written for {path} are gone or cut short before any log "
            f"named them, for example {names[0]}; expected them as they were written. Nothing was "
            "committed; run again"
        )


def set_cells(wanted: Mapping[str, Sequence[CellFile]], ticket: Ticket) -> Committed:
    """Let cells of a table consist of exactly these files, in one entry of its log.

    Files that a cell holds and keeps are left alone. An entry is made in any case: its metadata says
    of all the cells what they hold.

    Args:
        wanted: by cell, as `cells.cell_text` writes it; no files: the cell is empty.
        ticket: what the entry says of itself.

    Raises:
        FilesGoneError: one of the files is not there.
        CommitLostError: another writer has taken the table over.
        CommitConflictError: another entry came first.
        WarehouseUnwritableError: the disk is full, read-only or not ours.
    """
    refuse_gone(ticket.path, [one for files in wanted.values() for one in files])

    def write(table: DeltaTable, said: CommitProperties) -> None:
        table.create_write_transaction(
            [*_actions(table, wanted)],
            "append",
            table.schema(),
            [CELL_COLUMN],
            commit_properties=said,
            post_commithook_properties=kept_log(),
        )

    return enter(ticket, write)


def refuse_gone(path: str, files: Sequence[CellFile]) -> None:
    """Raise `FilesGoneError` unless files that no log names yet are there, as they were written."""
    if gone := missing(path, files):
        raise FilesGoneError(path=path, names=gone)


def enter(ticket: Ticket, write: Callable[[DeltaTable, CommitProperties], None]) -> Committed:
    """Write one entry of a table's log on the version whose token has just been read.

    Args:
        ticket: what the entry says of itself.
        write: writes it, given the table and the ticket as deltalake takes it.

    Raises:
        CommitLostError: another writer has taken the table over.
        CommitConflictError: another entry came first.
    """
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    table, transaction = _opened(ticket)
    before, said = table.version(), named(ticket, transaction)
    with explaining(ticket.path):
        try:
            write(table, said)
        except Exception as error:  # whatever class the library has for it
            # What follows on an entry may fail, a checkpoint for one: the log alone knows.
            if (done := in_log(ticket, before)) is not None:
                return done
            _opened(ticket)
            if isinstance(error, CommitFailedError):
                raise CommitConflictError(path=ticket.path, found=str(error)) from error
            raise
    return found(ticket, before)


def _opened(ticket: Ticket) -> tuple[DeltaTable, int]:
    """Open a table in which the ticket may come next, and give the ticket's transaction version."""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    with explaining(ticket.path):
        try:
            table = DeltaTable(ticket.path)
        except DeltaError as error:
            raise CorruptTableError(path=ticket.path, found=str(error)) from error
    newest = table.transaction_version(ticket.app_id)
    for transaction in ticket.transactions:
        if newest is None or transaction > newest:
            return table, transaction
    raise CommitLostError(path=ticket.path, token=ticket.token, head_before=table.version())


def kept_log() -> PostCommitHookProperties:
    """Let deltalake make checkpoints, and delete nothing of the log."""
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


def _actions(
    table: DeltaTable, wanted: Mapping[str, Sequence[CellFile]]
) -> Iterator[AddAction | RemoveAction]:
    from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415

    now = time.time_ns() // 1_000_000
    held = {one.name: one for one in files_of(table, wanted)} if wanted else {}
    kept = {one.name for files in wanted.values() for one in files}
    for one in held.values():
        if one.name not in kept:
            yield RemoveAction(
                one.name,
                data_change=True,
                deletion_timestamp=now,
                size=one.bytes,
                partition_values=partition_values(one.cell),
            )
    for files in wanted.values():
        for one in files:
            if one.name not in held:
                yield AddAction(
                    path=one.name,
                    size=one.bytes,
                    partition_values=partition_values(one.cell),
                    modification_time=now,
                    data_change=True,
                    stats=one.statistics,
                )
