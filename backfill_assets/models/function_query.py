"""A PySpark function of a model, and the bundle of code that it needs to run again later.

The bundle is the part of the function's module that the function reaches: itself, the functions
and constants of the module that it names, and the imports that those use. Its text, stripped of
comments, formatting and docstrings, is what the fingerprint is made of, so an edit elsewhere in
the file changes nothing.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class UnbundledImportError(BackfillAssetsError):
    """A model function reaches code of its own package in another module."""

    def __init__(self, *, function: str, module: str) -> None:
        self.function, self.module = function, module
        super().__init__(
            f"model function '{function}' uses '{module}' of its own package, which would be left "
            "out of the stored snapshot; move that code into the function's own module"
        )


class NotAModuleFunctionError(BackfillAssetsError):
    """A model function is a lambda, a closure or lives where its source can't be read."""

    def __init__(self, function: str) -> None:
        self.function = function
        super().__init__(
            f"model function '{function}' has no source at the top level of a module; define it "
            "with `def` at the top level of a file"
        )


@dataclass(frozen=True, slots=True)
class FunctionQuery:
    """A function ``(inputs, interval) -> DataFrame`` as the bundle of code that runs it.

    Attributes:
        name: of the function inside the bundle.
        bundle: Python source of everything that it needs, normalised.
    """

    name: str
    bundle: str

    def load(self) -> Callable[..., Any]:
        """Run the bundle in a namespace of its own and give the function."""
        namespace: dict[str, Any] = {"__name__": f"_model_bundle_{self.name}"}
        exec(compile(self.bundle, f"<model {self.name}>", "exec"), namespace)  # noqa: S102 - our own stored code
        return namespace[self.name]


def function_query(function: Callable[..., Any]) -> FunctionQuery:
    """Bundle a model function with what it reaches in its module.

    Raises:
        NotAModuleFunctionError: its source isn't the top level of a file.
        UnbundledImportError: it uses another module of its own package.
    """
    name = function.__name__
    module = _parsed_module(function)
    statements = {
        defined: node for node in module.body for defined in _defined_names(node)
    }
    if not isinstance(statements.get(name), ast.FunctionDef):
        raise NotAModuleFunctionError(name)
    kept = _reached(name, statements)
    package = function.__module__.partition(".")[0]
    for node in kept:
        _refuse_own_package(node, package, name)
    chosen = [node for node in module.body if any(node is one for one in kept)]
    return FunctionQuery(name, "\n\n".join(_text(node) for node in chosen) + "\n")


def _parsed_module(function: Callable[..., Any]) -> ast.Module:
    try:
        source = inspect.getsource(sys.modules[function.__module__])
    except (KeyError, OSError, TypeError) as error:
        raise NotAModuleFunctionError(function.__name__) from error
    return ast.parse(source)


def _defined_names(node: ast.stmt) -> Iterable[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                yield (alias.asname or alias.name).partition(".")[0]
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


def _reached(name: str, statements: dict[str, ast.stmt]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    waiting = [name]
    while waiting:
        node = statements.get(waiting.pop())
        if node is None or any(node is one for one in kept):
            continue
        kept.append(node)
        body = _without_annotations(node)
        waiting += [n.id for n in ast.walk(body) if isinstance(n, ast.Name)]
    return kept


def _without_annotations(node: ast.stmt) -> ast.stmt:
    """Copy a statement without type annotations, so that types pull nothing into the bundle."""
    copied = ast.parse(ast.unparse(node)).body[0]
    for one in ast.walk(copied):
        match one:
            case ast.FunctionDef():
                one.returns = None
            case ast.arg():
                one.annotation = None
            case _:
                continue
    return ast.fix_missing_locations(copied)


def _refuse_own_package(node: ast.stmt, package: str, function: str) -> None:
    modules: list[str] = []
    match node:
        case ast.ImportFrom(module=module, level=level):
            modules = ["." * level + (module or "")] if level else [module or ""]
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case _:
            return
    for module in modules:
        if module.startswith(".") or module.partition(".")[0] == package:
            raise UnbundledImportError(function=function, module=module)


def _text(node: ast.stmt) -> str:
    plain = _without_annotations(node)
    for one in ast.walk(plain):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(one) is not None:
            one.body = one.body[1:] or [ast.Pass()]
    return ast.unparse(plain)
