"""Write log entries: the only way in which the files of a table of ours change.

An entry names the files of some cells from now on. It is written by deltalake, never by the JVM, on the
very version whose token was read. This is a compare-and-set, so a writer that wakes up after its lock
was taken over always fails.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.warehouse.files.cell_files import files_of, missing_files, partition_values
from backfill_assets.warehouse.log.delta_log import opened_log
from backfill_assets.warehouse.log.ticket import (
    CommitLostError,
    FoundCommit,
    Ticket,
    commit_properties,
    in_log,
)
from backfill_assets.warehouse.spark.spark_errors import CommitConflictError, explaining_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
    from deltalake.transaction import AddAction, RemoveAction

    from backfill_assets.warehouse.files.cell_files import CellFile, NamedFile

    Rest = Callable[[NamedFile], Sequence[CellFile] | None]
    Change = tuple[Sequence[NamedFile], Sequence[CellFile]]


class FilesGoneError(BackfillAssetsError):
    """Files that an entry would name are not there, or not whole."""

    def __init__(self, *, path: str, names: Sequence[str]) -> None:
        self.path, self.names = path, tuple(names)
        super().__init__(
            f"{len(names):,} of the files that were written for {path} can't be committed: missing or "
            f"incomplete is {names[0]}, for example; expected them as they were written. Nothing was "
            "committed; run again"
        )


def set_cells(
    cells: Collection[str], files: Sequence[CellFile], rest: Rest, ticket: Ticket
) -> FoundCommit:
    """Let cells of a table consist of exactly these files, in one entry of its log.

    Files that the cells hold and keep are left alone. An entry is made in any case: its metadata
    describes the content of all the cells.

    Args:
        cells: as `cells.cell_text` writes them; those that no file holds rows of are empty.
        files: all files of the cells.
        rest: gives the files that replace a file for its other cells; None where it holds no row of
            these cells, and so stays.
        ticket: what the entry says of itself.

    Raises:
        FilesGoneError: one of the files is not there.
        CommitLostError: another writer has taken the table over.
        CommitConflictError: another entry came first.
        WarehouseUnwritableError: the disk is full, read-only or not ours.
    """
    refuse_gone(ticket.path, files)

    def change(table: DeltaTable) -> Change:
        by_name = {file.name: file for file in files_of(table, cells)} if cells else {}
        gone: list[NamedFile] = []
        rests: list[CellFile] = []
        for name in by_name.keys() - {file.name for file in files}:
            remaining = rest(by_name[name])
            if remaining is not None:
                gone.append(by_name[name])
                rests += remaining
        refuse_gone(ticket.path, rests)
        return gone, [*(file for file in files if file.name not in by_name), *rests]

    return _entered(ticket, change, new_rows=True)


def exchange_files(
    gone: Sequence[NamedFile], added: Sequence[CellFile], ticket: Ticket
) -> FoundCommit:
    """Replace files by others that hold the same rows, in one entry of a table's log.

    Raises:
        FilesGoneError: one of the files is not there.
        CommitLostError: another writer has taken the table over.
        CommitConflictError: another entry came first, or took one of the others away.
    """
    refuse_gone(ticket.path, added)

    def change(table: DeltaTable) -> Change:
        names = {file.name for file in files_of(table)}
        if lost := [file.name for file in gone if file.name not in names]:
            raise CommitConflictError(path=ticket.path, found=f"{lost[0]} has gone meanwhile")
        return gone, added

    return _entered(ticket, change, new_rows=False)


def _entered(
    ticket: Ticket, change: Callable[[DeltaTable], Change], *, new_rows: bool
) -> FoundCommit:
    """Write the entry that removes the files of a change, and adds those that replace them."""

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        columns = table.metadata().partition_columns
        table.create_write_transaction(
            [*_actions(*change(table), columns, new_rows=new_rows)],
            "append",
            table.schema(),
            columns,
            commit_properties=properties,
            post_commithook_properties=kept_log(),
        )

    return write_entry(ticket, write)


def refuse_gone(path: str, files: Sequence[CellFile]) -> None:
    """Raise `FilesGoneError` unless files that no log names yet are there, as they were written."""
    if gone := missing_files(path, files):
        raise FilesGoneError(path=path, names=gone)


def write_entry(
    ticket: Ticket, write: Callable[[DeltaTable, CommitProperties], None]
) -> FoundCommit:
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
    before, properties = table.version(), commit_properties(ticket, transaction)
    with explaining_errors(ticket.path):
        try:
            write(table, properties)
        except Exception as error:  # the library has no common class for them
            # A later step, such as a checkpoint, may fail: only the log shows whether the entry is there.
            if (done := in_log(ticket, before)) is not None:
                return done
            _opened(ticket)
            if isinstance(error, CommitFailedError):
                raise CommitConflictError(path=ticket.path, found=str(error)) from error
            raise
    if (done := in_log(ticket, before)) is not None:
        return done
    raise CommitLostError(path=ticket.path, token=ticket.token, head_before=before)


def _opened(ticket: Ticket) -> tuple[DeltaTable, int]:
    """Open a table in which the ticket may come next, and give the ticket's transaction version."""
    with explaining_errors(ticket.path):
        table = opened_log(ticket.path)
    newest = table.transaction_version(ticket.app_id)
    for transaction in ticket.transactions:
        if newest is None or transaction > newest:
            return table, transaction
    raise CommitLostError(path=ticket.path, token=ticket.token, head_before=table.version())


def kept_log() -> PostCommitHookProperties:
    """Let deltalake write checkpoints, but delete nothing of the log."""
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


def _actions(
    gone: Sequence[NamedFile], added: Sequence[CellFile], columns: Sequence[str], *, new_rows: bool
) -> Iterator[AddAction | RemoveAction]:
    from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415

    now = time.time_ns() // 1_000_000
    for file in gone:
        yield RemoveAction(
            file.name,
            data_change=new_rows,
            deletion_timestamp=now,
            size=file.bytes,
            partition_values=partition_values(columns, file),
        )
    for file in added:
        yield AddAction(
            path=file.name,
            size=file.bytes,
            partition_values=partition_values(columns, file),
            modification_time=now,
            data_change=new_rows,
            stats=file.statistics,
        )
