"""Find the statements of a module that only bind names, and so matter by these names alone."""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from typing import TYPE_CHECKING

from backfill_assets.models.python.own_modules import MODELS, PRODUCT, for_types_only
from backfill_assets.models.python.syntax import bindings, module_names

if TYPE_CHECKING:
    from collections.abc import Callable, Set

_DOES_MORE = frozenset(
    {"antigravity", "this", "idlelib", "readline", "rlcompleter", "site", "turtledemo", "lib2to3"}
)  # modules of the standard library whose import does something
_OF_TYPES = frozenset({"typing", "collections", "datetime", "decimal"})
_IN_TYPES = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.BinOp, ast.BitOr, ast.Load,
)  # fmt: skip
_IN_LITERALS = (
    ast.Constant, ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Tuple, ast.List,
    ast.Set, ast.Dict, ast.Load,
)  # fmt: skip
_FLAG = "TYPE_CHECKING"


def inert(
    body: list[ast.stmt], package: str = "", stored: Set[str] = frozenset()
) -> list[frozenset[str] | None]:
    """Give the names that each statement binds, if it does nothing else; None for any other statement.

    Args:
        body: a module's statements.
        package: what its relative imports start from.
        stored: the names of the project's own modules, whose import runs their code.
    """
    quiet = _Quiet(body, package, stored)
    return [_names_of(node, quiet, stored) for node in body]


def _names_of(node: ast.stmt, quiet: _Quiet, stored: Set[str]) -> frozenset[str] | None:
    match node:
        case ast.Expr(value=ast.Constant()):
            return frozenset()
        case ast.If(test=test) if for_types_only(node) and quiet.is_the_flag(test):
            return frozenset()
        case ast.Import() | ast.ImportFrom():
            return _imported(node, stored)
        case _:
            names = _bound(node, quiet)
            # Two underscores: a hook of Python's, or a name as a class mangles it.
            return None if names is None or any("__" in name for name in names) else names


def _imported(node: ast.Import | ast.ImportFrom, stored: Set[str]) -> frozenset[str] | None:
    """Give all names of an import that does nothing but bind some; None for any other."""
    modules = _modules_of(node)
    own = {name.partition(".")[0] for name in stored} - {PRODUCT}
    if not all(_only_defines(name) and name.partition(".")[0] not in own for name in modules):
        return None
    names = {part for module in modules for part in module.split(".")}
    for alias in node.names:
        names |= {*alias.name.split("."), alias.asname or alias.name}
    return None if "*" in names else frozenset(names)


def _modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Name every module that an import may run; those of a relative import are unknown."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return names
    return [""] if node.level else [node.module or "", *(f"{node.module}.{name}" for name in names)]


def _name_of(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _only_defines(module: str) -> bool:
    """Whether the import of a module has no effect beside its names."""
    top = module.partition(".")[0]
    if top == PRODUCT:
        return not f"{module}.".startswith(f"{MODELS}.")
    names = sys.stdlib_module_names - _DOES_MORE - {"__future__"}
    return top in names or f"{module}.".startswith("pyspark.sql.")


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
    """Finds the top-level statements of a module that do nothing but bind names."""

    def __init__(self, body: list[ast.stmt], package: str, stored: Set[str]) -> None:
        times = Counter(
            name for node in body for inner in ast.walk(node) for name in bindings(inner)
        )
        self._deletes = any(
            isinstance(inner, ast.Delete) for node in body for inner in ast.walk(node)
        )
        self._there = {*times, *vars(builtins)}
        self._is_clear = "*" not in times  # `from m import *` may bind anything
        self._imports = [
            (node, alias)
            for node in body
            if isinstance(node, (ast.Import, ast.ImportFrom)) and self._is_clear
            for alias in node.names
            if times[_name_of(alias)] == 1
        ]
        builtin = {name for name, value in vars(builtins).items() if isinstance(value, type)}
        self._types = self._imported(lambda origin: origin.partition(".")[0] in _OF_TYPES)
        self._types |= builtin - times.keys() if self._is_clear else set()
        self._declaring = self._imported(
            lambda origin: origin.partition(".")[0] == PRODUCT and _only_defines(origin)
        )
        own = module_names(body, package, stored)
        self._modules = {module for module in own if times[module] == 1 and self._is_clear}
        self._deferred = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in body
        )
        flags = {
            alias.name
            for node, alias in self._imports
            if alias.asname is None and {module.partition(".")[0] for module in _modules_of(node)} == {"typing"}
        }  # fmt: skip
        self._flags = flags & {_FLAG} if times[_FLAG] else flags & {"typing"}

    def _imported(self, accepts: Callable[[str], bool]) -> set[str]:
        """Names that only imports of such modules bind."""
        return {
            _name_of(alias) for node, alias in self._imports if all(map(accepts, _modules_of(node)))
        }

    def is_the_flag(self, test: ast.expr) -> bool:
        """Whether ``TYPE_CHECKING`` or ``typing.TYPE_CHECKING`` is the constant of `typing`."""
        first = test.value if isinstance(test, ast.Attribute) else test
        return isinstance(first, ast.Name) and first.id in self._flags

    def value(self, node: ast.expr | None) -> bool:  # noqa: PLR0911 - a form per line
        """Whether a value is a constant, names others, or is a declaration of this product."""
        match node:
            case ast.Name():
                return self._is_there(node)
            case ast.Attribute(value=ast.Name(id=name)):
                return name in self._modules | self._declaring
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(map(self.value, parts))
            case ast.Dict(keys=keys, values=values):
                return all(key is not None and _literal(key) for key in keys) and all(
                    map(self.value, values)
                )
            case ast.Call(func=called, args=args, keywords=keywords):
                declares = self._declares(called)
                return declares and all(
                    map(self.value, (*args, *(keyword.value for keyword in keywords)))
                )
            case _:
                return node is not None and _literal(node)

    def _is_there(self, node: ast.expr) -> bool:
        """Whether a value is a name that the module binds and never deletes: reading it does not fail."""
        return isinstance(node, ast.Name) and node.id in self._there and not self._deletes

    def _declares(self, called: ast.expr) -> bool:
        match called:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
                return name in self._declaring
            case _:
                return False

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        arguments = node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        hints = [
            argument.annotation
            for argument in (*every, arguments.vararg, arguments.kwarg)
            if argument
        ]
        defaults = [*arguments.defaults, *arguments.kw_defaults]
        return (
            not node.decorator_list
            and not getattr(node, "type_params", ())
            and all(
                default is None or self._is_there(default) or _literal(default)
                for default in defaults
            )
            and all(hint is None or self.annotation(hint) for hint in (*hints, node.returns))
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

    def annotation(self, node: ast.expr) -> bool:
        """Whether an annotation runs no code: it stays text, is a name, or consists of known types."""
        if self._deferred or isinstance(node, ast.Constant) or self._is_there(node):
            return True
        parts = [*ast.walk(node)]
        return all(isinstance(part, _IN_TYPES) for part in parts) and all(
            part.id in self._types for part in parts if isinstance(part, ast.Name)
        )


def _literal(node: ast.expr) -> bool:
    """Whether a value is a literal: constants, arithmetic on them, or containers of them."""
    return all(isinstance(inner, _IN_LITERALS) for inner in ast.walk(node))
