"""A model's PySpark function, stored with the whole modules that it needs to run again later.

A snapshot stores the function's module and every own module that it imports, byte for byte, and
the files that the author declared. They run in isolation (`models.isolated`). `models.settled` finds
the parts that matter, and decides only whether an edit may be called no change.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import DeclarationError
from backfill_assets.models.python.bundling import compiled, could_be_cut_from
from backfill_assets.models.python.isolated import Isolated, isolated, isolated_origin
from backfill_assets.models.python.own_modules import StoredModule, own_modules
from backfill_assets.models.python.reflection import KeptStatements
from backfill_assets.models.python.settled import identity, kept
from backfill_assets.models.python.syntax import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LINES_SHOWN = 1_000


def _not_of_a_module(function: str) -> DeclarationError:
    return DeclarationError(
        found=f"model function '{function}' has no source at the top level of a module",
        do="define it with `def` at the top level of a file, under a name that is not assigned again",
    )


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that a model function reads.

    Attributes:
        path: below the root of the modules, with ``/``.
        content: its bytes in base64.
        declared: whether the author named it; else a module asks for it by `sql_file`.
    """

    path: str
    content: str
    declared: bool = True

    def shown(self) -> str:
        """What tells it from any other content, and its text, if it is one that a person reads."""
        content = base64.b64decode(self.content)
        head = (
            f"# {self.path}: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}"
        )
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return head
        return head if text.count("\n") > _LINES_SHOWN else f"{head}\n{text}"


@dataclass(frozen=True, slots=True)
class ModuleQuery:
    """A function ``(inputs, interval) -> DataFrame`` with its module and the own modules it imports.

    Attributes:
        name: of the function.
        module: the name of its module.
        modules: this module and all own ones that it imports, as they were written.
        files: what it reads besides its inputs.
    """

    name: str
    module: str
    modules: tuple[StoredModule, ...]
    files: tuple[StoredFile, ...] = ()

    def identity(self) -> str:
        """The code that decides its rows, as text: equal texts in one release of Python mean equal rows."""
        return _identity(self)

    def kept(self) -> tuple[KeptStatements, ...]:
        """The statements that may matter to it, by module."""
        return _kept(self)

    def shown(self) -> str:
        """The statements and files that may matter to it, for a person to read."""
        code = (
            f"# {kept.module.name}\n{ast.unparse(ast.Module([*kept.body], []))}"
            for kept in self.kept()
            if kept.body
        )
        return "\n\n".join([*code, *(file.shown() for file in self.files_that_matter())])

    def files_that_matter(self) -> list[StoredFile]:
        """The files that may decide its rows: all that are declared, and those of `sql_file` where it is called."""
        asks = any("sql_file" in words(kept.body) for kept in self.kept())
        return [file for file in self.files if file.declared or asks]

    def load(self) -> Callable[..., Any]:
        """Import the modules in isolation and give the function."""
        return getattr(self._isolated().module(self.module), self.name)

    def private_package(self) -> str:
        """The name in `sys.modules` below which its modules run."""
        return self._isolated().package

    def _isolated(self) -> Isolated:
        return isolated(
            self.modules, {file.path: base64.b64decode(file.content) for file in self.files}
        )


@dataclass(frozen=True, slots=True)
class FunctionQuery:
    """A function as releases up to 0.1 stored it: cut out of its module, normalised.

    Attributes:
        name: of the function inside the bundle.
        bundle: Python source of the code that those releases found it to need.
    """

    name: str
    bundle: str

    def identity(self) -> str:
        """The code that decides its rows: the bundle as this release of Python writes it."""
        return self.shown()

    def kept(self) -> tuple[KeptStatements, ...]:
        """Its statements, as those of one module."""
        module = StoredModule(f"bundle of {self.name}", self.bundle)
        return (KeptStatements(module, tuple(ast.parse(self.bundle).body)),)

    def shown(self) -> str:
        """The bundle as this release of Python writes it, whichever one bundled it."""
        return ast.unparse(ast.parse(self.bundle))

    def load(self) -> Callable[..., Any]:
        """Run the bundle in a module of its own and give the function."""
        module = sys.modules[self.private_package()]
        exec(compiled(self.bundle, f"<model {self.name}>"), module.__dict__)  # noqa: S102 - our own stored code
        return getattr(module, self.name)

    def private_package(self) -> str:
        """The name of the module that it runs in, which `sys.modules` holds: dataclasses look it up."""
        name = f"_model_bundle_{hashlib.sha256(self.bundle.encode()).hexdigest()[:16]}"
        if name not in sys.modules:
            sys.modules[name] = ModuleType(name)
        return name


def changed_code(before: ModuleQuery | FunctionQuery, after: ModuleQuery | FunctionQuery) -> bool:
    """Whether two forms of a function may give other rows, by today's reading of both."""
    match before, after:
        case FunctionQuery(), ModuleQuery():
            return not could_be_cut_from(before.bundle, before.name, after.module, after.kept())
        case _:
            return type(before) is not type(after) or before.identity() != after.identity()


def function_query(function: Callable[..., Any], *, reads_files: Iterable[str] = ()) -> ModuleQuery:
    """Take a model function with the modules that it is made of.

    Args:
        function: ``(inputs, interval) -> DataFrame``, at the top level of a module.
        reads_files: files that its code opens, as paths from the folder of its module; they are stored,
            and a change of one is a change of the model.

    Raises:
        DeclarationError: its source isn't the top level of a file.
        DeclarationError: it imports a module of the project that is no Python source.
        DeclarationError: a declared file isn't there, or lies elsewhere.
    """
    name = getattr(function, "__name__", repr(function))
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is None or getattr(module, name, None) is not function:
        raise _not_of_a_module(name)
    origin = isolated_origin(module.__name__)
    if origin is not None:  # a snapshot's module that declares its models once more
        snapshot, stored_name = origin
        return ModuleQuery(name, stored_name, snapshot.stored)
    modules = own_modules(module.__name__)
    if not modules:
        raise _not_of_a_module(name)
    folder = Path(module.__file__ or "").absolute().parent
    package = next(stored.package for stored in modules if stored.name == module.__name__)
    declared = [
        _file(folder / path, folder, package) or _refuse(name, path) for path in {*reads_files}
    ]
    files = {file.path: file for file in (*_sql_files(modules), *declared)}
    return ModuleQuery(name, module.__name__, modules, tuple(files[file] for file in sorted(files)))


def _file(place: Path, folder: Path, package: str, *, declared: bool = True) -> StoredFile | None:
    """Read a file below a package's folder; None where there is none."""
    place, folder = place.resolve(), folder.resolve()
    if not place.is_relative_to(folder) or not place.is_file():
        return None
    path = PurePosixPath(*package.split("."), place.relative_to(folder).as_posix())
    content = base64.b64encode(place.read_bytes()).decode()
    return StoredFile(str(path).lstrip("/"), content, declared)


def _refuse(function: str, path: str) -> StoredFile:
    raise DeclarationError(
        found=f"model function '{function}' is declared to read '{path}', but no such file lies "
        "below the folder of its module",
        do="name a file there, as a path from that folder",
    )


def _sql_files(modules: tuple[StoredModule, ...]) -> Iterator[StoredFile]:
    """Read the files that the modules open by `sql_file`: each import of the modules opens them again."""
    for stored in modules:
        file = getattr(sys.modules.get(stored.name), "__file__", None)
        if not file or "sql_file" not in stored.source:
            continue
        literal = 0
        for node in ast.walk(ast.parse(stored.source)):
            match node:
                case ast.Call(
                    func=ast.Name(id="sql_file") | ast.Attribute(attr="sql_file"),
                    args=[ast.Constant(value=str(path))],
                ):
                    literal += 1
                    folder = Path(file).absolute().parent
                    sql_file = _file(folder / path, folder, stored.package, declared=False)
                    yield from [sql_file] if sql_file else []
                case ast.Name(id="sql_file") | ast.Attribute(attr="sql_file"):
                    literal -= 1
                case ast.alias(name="sql_file", asname=str()):
                    literal -= 1
                case _:
                    continue
        if literal < 0:
            raise DeclarationError(
                found=f"module '{stored.name}' is stored with a model function, and calls `sql_file` "
                "with something else than a text, or under another name, so the file can't "
                "be stored with it",
                do='write `sql_file("NAME.sql")`, or put the function into a module of its own',
            )


@lru_cache(maxsize=256)
def _kept(query: ModuleQuery) -> tuple[KeptStatements, ...]:
    return kept(query.modules, query.module, query.name)


@lru_cache(maxsize=256)
def _identity(query: ModuleQuery) -> str:
    files = [f"{file.path} {file.content}" for file in query.files_that_matter()]
    return "\x1d".join([identity(query.modules, query.module, query.name), *files])
