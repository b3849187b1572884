"""Files in memory, as pyiceberg reads and writes them; `Folder` brings them to where they belong."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, cast

from pyiceberg.io import InputFile, OutputFile

if TYPE_CHECKING:
    from pyiceberg.io import InputStream, OutputStream


class _Kept(BytesIO):
    """A stream whose content can be read after it was closed."""

    content = b""

    def close(self) -> None:
        if not self.closed:
            self.content = self.getvalue()
        super().close()


class MemoryFile(InputFile, OutputFile):
    """A file that is written, or read, in memory.

    Args:
        location: where it lies, or will lie.
        content: of a file that is read.
    """

    def __init__(self, location: str, content: bytes = b"") -> None:
        super().__init__(location)
        self._content = content
        self._stream: _Kept | None = None

    @property
    def content(self) -> bytes:
        """What was written so far, or is read."""
        if self._stream is None:
            return self._content
        return self._stream.content if self._stream.closed else self._stream.getvalue()

    def __len__(self) -> int:
        return len(self.content)

    def exists(self) -> bool:
        """Say that it is there: it is in memory."""
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - pyiceberg's
        """Open it for reading."""
        return cast("InputStream", BytesIO(self.content))

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002, FBT001, FBT002
        """Open it for writing."""
        self._stream = _Kept()
        return cast("OutputStream", self._stream)

    def to_input_file(self) -> MemoryFile:
        """Give it as one to read."""
        return self
