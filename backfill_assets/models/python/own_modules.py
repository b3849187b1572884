"""Find the project's own modules that a model's function imports, and read them byte for byte.

A module is the project's own unless it was installed: unless its file is in Python's standard library
or in a folder of installed packages (``site-packages``, ``dist-packages``). There are two exceptions.
A module in the function's top-level package is always the project's own. Modules of this product and
of Spark never are, except the product's ``pipelines``, which hold models.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
import tokenize
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.machinery import ModuleSpec

PRODUCT = "backfill_assets"
MODELS = f"{PRODUCT}.pipelines"
_ENGINE = frozenset({"pyspark", "py4j", "delta"})  # may lie on the search path uninstalled
INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = tuple(Path(sysconfig.get_paths()[scheme]) for scheme in ("stdlib", "platstdlib"))


@dataclass(frozen=True, slots=True)
class StoredModule:
    """One module as its file was written.

    Attributes:
        name: dotted, as it is imported.
        source: the text of its file, newlines as they are.
        is_package: whether it is the ``__init__`` of a package.
    """

    name: str
    source: str
    is_package: bool = False

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def own_modules(module: str) -> tuple[StoredModule, ...]:
    """Read a module, its packages, and all own modules that these import, transitively.

    Args:
        module: the name of an imported module.

    Returns:
        The modules by name; empty where the source of `module` can't be read.

    Raises:
        DeclarationError: one of them is an extension, or compiled code alone.
    """
    collected: dict[str, StoredModule] = {}
    waiting = [(name, module) for name in with_packages(module)]
    family = module.partition(".")[0]
    while waiting:
        name, importer = waiting.pop()
        if name in collected or not is_own(name, family):
            continue
        stored = _read(name, importer)
        if stored is None:
            continue
        collected[name] = stored
        imports = imports_of(ast.parse(stored.source), stored.package)
        waiting += [(imported, name) for imported in imports]
    return tuple(collected[name] for name in sorted(collected)) if module in collected else ()


def imports_of(tree: ast.AST, package: str) -> set[str]:
    """Name every module that code may import when it runs, with packages and possible submodules.

    Args:
        tree: the code.
        package: what its relative imports start from.
    """
    names_found: set[str] = set()
    for node in _running(tree):
        match node:
            case ast.Import(names=names):
                names_found |= {
                    imported for alias in names for imported in with_packages(alias.name)
                }
            case ast.ImportFrom(names=names):
                base = imported_base(node, package)
                names_found |= {*with_packages(base)} if base else set()
                names_found |= {
                    f"{base}.{alias.name}" for alias in names if base and alias.name != "*"
                }
            case _:
                continue
    return names_found


def imported_base(node: ast.ImportFrom, package: str) -> str:
    """Give the absolute name of the module that ``from ... import`` names; empty if there is none."""
    if not node.level:
        return node.module or ""
    return absolute_name(node.module or "", package, node.level)


def absolute_name(name: str, package: str, level: int) -> str:
    """Resolve a relative import; empty where it leads out of its package."""
    parts = package.split(".")
    if level > len(parts) or not package:
        return ""
    base = ".".join(parts[: len(parts) - level + 1])
    return f"{base}.{name}" if name else base


def for_types_only(node: ast.AST) -> bool:
    """Whether a statement is ``if TYPE_CHECKING:`` with nothing else, which never runs."""
    match node:
        case ast.If(
            test=ast.Name(id="TYPE_CHECKING")
            | ast.Attribute(value=ast.Name(id="typing"), attr="TYPE_CHECKING"),
            orelse=[],
        ):
            return True
        case _:
            return False


def is_own(name: str, family: str) -> bool:
    """Whether a module is the project's own, whose code a snapshot stores.

    Args:
        name: of the module.
        family: the top-level package of the model's function.
    """
    top = name.partition(".")[0]
    if top == PRODUCT:
        return name == MODELS or name.startswith(f"{MODELS}.")
    if top in _ENGINE:
        return False
    if top == family:
        return True
    spec = next(filter(None, map(spec_of, reversed(with_packages(name)))), None)
    return spec is not None and any(map(is_of_the_project, _places(spec)))


def places_of_the_project(spec: ModuleSpec) -> list[str]:
    """Where a module of the project lies, this product included: its file, or a package's folders."""
    places = [] if spec.name.partition(".")[0] in _ENGINE else _places(spec)
    return [place for place in places if is_of_the_project(place)]


def _places(spec: ModuleSpec) -> list[str]:
    if spec.origin and spec.has_location:
        return [spec.origin]
    return list(spec.submodule_search_locations or ())  # a package without `__init__`


def is_of_the_project(place: str) -> bool:
    """Whether a file or folder is none of Python's own, and was not installed."""
    path = Path(place)
    if INSTALLED & {*path.parts}:
        return False
    return not any(path.is_relative_to(standard) for standard in _STANDARD)


def with_packages(name: str) -> list[str]:
    """Name the packages that a module lies in, the outermost first, and the module itself."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk code, without the parts that only type checkers read."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not for_types_only(node):
            yield node
            waiting += ast.iter_child_nodes(node)


def spec_of(name: str) -> ModuleSpec | None:
    """Find a module, without importing it or its packages."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return loaded
    parent = name.rpartition(".")[0]
    path = None
    if parent:
        package = spec_of(parent)
        path = None if package is None else package.submodule_search_locations
        if path is None:
            return None
    for finder in sys.meta_path:
        find: Any = getattr(finder, "find_spec", None)
        spec = find(name, path, None) if find is not None else None
        if spec is not None:
            return spec
    return None


def _read(name: str, importer: str) -> StoredModule | None:
    """Read a module's file; None for a package without one, and for what is no module."""
    spec = spec_of(name)
    if spec is None:
        return _main_script(name)
    if not spec.has_location or spec.origin is None:
        return None
    if not spec.origin.endswith(tuple(SOURCE_SUFFIXES)):
        if spec.origin.endswith((*EXTENSION_SUFFIXES, ".pyc")):
            raise DeclarationError(
                found=f"'{importer}' imports '{name}' of the project, whose file {spec.origin} is "
                "not Python source, so that a snapshot can't store it",
                do="install it as a package, or write it in Python",
            )
        return None
    loader: Any = spec.loader
    try:
        content = loader.get_data(spec.origin)
    except (AttributeError, OSError):
        return None
    return StoredModule(name, _text(content), spec.submodule_search_locations is not None)


def _main_script(name: str) -> StoredModule | None:
    """Read the file that was started as a script: the one module without a spec."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name != "__main__" or not file:
        return None
    return StoredModule(name, _text(Path(file).read_bytes()))


def _text(content: bytes) -> str:
    """Decode a module as Python does, without changing its newlines."""
    encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
    return content.decode(encoding)


def by_name(modules: tuple[StoredModule, ...]) -> Mapping[str, StoredModule]:
    """Index modules by their names."""
    return {module.name: module for module in modules}
