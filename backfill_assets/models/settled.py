"""Settled: of a snapshot's modules, the statements that may matter to the model's function.

All of the modules run, as they were written. This is only about the word "unchanged": a statement at the
top level of a module is left out where it provably can't matter. It is of a form that does nothing
but bind names (a plain function, class or constant, an import from the standard library, what type
checkers read), and no statement that is kept mentions one of these names: as a name, an attribute, a
keyword, or a word in a text. Where kept code may look things up in another way, all is kept; where
it may look at its own source, so are comments and formatting.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from backfill_assets.models.own_modules import (
    MODELS,
    PRODUCT,
    by_name,
    for_types_only,
    imported_base,
    imports_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from backfill_assets.models.own_modules import StoredModule

_WORD = re.compile(r"\w+")
_DUNDER = re.compile(r"__\w+__")
_DOES_MORE = frozenset(
    {"antigravity", "this", "idlelib", "readline", "rlcompleter", "site", "turtledemo", "lib2to3"}
)  # modules of the standard library whose import does something
_LOOKUPS = frozenset(
    {
        "globals", "locals", "vars", "dir", "eval", "exec", "compile", "__import__", "help",
        "breakpoint",
    }
)  # fmt: skip
_BY_NAME = frozenset({"getattr", "setattr", "hasattr", "delattr"})
_REFLECTING = frozenset(
    {
        "import_module", "_getframe", "modules", "attrgetter", "methodcaller", "get_type_hints",
        "get_annotations", "getmembers", "getmodule", "get_objects", "get_referrers",
    }
)  # fmt: skip
_REFLECTIVE = frozenset(
    {
        "importlib", "gc", "pkgutil", "ctypes", "runpy", "code", "codeop", "pickle", "marshal", "shelve",
        "copyreg", "builtins", "__main__", "cloudpickle", "dill", "unittest", "doctest", "pydoc",
    }
)  # fmt: skip
_OF_SOURCE = frozenset(
    {"inspect", "linecache", "traceback", "ast", "dis", "symtable", "tokenize", "trace"}
)
_SOURCE_WORDS = frozenset(
    {"__code__", "co_firstlineno", "co_lines", "f_lineno", "tb_lineno", "currentframe", "_getframe"}
)
_HARMLESS_DUNDERS = frozenset(
    {
        "__init__", "__new__", "__post_init__", "__name__", "__qualname__", "__all__", "__version__",
        "__eq__", "__hash__", "__repr__", "__str__", "__len__", "__enter__", "__exit__", "__file__",
        "__future__", "__slots__", "__call__",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """What may matter of one module.

    Attributes:
        module: the module.
        body: its statements that are kept, in order.
    """

    module: StoredModule
    body: tuple[ast.stmt, ...]


def kept(modules: tuple[StoredModule, ...], module: str, function: str) -> tuple[Kept, ...]:
    """Give what may matter to a function, per module that kept code may import.

    Args:
        modules: all that the snapshot stores.
        module: the name of the function's own.
        function: its name there.
    """
    found = _Keeping(modules, module, function).found()
    return (
        found
        if not _reflects(found, frozenset(one.name for one in modules))
        else _everything(modules)
    )


def identity(modules: tuple[StoredModule, ...], module: str, function: str) -> str:
    """Write what may matter as text: equal texts, equal rows.

    Comments and formatting are left out, unless the code may look at its own source.
    """
    found = kept(modules, module, function)
    if any(words(one.body) & (_OF_SOURCE | _SOURCE_WORDS) for one in found):
        parts = [f"{one.name} {one.is_package}\n{one.source}" for one in modules]
    else:
        parts = [  # one without a statement too: that it is there decides whether an import succeeds
            f"{one.module.name} {one.module.is_package}\n{_dumped(one.body)}" for one in found
        ]
    return "\x1e".join([f"{module}.{function}", *parts])


def _dumped(body: Iterable[ast.stmt]) -> str:
    return "\n".join(ast.dump(node) for node in body)


def _everything(modules: tuple[StoredModule, ...]) -> tuple[Kept, ...]:
    return tuple(Kept(one, tuple(ast.parse(one.source).body)) for one in modules)


class _Keeping:
    """Finds what is kept: more and more of it, until nothing that is kept mentions anything else."""

    def __init__(self, modules: tuple[StoredModule, ...], module: str, function: str) -> None:
        self._modules = by_name(modules)
        self._bodies = {one.name: ast.parse(one.source).body for one in modules}
        self._inert = {
            name: [
                inert(node, body, self._modules[name].package, {*self._modules}) for node in body
            ]
            for name, body in self._bodies.items()
        }
        self._live: dict[str, set[int]] = {}
        self._words = {function}
        self._enter(module)

    def found(self) -> tuple[Kept, ...]:
        while self._step():
            pass
        return tuple(
            Kept(self._modules[name], tuple(self._bodies[name][at] for at in sorted(live)))
            for name, live in sorted(self._live.items())
        )

    def _enter(self, name: str) -> None:
        """Take a module in, with the packages that are imported before it."""
        for one in self._modules:
            if one not in self._live and (one == name or name.startswith(f"{one}.")):
                self._live[one] = set()

    def _step(self) -> bool:
        before = sum(len(live) for live in self._live.values()), len(self._live)
        for name in [*self._live]:
            for at, node in enumerate(self._bodies[name]):
                binds = self._inert[name][at]
                if at not in self._live[name] and (binds is None or binds & self._words):
                    self._keep(name, at, node)
        return before != (sum(len(live) for live in self._live.values()), len(self._live))

    def _keep(self, name: str, at: int, node: ast.stmt) -> None:
        self._live[name].add(at)
        self._words |= words([node])
        for imported in imports_of(node, self._modules[name].package):
            self._enter(imported)


def inert(
    node: ast.stmt, body: list[ast.stmt], package: str = "", stored: Set[str] = frozenset()
) -> frozenset[str] | None:
    """Give the names that a statement binds, if it does nothing else; None for any other statement.

    Args:
        node: at the top level of a module.
        body: the module's statements.
        package: what its relative imports start from.
        stored: the names of the project's own modules, whose import runs their code.
    """
    match node:
        case ast.Expr(value=ast.Constant()):
            return frozenset()
        case ast.If() if for_types_only(node) and _is_typings(body):
            return frozenset()
        case ast.Import() | ast.ImportFrom():
            return _imported(node, stored)
        case _:
            names = _bound(node, _Quiet(body, package, stored))
            # Two underscores: a hook of Python's, or a name as a class mangles it.
            return None if names is None or any("__" in name for name in names) else names


def _imported(node: ast.Import | ast.ImportFrom, stored: Set[str]) -> frozenset[str] | None:
    """Give all names of an import that does nothing but bind some; None for any other."""
    modules = _modules_of(node)
    if not all(map(_only_defines, modules)) or any(one.split(".")[0] in stored for one in modules):
        return None
    names = {part for one in modules for part in one.split(".")}
    for alias in node.names:
        names |= {*alias.name.split("."), alias.asname or alias.name}
    return None if "*" in names else frozenset(names)


def _modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [(node.module or "") if not node.level else ""]


def _only_defines(module: str) -> bool:
    """Whether the import of a module has no effect beside its names."""
    top = module.partition(".")[0]
    if top == PRODUCT:
        return not f"{module}.".startswith(f"{MODELS}.")
    known = sys.stdlib_module_names - _DOES_MORE - {"__future__"}
    return top in known or f"{module}.".startswith("pyspark.sql.")


def _is_typings(body: list[ast.stmt]) -> bool:
    """Whether `TYPE_CHECKING` is what `typing` calls so: imported from there, and never bound again."""
    imported = [
        alias
        for node in body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if (alias.asname or alias.name) in ("TYPE_CHECKING", "typing")
        and (isinstance(node, ast.Import) or node.module == "typing")
    ]
    stores = {
        name
        for node in body
        for one in ast.walk(node)
        if not isinstance(one, ast.alias)
        for name in _binding_names(one)
    }
    return bool(imported) and not stores & {"TYPE_CHECKING", "typing"}


def _binding_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Constant(value="TYPE_CHECKING"):
            yield "TYPE_CHECKING"  # setattr
        case _:
            return


def _bound(node: ast.stmt, quiet: _Quiet) -> frozenset[str] | None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() if quiet.function(node):
            return frozenset({node.name})
        case ast.ClassDef() if quiet.klass(node):
            return frozenset({node.name})
        case ast.Assign(targets=targets, value=value) if quiet.value(value):
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            return frozenset(names) if len(names) == len(targets) else None
        case ast.AnnAssign(target=ast.Name(id=name), value=value, annotation=annotation):
            calm = quiet.annotation(annotation) and (value is None or _literal(value))
            return frozenset({name}) if calm else None
        case _:
            return None


class _Quiet:
    """Tells what a module may say at its top level without anything being done by it."""

    def __init__(self, body: list[ast.stmt], package: str, stored: Set[str]) -> None:
        self._deferred = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in body
        )
        bound = {name for node in body for one in ast.walk(node) for name in _binding_names(one)}
        imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in body
            if isinstance(node, (ast.Import, ast.ImportFrom)) and _of_typing(node)
            for alias in node.names
        }
        self._plain = ({*dir(builtins)} | imported) - bound
        self._modules = _module_names(body, package, stored) - bound
        self._declaring = {
            alias.asname or alias.name
            for node in body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            and all(
                one.partition(".")[0] == PRODUCT and _only_defines(one) for one in _modules_of(node)
            )
            for alias in node.names
        } - bound

    def value(self, node: ast.expr | None) -> bool:  # noqa: PLR0911 - a form per line
        """Whether a value is a constant, names others, or is a declaration of this product."""
        match node:
            case ast.Name():
                return True
            case ast.Attribute(value=ast.Name(id=name)):
                return name in self._modules | self._declaring
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(map(self.value, parts))
            case ast.Dict(keys=keys, values=values):
                return all(one is not None and _literal(one) for one in keys) and all(
                    map(self.value, values)
                )
            case ast.Call(func=called, args=args, keywords=keywords):
                declares = self._declares(called)
                return declares and all(map(self.value, (*args, *(one.value for one in keywords))))
            case _:
                return node is not None and _literal(node)

    def _declares(self, called: ast.expr) -> bool:
        match called:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
                return name in self._declaring
            case _:
                return False

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        arguments = node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        hints = [one.annotation for one in (*every, arguments.vararg, arguments.kwarg) if one]
        defaults = [*arguments.defaults, *arguments.kw_defaults]
        return (
            not node.decorator_list
            and not getattr(node, "type_params", ())
            and all(one is None or isinstance(one, ast.Name) or _literal(one) for one in defaults)
            and all(one is None or self.annotation(one) for one in (*hints, node.returns))
        )

    def klass(self, node: ast.ClassDef) -> bool:
        plain = not (node.decorator_list or node.bases or node.keywords)
        return plain and not getattr(node, "type_params", ()) and all(map(self._member, node.body))

    def _member(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self.function(node)
            case ast.Assign(targets=[ast.Name()], value=value):
                return _literal(value)
            case ast.AnnAssign(target=ast.Name(), value=value, annotation=annotation):
                return self.annotation(annotation) and (value is None or _literal(value))
            case _:
                return False

    def annotation(self, node: ast.expr) -> bool:  # noqa: PLR0911 - a form per line
        """Whether an annotation calls nothing: it stays text, or is made of built-in types alone."""
        if self._deferred:
            return True
        match node:
            case ast.Name() | ast.Constant():
                return True
            case ast.Attribute(value=ast.Name(id=name)):
                return name in self._plain
            case ast.Subscript(value=value, slice=part):
                return self._typing(value) and self.annotation(part)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(map(self.annotation, parts))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return all(self._typing(one) or self.annotation(one) for one in (left, right)) and (
                    self._typing(left) or self._typing(right)
                )
            case _:
                return False

    def _typing(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
                return name in self._plain
            case ast.Constant(value=None):
                return True
            case ast.Subscript():
                return self.annotation(node)
            case _:
                return False


def _of_typing(node: ast.Import | ast.ImportFrom) -> bool:
    safe = {"typing", "collections", "datetime", "decimal"}
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").partition(".")[0] in safe
    return all(alias.name.partition(".")[0] in safe for alias in node.names)


def _literal(node: ast.expr) -> bool:  # noqa: PLR0911 - a form per line
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float())):
            return True
        case ast.BinOp(
            left=left,
            op=ast.Add() | ast.Sub() | ast.Mult(),
            right=ast.Constant(value=int() | float()),
        ):
            return _number(left)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(map(_literal, parts))
        case ast.Dict(keys=keys, values=values):
            return all(one is not None and _literal(one) for one in (*keys, *values))
        case _:
            return False


def _number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.BinOp():
            return _literal(node)
        case _:
            return False


def words(body: Iterable[ast.stmt]) -> set[str]:
    """Every word that code mentions, in whatever place."""
    found: set[str] = set()
    waiting: list[ast.AST] = [*body]
    while waiting:
        for _, value in ast.iter_fields(waiting.pop()):
            for one in cast("list[object]", value) if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    waiting.append(one)
                elif isinstance(one, (str, bytes)):
                    text = one.decode("latin-1") if isinstance(one, bytes) else one
                    found |= {*_WORD.findall(text)}
    return found


def _reflects(found: tuple[Kept, ...], stored: Set[str]) -> bool:
    """Whether kept code may look for things in a way that can't be followed."""
    return any(
        _reflects_here(node, parent) or _hands_on(node, parent, modules, stored)
        for one in found
        for modules in [_module_names(one.body, one.module.package, stored)]
        for top in one.body
        for parent, node in _with_parents(top)
    )


def _with_parents(top: ast.AST) -> Iterator[tuple[ast.AST | None, ast.AST]]:
    waiting: list[tuple[ast.AST | None, ast.AST]] = [(None, top)]
    while waiting:
        parent, node = waiting.pop()
        yield parent, node
        waiting += [(node, inner) for inner in ast.iter_child_nodes(node)]


def _reflects_here(node: ast.AST, parent: ast.AST | None) -> bool:  # noqa: PLR0911 - a form per line
    match node:
        case ast.Name(id=name) if name in _BY_NAME:
            return not _looks_up_a_word(node, parent)
        case ast.Name(id="sys", ctx=ast.Load()):
            return not isinstance(parent, ast.Attribute)
        case ast.Name(id=name):
            return name in _LOOKUPS or _odd_dunders(name)
        case ast.Attribute(attr=name):
            return name in _REFLECTING | _SOURCE_WORDS or _odd_dunders(name)
        case ast.alias(name=name):
            odd = _REFLECTIVE | _OF_SOURCE | _REFLECTING | _SOURCE_WORDS
            return bool({*name.split(".")} & odd)
        case ast.ImportFrom(module=str(module)):
            return module.partition(".")[0] in _REFLECTIVE | _OF_SOURCE
        case ast.Constant(value=str(text)):
            return _odd_dunders(text)
        case _:
            return False


def _looks_up_a_word(node: ast.Name, parent: ast.AST | None) -> bool:
    """Whether `getattr` and its like are called with a text that can be read here."""
    match parent:
        case ast.Call(func=called, args=[_, ast.Constant(value=str()), *_]):
            return called is node
        case _:
            return False


def _module_names(body: Iterable[ast.stmt], package: str, stored: Set[str]) -> frozenset[str]:
    """Names under which code knows own modules."""
    found: set[str] = set()
    for node in (inner for top in body for inner in ast.walk(top)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    found |= {bound} if alias.name in stored else set()
            case ast.ImportFrom(names=names):
                base = imported_base(node, package)
                found |= {
                    alias.asname or alias.name
                    for alias in names
                    if f"{base}.{alias.name}" in stored
                }
            case _:
                continue
    return frozenset(found)


def _hands_on(
    node: ast.AST, parent: ast.AST | None, modules: frozenset[str], stored: Set[str]
) -> bool:
    """Whether an own module is used as a value: whatever gets it may look through it."""
    if isinstance(parent, ast.Attribute):
        return False
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return name in modules
        case ast.Attribute(attr=name) if name in {one.rpartition(".")[2] for one in stored}:
            return bool(modules & {one.id for one in ast.walk(node) if isinstance(one, ast.Name)})
        case _:
            return False


def _odd_dunders(text: str) -> bool:
    return any(one not in _HARMLESS_DUNDERS for one in _DUNDER.findall(text))
