"""What the declarations were read from, and one hash of the present state of these files and folders.

Nothing is watched. A package counts as a whole, and of the rest what the project's code names.
"""

from __future__ import annotations

import ast
import hashlib
import os
import stat
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.models.python.function_query import ModuleQuery
from backfill_assets.models.python.own_modules import (
    INSTALLED,
    is_of_the_project,
    is_own,
    places_of_the_project,
    spec_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.graph import Graph

_BYTECODE = "__pycache__"
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Origin:
    """What the declarations were read from.

    Attributes:
        packages: the folders of the project's packages; every file below them counts.
        folders: those of modules that lie in no package; the files in them count.
        files: those elsewhere that a string in the project's code names.
        words: the strings in the project's code that may name a variable of the environment, or be
            the beginning of a name, up to an underscore.
        installed: the other folders on the search path; installing anything changes one of them.
    """

    packages: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...]
    words: tuple[str, ...]
    installed: tuple[str, ...]

    def state(self, without: tuple[str, ...]) -> str:
        """Hash the marks of all of it; equal hashes, equal declarations.

        Args:
            without: folders that hold what is computed, not declared.
        """
        digest = hashlib.sha256(f"{sys.version}\0{sys.prefix}\0".encode())
        for name in self._variables():
            digest.update(f"{name!r}={os.environ[name]!r}\0".encode())
        counting = (path for _, files in self._places(without) for path in files)
        for path in (*self.installed, *counting):
            digest.update(os.fsencode(path) + b"\0" + _mark(path) + b"\0")
        return digest.hexdigest()

    def settled(self, since: int, without: tuple[str, ...]) -> bool:
        """Whether all files and folders were last touched before an instant, in nanoseconds.

        Else a file may have been edited after it was imported and before it was hashed.
        """
        return all(
            (folder is None or _untouched(folder, since))
            and all(0 < _changed(path) < since for path in files)
            for folder, files in self._places(without)
        )

    def _variables(self) -> list[str]:
        words = frozenset(self.words)
        begins = tuple(word for word in words if word.endswith("_"))
        return sorted(name for name in os.environ if name in words or name.startswith(begins))

    def _places(self, without: tuple[str, ...]) -> Iterator[tuple[str | None, list[str]]]:
        """Every folder that counts, with its files; in the end the files that count alone."""
        seen = {*without}
        for top in (*self.packages, *self.folders):
            for folder, inner, names in os.walk(top):
                if folder in seen:
                    inner.clear()
                    continue
                seen.add(folder)
                # A link to a folder is not followed; a new link may still be a new package.
                links = [entry for entry in inner if Path(folder, entry).is_symlink()]
                inner[:] = sorted(filter(_is_read, inner)) if top in self.packages else []
                yield folder, [str(Path(folder, entry)) for entry in sorted((*names, *links))]
        yield None, [*self.files]


def origin_of(graph: Graph) -> Origin:
    """Tell what a graph was read from that this process has just imported."""
    queries = [
        query
        for model in graph.models.values()
        for query in model.functions
        if isinstance(query, ModuleQuery)
    ]
    # What a function imports only when it runs is in no `sys.modules` yet.
    later = {module.name for query in queries for module in query.modules}
    packages, folders, strings = set[str](), set[str](), set[str]()
    for spec in filter(None, map(_spec, {*sys.modules, *later})):
        alone = "." not in spec.name and spec.submodule_search_locations is None
        for place in map(Path, places_of_the_project(spec)):
            (folders if alone else packages).add(str(place if place.is_dir() else place.parent))
            if place.suffix == ".py" and is_own(spec.name, spec.name.partition(".")[0]):
                strings.update(_strings(place))
    named = {*strings, *(file.path for query in queries for file in query.files)}
    beside = [os.path.join(top, name) for top in (Path.cwd(), *folders) for name in named]  # noqa: PTH118
    return Origin(
        packages=tuple(sorted(packages)),
        folders=tuple(sorted(folders)),
        files=tuple(sorted({*filter(os.path.isfile, beside)})),
        words=tuple(
            sorted(string for string in strings if string.isidentifier() and string != "_")
        ),
        installed=tuple(
            folder for folder in sys.path if Path(folder).is_dir() and not is_of_the_project(folder)
        ),
    )


def _spec(name: str) -> ModuleSpec | None:
    module = sys.modules.get(name)
    spec = spec_of(name) if module is None else getattr(module, "__spec__", None)
    return spec if isinstance(spec, ModuleSpec) else None  # a library may put anything there


def _strings(module: Path) -> Iterator[str]:
    """The strings of a module that may name something; a longer one is no name of a file."""
    for node in ast.walk(ast.parse(module.read_bytes())):
        match node:
            case ast.Constant(value=str(text)) if len(text) <= _LONGEST_NAME:
                yield text
            case _:
                continue


def _is_read(folder: str) -> bool:
    """Whether what lies in a folder counts: not what is hidden, installed or compiled."""
    return not (folder.startswith(".") or folder in {_BYTECODE, *INSTALLED})


def _untouched(folder: str, since: int) -> bool:
    """Whether a folder's entries are those of before an instant, but for its bytecode."""
    return _changed(folder) < since or _changed(str(Path(folder, _BYTECODE))) >= since


def _changed(path: str) -> int:
    try:
        status = Path(path).stat()
    except OSError:
        return 0
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _mark(path: str) -> bytes:
    """Name what a file or folder holds by what changes with it; a folder also by its entries.

    No file is read: data may lie below a package. The instant of the last change of an inode can't be
    set, so an edit that keeps a file's size and date is seen too.
    """
    try:
        status = Path(path).stat()
        entries = sorted(os.listdir(path)) if stat.S_ISDIR(status.st_mode) else []  # noqa: PTH208 - names
    except OSError:
        return b""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {entries}".encode()
