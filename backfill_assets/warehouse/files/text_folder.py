"""A folder of small texts, on a disk or in an object store; each is replaced as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

from backfill_assets.warehouse.log.places import file_system, folder_entries, local_folder

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class TextFolder:
    """A folder that holds texts, and no folder.

    Attributes:
        location: its path or URI; it need not be there yet.
    """

    location: str

    def write(self, texts: dict[str, bytes]) -> None:
        """Write texts by their names, in order, for their owner alone; each is there whole or not at all.

        Raises:
            OSError: one can't be written; those before it are.
        """
        local = local_folder(self.location)
        if local is not None:
            local.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            if local is None:
                self._put(name, text)
            else:
                # For its owner alone, whatever the umask.
                replace_whole(local / name, text, mode=0o600)

    def keep_only(self, names: set[str]) -> None:
        """Delete every other file: drafts of a process that died, and parts that are no more.

        Raises:
            OSError: one can't be deleted.
        """
        local = local_folder(self.location)
        if local is not None:
            for file in local.iterdir():
                if file.is_file() and file.name not in names:
                    file.unlink(missing_ok=True)  # another process may clear up, too
            return
        store, path = file_system(self.location)
        for info in folder_entries(store, path):
            if info.base_name not in names:
                store.delete_file(info.path)

    def _put(self, name: str, text: bytes) -> None:
        store, path = file_system(f"{self.location.rstrip('/')}/{name}")
        with store.open_output_stream(path) as stream:
            stream.write(text)


def replace_whole(file: Path, text: bytes, *, mode: int) -> None:
    """Replace a file in one step: a reader finds the old text or the new one.

    Raises:
        OSError: it can't be written; what was there is as it was.
    """
    draft = file.with_name(f".{file.name}.{token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text)
        draft.replace(file)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
