"""Compare the function bundles that releases up to 0.1 stored with today's modules.

Those releases cut out of a module what the function reaches, and stored it as normalised text. Such
snapshots still run. They are compared here so that a new release alone changes no model.
"""

from __future__ import annotations
import __future__

import ast
import dis
from collections import defaultdict
from types import CodeType
from typing import TYPE_CHECKING

from backfill_assets.models.python.inert import inert
from backfill_assets.models.python.syntax import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.python.reflection import KeptStatements

_SEES_WORDS = frozenset(
    {
        "pandas_udf", "arrow_udf", "udtf", "arrow_udtf", "__doc__", "__annotations__",
        "get_type_hints", "inspect", "singledispatch",
    }
)  # fmt: skip
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


def bundle_text(source: str, function: str) -> str | None:
    """Give the part of a module that a function of it reaches, in the module's order.

    Args:
        source: of the module.
        function: name of a function at its top level.

    Returns:
        The text; None when there is no such function.
    """
    statements = [_plain(node) for node in ast.parse(source).body if not _for_types_only(node)]
    if not any(
        isinstance(statement, ast.FunctionDef) and statement.name == function
        for statement in statements
    ):
        return None
    reached = _reached(function, statements)
    kept = [_only(node, reached) for node in statements if reached & {*_defined(node)}]
    return "\n\n".join(ast.unparse(node) for node in kept) + "\n"


def compiled(text: str, file: str) -> CodeType:
    """Compile a bundle; its annotations stay text, so types need not be in it."""
    return compile(
        text, file, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True
    )


def could_be_cut_from(
    bundle: str, function: str, module: str, kept: tuple[KeptStatements, ...]
) -> bool:
    """Whether a stored bundle equals the code of the modules now, and omits no code that could matter.

    Args:
        bundle: as an earlier release stored it.
        function: its function.
        module: the name of the module in which the function lies now.
        kept: the statements of today's modules that may matter.
    """
    sources = [
        kept_module.module.source for kept_module in kept if kept_module.module.name == module
    ]
    cut = bundle_text(sources[0], function) if sources else None
    if cut is None or ast.dump(ast.parse(cut)) != ast.dump(ast.parse(bundle)):
        return False
    parsed = ast.parse(bundle).body
    if words(parsed) & _SEES_WORDS:
        return False  # the bundle has neither docstrings nor types
    in_bundle = {
        name
        for node in parsed
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        for name in _defined(node)
    }
    remaining = [
        node for kept_module in kept for node in kept_module.body if not in_bundle & {*_binds(node)}
    ]
    return not any(_reaches(node, remaining, in_bundle) for node in remaining if _acts(node))


def _binds(node: ast.stmt) -> Iterator[str]:
    """Names by which a statement came into a bundle."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from _defined(node)


def _acts(node: ast.stmt) -> bool:
    """Whether a statement may do more than bind names when its module is imported."""
    return not isinstance(node, (ast.Import, ast.ImportFrom)) and inert([node])[0] is None


def _reaches(node: ast.stmt, remaining: list[ast.stmt], names: set[str]) -> bool:
    """Whether a statement mentions one of these names, directly or through names that it mentions."""
    mentioned: set[str] = set()
    waiting = words([node])
    while waiting:
        mentioned |= waiting
        if mentioned & names:
            return True
        waiting = {
            word
            for statement in remaining
            if mentioned & {*_binds(statement)}
            for word in words([statement])
        } - mentioned  # fmt: skip
    return False


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
    """Names that a piece of code takes from its module, as the compiler finds them; no local names."""
    used: set[str] = set()
    waiting = [compiled(text, "<bundle>")]
    while waiting:
        code = waiting.pop()
        used |= {
            instruction.argval
            for instruction in dis.get_instructions(code)
            if instruction.opname in _LOADS
        }
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return used


def _defined(node: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement binds, or whose values it changes."""
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
            yield from (name for part in several for name in _names(part))
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
    """Remove the names that are not reached from an import."""
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
            statement if isinstance(statement, ast.AnnAssign) else self.visit(statement)
            for statement in node.body
        ]
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest or [ast.Pass()]
        case _:
            return body
