"""A disk of its own for a ledger's data: it can run full, or be made read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from backfill_assets_tests.e2e.polling import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets_tests.faults.ledger import Ledger

_SIZE, _BLOCK = 64 * 2**20, 4096


class NoDiskError(Exception):
    """Only root may mount."""


@contextmanager
def own_disk(ledger: Ledger) -> Iterator[Disk]:
    """Move the data of a ledger to a small disk of its own, for as long as the context is open.

    Raises:
        NoDiskError: only root may do so.
    """
    aside = ledger.data.with_name("aside")
    ledger.data.rename(aside)
    ledger.data.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(ledger.data)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        ledger.data.rmdir()
        aside.rename(ledger.data)
        raise NoDiskError(mounted.stderr.strip())
    try:
        shutil.copytree(aside, ledger.data, dirs_exist_ok=True)
        yield Disk(ledger.data)
    finally:
        shutil.rmtree(aside)
        shutil.copytree(ledger.data, aside)
        subprocess.run(["umount", "-l", str(ledger.data)], check=True)
        ledger.data.rmdir()
        aside.rename(ledger.data)


def is_own_disk(folder: Path) -> bool:
    """Whether a folder is one of those that `own_disk` mounts."""
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize <= _SIZE


class Disk:
    """A mounted disk."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ballast = folder, folder / "ballast"

    def fill(self, left: int) -> None:
        """Leave so many bytes."""
        found = os.statvfs(self._folder)
        room = max(0, found.f_bavail * found.f_frsize - left)
        with self._ballast.open("wb", buffering=0) as out, suppress(OSError):
            while room > 0:
                room -= out.write(b"\0" * min(room, _BLOCK))

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink()

    def read_only(self, *, really: bool) -> None:
        """Let nothing be written, or anything again."""
        how = "ro" if really else "rw"
        command = ["mount", "-o", f"remount,{how}", str(self._folder)]

        def done() -> bool:  # not while somebody just has a file open for writing
            return subprocess.run(command, check=False, capture_output=True).returncode == 0

        until(done, seconds=60, what=f"the disk is {how}", every=0.02)
