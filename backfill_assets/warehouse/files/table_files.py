"""List the data files of a table of ours: those that its log names, and those in its folder."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from backfill_assets.warehouse.log.delta_log import ABSENT, LOG_FOLDER, actions_of, head
from backfill_assets.warehouse.log.places import file_system, folder_entries, local_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Which files one commit added, and which it removed.

    Attributes:
        delta_version: of the commit.
        added: paths below the table.
        removed: paths of files that later versions don't read; they still exist.
        removed_at: when the commit removed them, by the writer's clock.
    """

    delta_version: int
    added: frozenset[str]
    removed: frozenset[str]
    removed_at: datetime


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file that lies in a table's folder, whether the log names it or not.

    Attributes:
        name: its path below the table.
        bytes: its size.
        written: when.
    """

    name: str
    bytes: int
    written: datetime


def file_changes(path: str) -> Iterator[FileChanges]:
    """Read from the log which files were added and removed, commit by commit.

    Raises:
        CorruptTableError: a commit is missing or can't be read.
    """
    for number in range(ABSENT + 1, head(path) + 1):
        actions = actions_of(path, number)
        removed = [action["remove"] for action in actions if "remove" in action]
        times = [int(file.get("deletionTimestamp") or 0) for file in removed]
        yield FileChanges(
            number,
            added=frozenset(
                unquote(action["add"]["path"]) for action in actions if "add" in action
            ),
            removed=frozenset(unquote(file["path"]) for file in removed),
            removed_at=datetime.fromtimestamp(max(times, default=0) / 1000, UTC),
        )


def stored_files(path: str) -> list[StoredFile]:
    """List the data files in any folder below a table."""
    folder = local_folder(path)
    if folder is None:
        return _remote_files(path)
    return [*_local_files(folder)]


def _local_files(table: Path) -> Iterator[StoredFile]:
    """Find the data files; batches write and move theirs meanwhile, so one may have disappeared."""
    for folder, folders, names in os.walk(table):
        folders[:] = sorted(name for name in folders if name != LOG_FOLDER)
        for name in sorted(names):
            file = Path(folder, name)
            if file.suffix == _SUFFIX:
                with suppress(FileNotFoundError):
                    status = file.stat()
                    written = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield StoredFile(str(file.relative_to(table)), status.st_size, written)


def delete_files(path: str, names: Iterable[str]) -> None:
    """Delete files by their paths below a table; a missing one is no error."""
    folder = local_folder(path)
    if folder is not None:
        for name in names:
            file = folder / name
            file.unlink(missing_ok=True)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            _remove_empty(file.parent, folder)
        return
    store, root = file_system(path)
    for name in names:
        with suppress(FileNotFoundError):
            store.delete_file(f"{root}/{name}")


def delete_empty_folders(path: str, pattern: str, before: datetime) -> None:
    """Delete folders below a table that hold no file and have not changed since an instant.

    Args:
        path: of the table; an object store has no folders.
        pattern: of their names.
        before: the instant (UTC).
    """
    table = local_folder(path)
    if table is None:
        return
    for folder in table.glob(pattern):
        with suppress(FileNotFoundError):  # a batch is writing there
            inside = [folder, *folder.rglob("*")]
            touched = max(entry.stat().st_mtime for entry in inside)
            if all(entry.is_dir() for entry in inside) and touched < before.timestamp():
                shutil.rmtree(folder, ignore_errors=True)
                _remove_empty(table, table)


def _remove_empty(lowest: Path, table: Path) -> None:
    """Remove empty folders, the table's own last."""
    for folder in (lowest, *lowest.parents):
        try:
            folder.rmdir()
        except OSError:  # the folder is not empty
            return
        if folder == table:
            return


def _remote_files(path: str) -> list[StoredFile]:
    store, root = file_system(path)
    infos = folder_entries(store, root, recursive=True)
    names = {info.path.removeprefix(f"{root}/"): info for info in infos if info.is_file}
    return [
        StoredFile(name, info.size, info.mtime or _EPOCH)
        for name, info in sorted(names.items())
        if name.endswith(_SUFFIX) and not name.startswith(f"{LOG_FOLDER}/")
    ]
