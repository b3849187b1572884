"""Decide whether code may look names up by reflection, where its text does not show them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from backfill_assets.models.python.own_modules import imported_base, imports_of
from backfill_assets.models.python.syntax import bindings, module_names, own_words, with_parents

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from backfill_assets.models.python.own_modules import StoredModule

_LOOKUPS = frozenset(
    {
        "globals", "locals", "vars", "dir", "eval", "exec", "compile", "__import__", "help",
        "breakpoint",
    }
)  # fmt: skip
_BY_NAME = frozenset({"getattr", "setattr", "hasattr", "delattr"})
_REFLECTING = frozenset(
    {
        "import_module", "_getframe", "_current_frames", "modules", "attrgetter", "methodcaller",
        "get_type_hints", "get_annotations", "getmembers", "getmodule", "get_objects", "get_referrers",
        "f_globals", "f_locals", "f_builtins", "eval", "query", "meta_path", "path_hooks", "addaudithook",
        "settrace", "setprofile", "monitoring",
    }
)  # fmt: skip
_REFLECTIVE = frozenset(
    {
        "importlib", "gc", "pkgutil", "ctypes", "runpy", "code", "codeop", "shelve", "copyreg", "builtins",
        "__main__", "unittest", "doctest", "pydoc",
    }
)  # fmt: skip
_OF_SOURCE = frozenset(
    {
        "inspect", "linecache", "traceback", "ast", "dis", "symtable", "tokenize", "trace", "faulthandler",
        "tracemalloc", "cProfile", "pickle", "marshal", "cloudpickle", "dill",
    }
)  # fmt: skip
_SOURCE_WORDS = frozenset(
    {
        "__code__", "co_firstlineno", "co_lines", "f_lineno", "tb_lineno", "lineno", "currentframe",
        "_getframe", "__module__", "__package__", "__spec__", "__loader__", "__path__", "__cached__",
    }
)  # fmt: skip
_PLACES = frozenset({"__name__", "__file__"})
_TAKE_A_PLACE = frozenset(
    {"getLogger", "get_logger", "Path", "PurePath", "abspath", "dirname", "realpath"}
)  # fmt: skip
_HARMLESS_DUNDERS = frozenset(
    {
        "__init__", "__new__", "__post_init__", "__name__", "__qualname__", "__all__", "__version__",
        "__enter__", "__exit__", "__file__", "__future__", "__slots__",
    }
)  # fmt: skip
_FLAG = "TYPE_CHECKING"


@dataclass(frozen=True, slots=True)
class KeptStatements:
    """The statements of one module that may matter.

    Attributes:
        module: the module.
        body: its statements that are kept, in order.
    """

    module: StoredModule
    body: tuple[ast.stmt, ...]


def sees_source(kept: tuple[KeptStatements, ...]) -> bool:
    """Whether kept code may see its own text, or the names and paths that are made of it."""
    return any(
        own_words(node) & (_OF_SOURCE | _SOURCE_WORDS) or _names_its_place(node, parent)
        for kept_module in kept
        for top in kept_module.body
        for parent, node in with_parents(top)
    )


def _names_its_place(node: ast.AST, parent: ast.AST | None) -> bool:
    """Whether a private name or path is taken as a value, but for a logger or to find a file."""
    match node, parent:
        case ast.Name(id=name), ast.Compare():
            return name == "__file__"
        case ast.Name(id=name), ast.Call(func=ast.Name(id=by) | ast.Attribute(attr=by)):
            return name in _PLACES and by not in _TAKE_A_PLACE
        case ast.Name(id=name), _:
            return name in _PLACES
        case ast.Attribute(attr=name), _:
            return name == "__file__"
        case _:
            return False


def reflects(kept: tuple[KeptStatements, ...], stored: Set[str]) -> bool:
    """Whether kept code may look for things in a way that can't be followed."""
    names = _all_module_names(kept, stored)
    imported = {
        kept_module.module.name: {name for top in kept_module.body for name in _imports_in(top)}
        for kept_module in kept
    }
    handles = {name.rpartition(".")[2] for name in stored} | {*chain(*names.values())}
    return any(
        _reflects_here(node, parent)
        or _hands_on(node, parent, names[kept_module.module.name], handles)
        or _writes_to(node, imported[kept_module.module.name])
        or _brings_in_more(node, parent, kept_module.module.package, stored)
        for kept_module in kept
        for top in kept_module.body
        for parent, node in with_parents(top)
    )


def _reflects_here(node: ast.AST, parent: ast.AST | None) -> bool:  # noqa: PLR0911 - a form per line
    if any(map(_is_odd, own_words(node))):
        return True
    match node:
        case ast.Name(id=name) if name in _BY_NAME:
            return not _looks_up_a_word(node, parent)
        case ast.Name(id="sys", ctx=ast.Load()):
            return not isinstance(parent, ast.Attribute)
        case ast.Name(id=name):
            return name in _LOOKUPS
        case ast.Attribute(attr=name, ctx=context):
            sets_the_flag = name == _FLAG and not isinstance(context, ast.Load)
            return name in _REFLECTING | _SOURCE_WORDS or sets_the_flag
        case ast.alias() | ast.ImportFrom():
            odd = _REFLECTIVE | _OF_SOURCE | _REFLECTING | _SOURCE_WORDS
            return not own_words(node).isdisjoint(odd)
        case ast.Constant(value=text):
            return text == _FLAG
        case _:
            return False


def _is_odd(word: str) -> bool:
    """Whether a word is, or may be a part of, a name that Python itself gives a meaning."""
    return (word.startswith("__") or word.endswith("__")) and word not in _HARMLESS_DUNDERS


def _looks_up_a_word(node: ast.Name, parent: ast.AST | None) -> bool:
    """Whether `getattr` and its like are called with a text that can be read here."""
    match parent:
        case ast.Call(func=called, args=[_, ast.Constant(value=str()), *_]):
            return called is node and node.id in ("getattr", "hasattr")
        case _:
            return False


def _all_module_names(
    kept: tuple[KeptStatements, ...], stored: Set[str]
) -> dict[str, frozenset[str]]:
    """Names under which each module knows own modules, also those that another one passes on."""
    names = {
        kept_module.module.name: module_names(kept_module.body, kept_module.module.package, stored)
        for kept_module in kept
    }
    for _ in kept:
        for kept_module in kept:
            names[kept_module.module.name] |= {
                alias.asname or alias.name
                for top in kept_module.body
                for node in ast.walk(top)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
                if alias.name in names.get(imported_base(node, kept_module.module.package), ())
            }
    return names


def _hands_on(node: ast.AST, parent: ast.AST | None, modules: Set[str], handles: Set[str]) -> bool:
    """Whether an own module is used as a value: code that receives it may read all its names."""
    if isinstance(parent, ast.Attribute):
        return False
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return name in modules
        case ast.Attribute(attr=name) if name in handles:
            return bool(
                modules & {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            )
        case _:
            return False


def _writes_to(node: ast.AST, imported: Set[str]) -> bool:
    """Whether an attribute of an imported object is set: other code then reads the new value."""
    match node:
        case ast.Attribute(value=value, ctx=ast.Store() | ast.Del()):
            return bool(
                imported & {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
            )
        case _:
            return False


def _imports_in(top: ast.stmt) -> Iterator[str]:
    for node in ast.walk(top):
        if isinstance(node, ast.alias):
            yield from bindings(node)


def _brings_in_more(node: ast.AST, parent: ast.AST | None, package: str, stored: Set[str]) -> bool:
    """Whether an import of own modules binds names that it does not list, or an attribute of a class."""
    match node:
        case ast.Import() | ast.ImportFrom() if isinstance(parent, ast.ClassDef):
            return bool(imports_of(node, package) & stored)
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return imported_base(node, package) in stored
        case _:
            return False
