"""Collect garbage: old files of tables in use, and whole tables that are not needed any more.

Only `backfill gc` calls this. The caller holds the table's commit lock, because the files of a commit
in progress are in no log yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.warehouse.files.cell_files import ANY_FOLDER, is_written
from backfill_assets.warehouse.files.housekeeping import created_by
from backfill_assets.warehouse.files.table_files import (
    delete_empty_folders,
    delete_files,
    file_changes,
    stored_files,
)
from backfill_assets.warehouse.log.delta_log import (
    ABSENT,
    LOG_FOLDER,
    head,
    is_table,
    logged_commit,
)
from backfill_assets.warehouse.log.places import file_system, folder_entries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backfill_assets.warehouse.files.table_files import StoredFile


GRACE = timedelta(days=1)
"""How long a file that is not needed any more stays: readers may use it, or a batch may still commit it."""


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What a vacuum deleted, or would delete.

    Attributes:
        path: of the table.
        files: their paths below it.
        bytes: their size.
    """

    path: str
    files: tuple[str, ...]
    bytes: int


def vacuum(
    path: str, *, keep_from: int, now: datetime, grace: timedelta, dry_run: bool
) -> Vacuumed:
    """Delete files that no delta_version from `keep_from` on needs.

    The log names these files. Delta's own VACUUM only takes a time before the instant of its run, so it
    may delete files of versions that must stay.

    Args:
        path: of a table of ours, whose commit lock the caller holds.
        keep_from: the oldest delta_version that a pin or a promise still needs.
        now: the instant (UTC).
        grace: how long a file stays anyway, for readers that use it.
        dry_run: only report what would be deleted.

    Raises:
        RequestError: the table has no such version.
        RequestError: another system made the table.
        CorruptTableError: the log is damaged.
    """
    newest = head(path)
    if not 0 <= keep_from <= newest:
        raise RequestError(
            found=f"{path} must stay readable from delta_version {keep_from} on, but its log ends "
            f"at {newest}",
            do="Nothing was deleted; the state and the table don't belong together",
        )
    _refuse_foreign(path)
    needed = _needed(path, keep_from, now - grace)
    old = _old(stored_files(path), now - grace)
    going = [file for file in old if file.name not in needed]
    return _delete_old(path, going, now - grace, dry_run=dry_run)


def vacuum_unborn(path: str, *, now: datetime, grace: timedelta, dry_run: bool) -> Vacuumed:
    """Delete the files of batches that died before their table was made.

    Args:
        path: where a table of ours will lie, whose commit lock the caller holds.
        now: the instant (UTC).
        grace: how long a file stays anyway, for the batch that writes it.
        dry_run: only report what would be deleted.
    """
    if head(path) != ABSENT:
        return Vacuumed(path, (), 0)
    ours = [file for file in stored_files(path) if is_written(file.name)]
    return _delete_old(path, _old(ours, now - grace), now - grace, dry_run=dry_run)


def _old(files: Sequence[StoredFile], before: datetime) -> list[StoredFile]:
    """Choose the files that are old, but none in a folder in which a batch still writes."""
    busy = {_folder(file) for file in files if file.written >= before and is_written(file.name)}
    return [file for file in files if file.written < before and _folder(file) not in busy]


def _folder(file: StoredFile) -> str:
    return file.name.split("/")[0]


def _delete_old(
    path: str, going: Sequence[StoredFile], before: datetime, *, dry_run: bool
) -> Vacuumed:
    if not dry_run:
        delete_files(path, [file.name for file in going])
        delete_empty_folders(path, ANY_FOLDER, before)
    return Vacuumed(path, tuple(file.name for file in going), sum(file.bytes for file in going))


def _needed(path: str, keep_from: int, gone_since: datetime) -> set[str]:
    """Name every file that a kept version reads, or that was removed too lately to be deleted."""
    needed: set[str] = set()
    for commit in file_changes(path):
        if commit.delta_version <= keep_from and commit.removed_at < gone_since:
            needed -= commit.removed
        needed |= commit.added
    return needed


def delete_table(path: str) -> None:
    """Delete a table that this project made, with its folder; a missing one is no error.

    Of a table that was never made, the files of its batches are deleted.

    The first commit, which carries our mark, is deleted last, so that an interrupted deletion can be finished.

    Raises:
        RequestError: its log does not begin with our mark.
    """
    if not is_table(path):
        names = (file.name for file in stored_files(path) if is_written(file.name))
        delete_files(path, names)
        return
    _refuse_foreign(path)
    store, root = file_system(path)
    first = f"{0:020d}.json"
    for entry in (*folder_entries(store, root), *folder_entries(store, f"{root}/{LOG_FOLDER}")):
        if entry.base_name in (LOG_FOLDER, first):
            continue
        if entry.is_file:
            store.delete_file(entry.path)
        else:
            store.delete_dir(entry.path)
    store.delete_dir(root)


def _refuse_foreign(path: str) -> None:
    if created_by(logged_commit(path, 0).metadata) is None:
        raise RequestError(
            found=f"{path} was not made by this project: its log does not begin with our mark. "
            "Nothing was deleted",
            do="remove it by hand if it is to go",
        )
