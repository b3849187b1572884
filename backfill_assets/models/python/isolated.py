"""Run a snapshot's modules under private names, apart from other snapshots and the files on disk.

The modules are in `sys.modules` below a package that is named after their content. Each has its own
``__import__``: it takes what the snapshot stores from the snapshot, and everything else from what is
installed. So a snapshot sees neither other snapshots nor the files that have the same names on disk.
"""

from __future__ import annotations

import atexit
import builtins
import hashlib
import linecache
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from backfill_assets.models.python.own_modules import absolute_name, by_name, is_own, with_packages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.models.python.own_modules import StoredModule

PREFIX = "_snapshot_"
_LOADING = RLock()
_LOADED: dict[str, Isolated] = {}


class Isolated:
    """The modules of one snapshot, imported as they are asked for.

    Attributes:
        package: the private name below which they live.
    """

    def __init__(
        self, digest: str, modules: tuple[StoredModule, ...], files: Mapping[str, bytes]
    ) -> None:
        self.package = f"{PREFIX}{digest}"
        self.stored = modules
        self.files = files
        self._modules = by_name(modules)
        self._packages = {
            package for name in self._modules for package in with_packages(name)[:-1]
        } - self._modules.keys()  # of these only submodules are the snapshot's
        self._families = {name.partition(".")[0] for name in self._modules}
        self._root = _written(files) if files else Path(self.package)
        root = ModuleType(self.package)
        root.__path__ = []
        sys.modules[self.package] = root

    def module(self, name: str) -> ModuleType:
        """Import one of the modules, after its packages.

        Raises:
            ModuleNotFoundError: the snapshot has none of that name.
        """
        with _LOADING:
            private = f"{self.package}.{name}"
            module = sys.modules.get(private)
            if module is not None:
                return module
            package, _, last = name.rpartition(".")
            parent = self.module(package) if package else sys.modules[self.package]
            module = sys.modules.get(private)
            if module is None:  # its package may have imported it
                module = self._run(name, private)
            setattr(parent, last, module)
            return module

    def _run(self, name: str, private: str) -> ModuleType:
        module = ModuleType(private)
        if name in self._packages:
            module.__path__ = []
            _stand_in(module, name)
            sys.modules[private] = module
            return module
        stored = self._modules.get(name)
        if stored is None:
            raise _not_stored(name)
        self._prepare(module, stored)
        sys.modules[private] = module
        try:
            exec(  # noqa: S102 - our own stored code
                compile(stored.source, module.__file__ or name, "exec", dont_inherit=True),
                vars(module),
            )
        except BaseException:
            del sys.modules[private]
            raise
        return sys.modules[private]

    def _prepare(self, module: ModuleType, stored: StoredModule) -> None:
        """Set the attributes that a module has before its first statement runs."""
        parts = stored.name.split(".")
        place = self._root.joinpath(*parts)
        file = place / "__init__.py" if stored.is_package else place.with_suffix(".py")
        module.__file__ = str(file)
        module.__package__ = f"{self.package}.{stored.package}".rstrip(".")
        if stored.is_package:
            module.__path__ = []
        own = {**vars(builtins), "__import__": partial(self._import, stored.package)}
        vars(module)["__builtins__"] = own
        lines = stored.source.splitlines(keepends=True)  # for `inspect` and tracebacks
        linecache.cache[str(file)] = (len(stored.source), None, lines, str(file))

    def _import(
        self,
        package: str,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the signature of `__import__`
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import for one of the modules: the snapshot's own ones, else what is installed."""
        absolute = absolute_name(name, package, level) if level else name
        if not self._holds(absolute):
            if level or self._would_be_own(absolute):
                raise _not_stored(absolute or name)
            imported = builtins.__import__(name, globals, locals, fromlist or (), 0)
            top = name.partition(".")[0]
            return imported if fromlist or top not in self._packages else self.module(top)
        imported = self.module(absolute)
        if not fromlist:
            return self.module(absolute.partition(".")[0])
        attributes = getattr(imported, "__all__", ()) if "*" in fromlist else fromlist
        for attribute in attributes:
            if not hasattr(imported, attribute) and self._holds(f"{absolute}.{attribute}"):
                self.module(f"{absolute}.{attribute}")
        return imported

    def _holds(self, name: str) -> bool:
        return name in self._modules or name in self._packages

    def _would_be_own(self, name: str) -> bool:
        """Whether a module that the snapshot lacks is one of the project that has come since."""
        return any(is_own(name, family) for family in self._families)


def isolated(modules: tuple[StoredModule, ...], files: Mapping[str, bytes]) -> Isolated:
    """Give the isolated modules of a snapshot; equal content is imported once in a process."""
    digest = _digest(modules, files)
    with _LOADING:
        if digest not in _LOADED:
            _LOADED[digest] = Isolated(digest, modules, files)
        return _LOADED[digest]


def isolated_origin(module: str) -> tuple[Isolated, str] | None:
    """Give the snapshot of a module with a private name, and the name it is stored under; None for any other."""
    package, _, name = module.partition(".")
    for loaded in tuple(_LOADED.values()):
        if loaded.package == package and name:
            return loaded, name
    return None


def _digest(modules: tuple[StoredModule, ...], files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for stored in modules:
        digest.update(
            f"{stored.name}\0{stored.is_package}\0{len(stored.source)}\0{stored.source}".encode()
        )
    for path, content in sorted(files.items()):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _stand_in(module: ModuleType, name: str) -> None:
    """Let a package outside of the snapshot give the attributes of the installed one of that name."""

    def installed(attribute: str) -> object:
        with suppress(ImportError):
            return getattr(builtins.__import__(name, fromlist=("*",)), attribute)
        message = f"module '{name}' has no attribute '{attribute}'"
        raise AttributeError(message)

    vars(module)["__getattr__"] = installed


def _written(files: Mapping[str, bytes]) -> Path:
    """Write a snapshot's files where its modules seem to lie, for as long as this process lives."""
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return root


def _not_stored(name: str) -> ModuleNotFoundError:
    message = (
        f"No module named '{name}' in this snapshot: it stores the modules that its model imported "
        "when it was declared"
    )
    return ModuleNotFoundError(message, name=name)
