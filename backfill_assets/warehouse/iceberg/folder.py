"""The folder of a table's Iceberg metadata, `_iceberg` below the table, on a disk or in an object store."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

from backfill_assets.warehouse.log.places import file_system, folder_entries, local_folder

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

_FOLDER = "_iceberg"


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the metadata of one table lies. A file of it is written once, whole, and never changed.

    Attributes:
        table: the URI of the table.
    """

    table: str

    @classmethod
    def of(cls, path: str) -> Folder:
        """Give the folder of the table at a path or URI; it need not be there yet."""
        local = local_folder(path)
        # Not escaped: no reader of Iceberg's undoes it.
        return cls(path.rstrip("/") if local is None else f"file://{local.absolute()}")

    @property
    def location(self) -> str:
        """Its URI."""
        return f"{self.table}/{_FOLDER}"

    def new_name(self, kind: str, ending: str) -> str:
        """Give the URI of a new file."""
        return f"{self.location}/{kind}-{token_hex(16)}.{ending}"

    def write(self, location: str, content: bytes) -> None:
        """Write a new file, and make the folder for it."""
        local = local_folder(location)
        if local is None:
            store, path = file_system(location)
            with store.open_output_stream(path) as stream:
                stream.write(content)
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(content)

    def read(self, location: str) -> bytes | None:
        """Read a file, which may be of another table's folder; None if it was deleted."""
        local = local_folder(location)
        try:
            if local is not None:
                return local.read_bytes()
            store, path = file_system(location)
            with store.open_input_stream(path) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def written_at(self, location: str) -> datetime | None:
        """Say when a file was written (UTC); None if it was deleted."""
        store, path = file_system(location)
        (file,) = store.get_file_info([path])
        return file.mtime

    def keep_only(self, locations: Collection[str], since: datetime) -> None:
        """Delete every file but these, and but those that were written since an instant."""
        names = {location.rsplit("/", 1)[-1] for location in locations}
        store, path = file_system(self.location)
        for file in folder_entries(store, path):
            if file.base_name not in names and (file.mtime or since) < since:
                store.delete_file(file.path)
