"""Bundling: cut out of a module what one of its functions reaches, as normalised text."""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
from collections import defaultdict
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_GIVEN = frozenset({*dir(builtins), "__name__", "__module__", "__qualname__", "__annotations__"})


def bundle_text(source: str, function: str) -> str | None:
    """Give the part of a module that a function of it reaches, in the module's order.

    Args:
        source: of the module.
        function: name of a function at its top level.

    Returns:
        The text; None when there is no such function.
    """
    statements = [_plain(node) for node in ast.parse(source).body if not _for_types_only(node)]
    if not any(isinstance(one, ast.FunctionDef) and one.name == function for one in statements):
        return None
    reached = _reached(function, statements)
    kept = [_only(node, reached) for node in statements if reached & {*_defined(node)}]
    return "\n\n".join(ast.unparse(node) for node in kept) + "\n"


def imported_modules(text: str) -> set[str]:
    """Name every module that a bundle imports, inside its functions too; dots are relative."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=module, level=level):
                found.add("." * level + (module or ""))
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case _:
                continue
    return found


def left_out(text: str) -> set[str]:
    """Name what a bundle uses but neither defines nor imports."""
    body = ast.parse(text).body
    defined = {name for node in body for name in _defined(node)}
    return _used(text) - defined - _GIVEN


def compiled(text: str, file: str) -> CodeType:
    """Compile a bundle; its annotations stay text, so types need not be in it."""
    return compile(
        text, file, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True
    )


def _reached(function: str, statements: list[ast.stmt]) -> set[str]:
    defining: dict[str, list[ast.stmt]] = defaultdict(list)
    for node in statements:
        for name in _defined(node):
            defining[name].append(node)
    reached: set[str] = set()
    waiting = [function]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for node in defining[name]:
            waiting += _used(ast.unparse(node))
            waiting += _defined(node) if not isinstance(node, (ast.Import, ast.ImportFrom)) else ()
    return reached


def _used(text: str) -> set[str]:
    """Names that a piece of code takes from its module: what the compiler says, nothing local."""
    found: set[str] = set()
    waiting = [compiled(text, "<bundle>")]
    while waiting:
        code = waiting.pop()
        found |= {one.argval for one in dis.get_instructions(code) if one.opname in _LOADS}
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return found


def _defined(node: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top level binds, or changes what is bound to."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=changed))):
            yield from _names(changed)  # RATES.update(...)
        case ast.Assign(targets=targets):
            yield from (name for target in targets for name in _names(target))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield from _names(target)
        case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
            for inner in ast.iter_child_nodes(node):
                yield from _inner(inner)
        case _:
            return


def _inner(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ExceptHandler):
        for inner in node.body:
            yield from _defined(inner)
    elif isinstance(node, ast.stmt):
        yield from _defined(node)


def _names(target: ast.expr) -> Iterator[str]:
    """Names that are assigned to, of `a`, `a, b`, `a.x` and `a[0]` alike."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=several) | ast.List(elts=several):
            yield from (name for one in several for name in _names(one))
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _names(inner)
        case _:
            return


def _for_types_only(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.ImportFrom(module="__future__"):
            return True
        case _:
            return False


def _only(node: ast.stmt, reached: set[str]) -> ast.stmt:
    """Leave out of an import what is not reached."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        node.names = [
            alias
            for alias in node.names
            if (alias.asname or alias.name).partition(".")[0] in reached
        ]
    return node


def _plain(node: ast.stmt) -> ast.stmt:
    """Take docstrings and type annotations out; a class keeps those of its fields."""
    return ast.fix_missing_locations(_Plain().visit(node))


class _Plain(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return ast.Assign(targets=[node.target], value=node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = _without_docstring(node.body)
        node.body = [
            one if isinstance(one, ast.AnnAssign) else self.visit(one) for one in node.body
        ]
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest or [ast.Pass()]
        case _:
            return body
