"""Filled worlds, each made once in a test run and copied for every test that begins with it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

STATE = "state.db"


@dataclass(frozen=True)
class Kept:
    """A data folder with its state, never written to again.

    Attributes:
        folder: where it lies.
        runs: how many runs there were in it, so that the next one gets a name of its own.
    """

    folder: Path
    runs: int

    def copy_to(self, root: Path) -> None:
        """Give a world this folder's tables and state; its store may be open, and empty."""
        _copy(self.folder, root)


@dataclass
class Beginnings:
    """The filled worlds of a test run, by what was asked of each.

    Attributes:
        folder: under which they are kept.
        kept: by what was asked; compared, since graphs have no hash.
    """

    folder: Path
    kept: list[tuple[object, Kept]] = field(default_factory=list[tuple[object, Kept]])

    def find(self, asked: object) -> Kept | None:
        """Find the world of an equal question."""
        return next((found for key, found in self.kept if key == asked), None)

    def keep(self, asked: object, root: Path, runs: int) -> None:
        """Keep a copy of a world as it is now."""
        folder = self.folder / str(len(self.kept))
        folder.mkdir()
        _copy(root, folder)
        self.kept.append((asked, Kept(folder, runs)))


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(f"{STATE}*"))
    with (
        closing(sqlite3.connect(source / STATE)) as found,
        closing(sqlite3.connect(target / STATE)) as made,
    ):
        found.backup(made)
