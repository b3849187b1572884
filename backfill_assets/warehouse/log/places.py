"""Open the place where a table or a folder lies: a disk of this machine, or an object store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


_OF_ITS_OWN = re.compile(r"/|[a-z][a-z0-9+.-]*:/", re.IGNORECASE)


def lies_elsewhere(name: str) -> bool:
    """Whether a table's log names a file by a place of its own, as that of a shallow clone does."""
    return _OF_ITS_OWN.match(name) is not None


def local_folder(path: str) -> Path | None:
    """Give a folder or file on this machine's disks; None for a URI of another store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if "://" in path else Path(path)


def file_system(path: str) -> tuple[FileSystem, str]:
    """Give the file system in which a path or URI lies, and its path there."""
    from pyarrow.fs import FileSystem, LocalFileSystem  # noqa: PLC0415 - slow to import

    local = local_folder(path)
    if local is not None:
        return LocalFileSystem(), str(local.absolute())
    return FileSystem.from_uri(path.rstrip("/"))


def folder_entries(store: FileSystem, folder: str, *, recursive: bool = False) -> list[FileInfo]:
    """List what a folder of a file system holds; nothing if it is not there."""
    from pyarrow.fs import FileSelector  # noqa: PLC0415 - slow to import

    return store.get_file_info(FileSelector(folder, recursive=recursive, allow_not_found=True))
