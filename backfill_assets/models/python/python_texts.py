"""Find the texts that expressions in a model's code produce, as far as the code itself shows.

Names are followed to their values (`models.python_names`), and the usual ways to join texts are
evaluated. A part that can't be known is a hole in the text.
"""

from __future__ import annotations

import ast
import re
from itertools import product
from string import Formatter
from typing import TYPE_CHECKING

from backfill_assets.models.python.python_names import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backfill_assets.models.python.python_names import Names, Pieces

PUT_IN = "?put_in?"
"""Stands for what is put into a text and can't be known."""

_HOLE = f" {PUT_IN} "
_MOST = 64  # texts that one piece of code may give
_DEEPEST = 16  # steps from a name to its text
_AS_IT_IS = frozenset({"dedent", "cleandoc", "str", "strip", "lstrip", "rstrip"})
PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0-9.]*[a-zA-Z]")
"""Finds what `%` fills in."""


class Texts:
    """Reads texts in the code of some modules."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, node: ast.expr, module: str) -> tuple[str, ...]:
        """Give every text that a piece of a module's code may stand for, with `PUT_IN` for holes."""
        return self._of(node, module, 0)

    def _of(self, node: ast.expr, module: str, depth: int) -> tuple[str, ...]:  # noqa: PLR0911 - a form per line
        if depth > _DEEPEST:
            return (_HOLE,)
        depth += 1
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return (str(value),)
            case ast.Name() | ast.Attribute():
                return self._named(node, module, depth)
            case ast.Call():
                return self._given_back(node, module, depth)
            case ast.IfExp(body=one, orelse=other):
                return _few(
                    [text for each in (one, other) for text in self._of(each, module, depth)]
                )
            case _:
                return self._put_together(node, module, depth)

    def _put_together(self, node: ast.expr, module: str, depth: int) -> tuple[str, ...]:  # noqa: PLR0911
        match node:
            case ast.JoinedStr(values=parts):
                return _joined([self._of(part, module, depth) for part in parts])
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._of(value, module, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self._of(side, module, depth) for side in (left, right)])
            case ast.BinOp(left=left, op=ast.Mod()):
                return tuple(PERCENT.sub(_HOLE, text) for text in self._of(left, module, depth))
            case ast.Subscript(value=value, slice=key):
                return self._any(self._names.looked_up(value, key, module), depth)
            case ast.NamedExpr(value=value):
                return self._of(value, module, depth)
            case _:
                return (_HOLE,)

    def _named(self, node: ast.expr, module: str, depth: int) -> tuple[str, ...]:
        """Follow a dotted name to its value."""
        name = dotted(node)
        return self._once(name, module, lambda: self._names.values(name, module), depth)

    def _given_back(self, node: ast.Call, module: str, depth: int) -> tuple[str, ...]:
        """Follow a call of an own function to what it returns."""
        returned = self._names.returned(node.func, module)
        if not returned.pieces:
            return self._called(node, module, depth)
        return self._once(f"{dotted(node.func)}()", module, lambda: returned, depth)

    def _once(
        self, name: str, module: str, find: Callable[[], Pieces], depth: int
    ) -> tuple[str, ...]:
        at = (name, module)
        if at not in self._known:
            self._known[at] = (_HOLE,)  # while it is looked for: what is made from itself
            self._known[at] = self._any(find(), depth)
        return self._known[at]

    def _any(self, code: Pieces, depth: int) -> tuple[str, ...]:
        texts = [text for piece, module in code.pieces for text in self._of(piece, module, depth)]
        return _few(texts if code.complete and code.pieces else [*texts, _HOLE])

    def _called(self, node: ast.Call, module: str, depth: int) -> tuple[str, ...]:  # noqa: PLR0911
        def inner(part_node: ast.expr) -> tuple[str, ...]:
            return self._of(part_node, module, depth)

        match node.func, node.args:
            case ast.Attribute(attr="format", value=value), args:
                given = {str(at): inner(argument) for at, argument in enumerate(args)}
                given |= {
                    keyword.arg: inner(keyword.value) for keyword in node.keywords if keyword.arg
                }
                return _few(
                    [text for template in inner(value) for text in _formatted(template, given)]
                )
            case ast.Attribute(attr="join", value=value), [
                ast.List(elts=parts) | ast.Tuple(elts=parts)
            ]:
                return _joined([inner(element) for part in parts for element in (value, part)][1:])
            case ast.Attribute(attr="replace", value=value), [ast.Constant(value=str(old)), new]:
                return _few(
                    [
                        template.replace(old, text)
                        for template in inner(value)
                        for text in inner(new)
                    ]
                )
            case (ast.Attribute(attr=name, value=value), []) if name in _AS_IT_IS:
                return inner(value)
            case ((ast.Name(id=name) | ast.Attribute(attr=name)), [value]):
                return inner(value) if name in _AS_IT_IS else (_HOLE,)
            case _:
                return (_HOLE,)


def _formatted(text: str, given: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Fill a text as `str.format` does; an unknown or formatted part is a hole."""
    try:
        parts = [*Formatter().parse(text)]
    except ValueError:
        return [_HOLE]
    at, filled = 0, list[tuple[str, ...]]()
    for literal, name, spec, conversion in parts:
        filled.append((literal,))
        if name is not None:
            key, at = (name, at) if name else (str(at), at + 1)
            plain = not spec and not conversion
            filled.append(given.get(key, (_HOLE,)) if plain else (_HOLE,))
    return [*_joined(filled)]


def _joined(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    count = 1
    for variants in parts:
        count *= len(variants)
    return (_HOLE,) if count > _MOST else tuple("".join(chosen) for chosen in product(*parts))


def _few(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts)) if len(texts) <= _MOST else (_HOLE,)
