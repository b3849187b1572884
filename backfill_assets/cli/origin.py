"""What the declarations were read from, and one hash of what all of that is now.

Nothing is watched. A package counts as a whole, and of the rest what the project's code names.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.models.function_query import ModuleQuery
from backfill_assets.models.own_modules import (
    INSTALLED,
    MODELS,
    PRODUCT,
    is_of_the_project,
    places_of_the_project,
    spec_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
        """Hash what all of it is now; equal hashes, equal declarations.

        Args:
            without: folders that hold what is computed, not declared.
        """
        digest = hashlib.sha256(f"{sys.version}\0{sys.prefix}\0".encode())
        for name in self._variables():
            digest.update(f"{name!r}={os.environ[name]!r}\0".encode())
        for folder in self.installed:
            digest.update(f"{folder!r} {_changed(folder)} {_listed(folder)}\0".encode())
        for _, files in self._places(without):
            for path in files:
                digest.update(os.fsencode(path) + b"\0" + _content(path) + b"\0")
        return digest.hexdigest()

    def settled(self, since: int, without: tuple[str, ...]) -> bool:
        """Whether all files and folders were last touched before an instant, in nanoseconds.

        Otherwise one may have been edited after it was imported and before it was hashed.
        """
        return all(
            (folder is None or _untouched(folder, since))
            and all(0 < _changed(path) < since for path in files)
            for folder, files in self._places(without)
        )

    def _variables(self) -> list[str]:
        words = frozenset(self.words)
        begins = tuple(one for one in words if one.endswith("_"))
        return sorted(one for one in os.environ if one in words or one.startswith(begins))

    def _places(self, without: tuple[str, ...]) -> Iterator[tuple[str | None, list[str]]]:
        """Every folder that counts, with its files; in the end the files that count alone."""
        seen = {*without}
        for top in (*self.packages, *self.folders):
            for folder, inner, names in os.walk(top):
                if folder in seen:
                    inner.clear()
                    continue
                seen.add(folder)
                # A link to a folder is not followed; a new one may be a new package all the same.
                links = [one for one in inner if Path(folder, one).is_symlink()]
                inner[:] = sorted(filter(_is_read, inner)) if top in self.packages else []
                yield folder, [str(Path(folder, one)) for one in sorted((*names, *links))]
        yield None, [*self.files]


def origin_of(graph: Graph) -> Origin:
    """Tell what a graph was read from that this process has just imported."""
    queries = [one.query for one in graph.models.values() if isinstance(one.query, ModuleQuery)]
    # What a function imports only when it runs is in no `sys.modules` yet.
    later = {module.name for query in queries for module in query.modules}
    specs = [spec for name in {*sys.modules, *later} if (spec := _spec(name)) is not None]
    folders = _folders(one for one in specs if _is_alone(one))
    strings = {one for spec in specs for one in _strings(spec)}
    named = {*strings, *(file.path for query in queries for file in query.files)}
    beside = (str(Path.cwd()), *folders)
    return Origin(
        packages=_folders(one for one in specs if not _is_alone(one)),
        folders=folders,
        files=tuple(sorted({path for one in named for path in _files(one, beside)})),
        words=tuple(sorted(one for one in strings if one.isidentifier() and one != "_")),
        installed=tuple(
            one for one in sys.path if Path(one).is_dir() and not is_of_the_project(one)
        ),
    )


def _spec(name: str) -> ModuleSpec | None:
    module = sys.modules.get(name)
    found = spec_of(name) if module is None else getattr(module, "__spec__", None)
    return found if isinstance(found, ModuleSpec) else None  # a library may put anything there


def _is_alone(spec: ModuleSpec) -> bool:
    return "." not in spec.name and spec.submodule_search_locations is None


def _folders(specs: Iterable[ModuleSpec]) -> tuple[str, ...]:
    found = {
        place if Path(place).is_dir() else str(Path(place).parent)
        for spec in specs
        for place in places_of_the_project(spec)
    }
    return tuple(sorted(found))


def _strings(spec: ModuleSpec) -> Iterator[str]:
    """The strings of a module that a catalog may be made of; what the product reads are settings."""
    if spec.name.partition(".")[0] == PRODUCT and not f"{spec.name}.".startswith(f"{MODELS}."):
        return
    for place in places_of_the_project(spec):
        if place.endswith(".py"):
            for node in ast.walk(ast.parse(Path(place).read_bytes())):
                match node:
                    case ast.Constant(value=str(found)) if len(found) <= _LONGEST_NAME:
                        yield found
                    case _:
                        continue


def _files(name: str, beside: Iterable[str]) -> Iterator[str]:
    for folder in beside:
        path = os.path.join(folder, name)  # noqa: PTH118 - a string that need not be a path
        if os.path.isfile(path):  # noqa: PTH113 - the same
            yield path


def _is_read(folder: str) -> bool:
    """Whether what lies in a folder counts: not what is hidden, installed or compiled."""
    return not (folder.startswith(".") or folder in {_BYTECODE, *INSTALLED})


def _untouched(folder: str, since: int) -> bool:
    """Whether a folder's entries are those of before an instant, but for its bytecode."""
    return _changed(folder) < since or _changed(str(Path(folder, _BYTECODE))) >= since


def _changed(path: str) -> int:
    try:
        found = Path(path).stat()
    except OSError:
        return 0
    return max(found.st_mtime_ns, found.st_ctime_ns)


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except OSError:
        return []


def _content(path: str) -> bytes:
    place = Path(path)
    try:
        return hashlib.sha256(place.read_bytes()).digest() if place.is_file() else b"no file"
    except OSError:
        return b"absent"
