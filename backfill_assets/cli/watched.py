"""What an import of the catalog depended on, and one hash of what all of that is now."""

from __future__ import annotations

import hashlib
import os
import site
import sys
import sysconfig
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CODE = (".py", ".sql")
_WRITING = frozenset("wax+")


@dataclass(frozen=True, slots=True)
class Watched:
    """What an import depended on.

    Attributes:
        files: every file of the project that it read: modules, SQL, whatever was opened below
            the current folder or beside a module.
        folders: those in which such files lie: one more module there may be one more model.
        endings: of the files that count in these folders.
        variables: of the environment that the project's own code asked for.
        installed: the folders of installed packages; installing anything touches them.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    endings: tuple[str, ...]
    variables: tuple[str, ...]
    installed: tuple[str, ...]

    def state(self) -> str:
        """Hash what all of it is now; equal hashes, equal declarations."""
        digest = hashlib.sha256(f"{sys.version}\0{sys.prefix}\0".encode())
        for name in self.variables:
            digest.update(f"{name}={os.environ.get(name)!r}\0".encode())
        for folder in self.installed:
            digest.update(f"{folder} {_changed(folder)}\0".encode())
        for path in sorted({*self.files, *self._beside()}):
            digest.update(path.encode() + b"\0" + _content(path) + b"\0")
        return digest.hexdigest()

    def settled(self, since: int) -> bool:
        """Whether every file is there and was last touched before an instant, in nanoseconds.

        Otherwise somebody may have edited it after it was imported and before it was hashed.
        """
        return all(0 < _changed(path) < since for path in self.files)

    def _beside(self) -> Iterator[str]:
        """Every file of the folders that counts, and every folder in them that holds such files."""
        for folder in self.folders:
            for entry in _entries(folder):
                if entry.name.endswith(self.endings):
                    yield entry.path
                elif entry.is_dir() and _holds(entry, self.endings):
                    yield f"{entry.path}{os.sep}"


class Watching:
    """Notes what an import reads; for a process that does nothing else."""

    def __init__(self) -> None:
        self._opened: set[str] = set()
        self._variables: set[str] = set()
        self._packages = [*site.getsitepackages(), site.getusersitepackages()]
        self._foreign = tuple(
            f"{folder}{os.sep}" for folder in (*self._packages, sysconfig.get_paths()["stdlib"])
        )

    @contextmanager
    def on(self) -> Iterator[None]:
        """Note every file that is opened, and every variable that the project asks for."""
        # An audit hook can't be taken off again: one more reason for a process of its own.
        sys.addaudithook(self._note_file)
        environment: Any = type(os.environ)
        with (
            _replaced(environment, "__getitem__", self._noting_variables),
            _replaced(SourceFileLoader, "path_stats", self._from_source),
        ):
            yield

    def _noting_variables(self, asked: Callable[..., str]) -> Callable[..., str]:
        def noted(variables: object, name: str) -> str:
            if self._is_ours(_asker()):
                self._variables.add(name)
            return asked(variables, name)

        return noted

    def _from_source(self, stats: Callable[..., Any]) -> Callable[..., Any]:
        """Compile the project's modules anew: bytecode can't tell two edits within one second."""

        def of_others(loader: SourceFileLoader, path: str) -> Any:  # noqa: ANN401 - importlib's own
            if self._is_ours(path):
                raise OSError(path)  # importlib then looks at no bytecode, and writes none
            return stats(loader, path)

        return of_others

    def watched(self) -> Watched:
        """Tell what the import depended on."""
        modules = {
            str(Path(file).absolute())
            for module in list(sys.modules.values())
            if (file := getattr(module, "__file__", None)) and self._is_ours(file)
        }
        roots = tuple(
            {f"{Path.cwd()}{os.sep}", *(f"{Path(one).parent}{os.sep}" for one in modules)}
        )
        # A module that a model imports only when it runs may lie where nothing was imported from.
        opened = {
            one
            for one in self._opened
            if (one.startswith(roots) or one.endswith(_CODE)) and Path(one).is_file()
        }
        files = modules | opened
        return Watched(
            files=tuple(sorted(files)),
            folders=tuple(sorted({str(Path(path).parent) for path in files})),
            endings=tuple(sorted({*_CODE, *(Path(path).suffix for path in opened)} - {""})),
            variables=tuple(sorted(self._variables)),
            installed=tuple(folder for folder in self._packages if Path(folder).is_dir()),
        )

    def _note_file(self, event: str, found: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(found[0], (str, bytes)):
            return
        path = str(Path(os.fsdecode(found[0])).absolute())
        is_read = not _WRITING & {*(found[1] or "")}
        if is_read and self._is_ours(path) and not path.endswith(".pyc"):
            self._opened.add(path)

    def _is_ours(self, file: str) -> bool:
        """Whether a file is of the project: neither Python's own nor of an installed package."""
        path = os.path.abspath(file)  # noqa: PTH100 - called for every file that is opened
        return not file.startswith("<") and not path.startswith(self._foreign)


@contextmanager
def _replaced(
    kind: Any,  # noqa: ANN401 - any class
    name: str,
    other: Callable[[Any], Any],
) -> Iterator[None]:
    """Put something else in the place of a method, for a while."""
    own = getattr(kind, name)
    setattr(kind, name, other(own))
    try:
        yield
    finally:
        setattr(kind, name, own)


def _asker() -> str:
    """The file of the code that asked for a variable, past the library that passes it on."""
    frame = sys._getframe(2)  # noqa: SLF001 - what `inspect` does, without its cost
    passing = (os.__file__, "<frozen _collections_abc>", "<frozen os>")
    while frame.f_back and frame.f_code.co_filename in passing:
        frame = frame.f_back
    return frame.f_code.co_filename


def _changed(path: str) -> int:
    try:
        found = Path(path).stat()
    except OSError:
        return 0
    return max(found.st_mtime_ns, found.st_ctime_ns)


def _content(path: str) -> bytes:
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError:
        return b"absent"  # a folder, or a file that has gone


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _holds(entry: os.DirEntry[str], endings: tuple[str, ...]) -> bool:
    return any(one.name.endswith(endings) for one in _entries(entry.path))
