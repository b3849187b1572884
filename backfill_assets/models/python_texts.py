"""Python texts: what a text in a model's code says, as far as the code itself tells.

Names are followed to what is assigned to them, through own modules too, and the usual ways to put
a text together are gone along with. What can't be known stands as a hole.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product
from string import Formatter
from typing import TYPE_CHECKING

from backfill_assets.models.syntax import bindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from backfill_assets.models.reflection import Kept

PUT_IN = "?put_in?"
"""Stands for what is put into a text and can't be known."""

_HOLE = f" {PUT_IN} "
_MOST = 16  # texts that one piece of code may give
_AS_IT_IS = frozenset({"dedent", "cleandoc", "str", "strip", "lstrip", "rstrip"})
PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0-9.]*[a-zA-Z]")
"""Finds what `%` fills in."""


@dataclass(frozen=True, slots=True)
class _Names:
    """What is assigned to the names of one module; complete for a name that nothing else binds."""

    values: Mapping[str, list[ast.expr]]
    times: Mapping[str, int]


_NOTHING = _Names({}, {})


class Texts:
    """Reads texts in the code of some modules."""

    def __init__(self, kept: Iterable[Kept], imports: Mapping[str, Mapping[str, str]]) -> None:
        self._imports = imports
        self._names = {one.module.name: _names(one.body) for one in kept}

    def of(self, node: ast.expr, module: str) -> tuple[str, ...]:
        """Give every text that a piece of a module's code may stand for, with `PUT_IN` for holes."""
        return self._of(node, module, 0)

    def _of(self, node: ast.expr, module: str, depth: int) -> tuple[str, ...]:  # noqa: PLR0911 - a form per line
        if depth > _MOST:
            return (_HOLE,)
        depth += 1
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return (str(value),)
            case ast.Name() | ast.Attribute():
                return self._named(_dotted(node), module, depth)
            case ast.Call():
                return self._called(node, module, depth)
            case ast.IfExp(body=one, orelse=other):
                return _few(
                    [text for each in (one, other) for text in self._of(each, module, depth)]
                )
            case _:
                return self._put_together(node, module, depth)

    def _put_together(self, node: ast.expr, module: str, depth: int) -> tuple[str, ...]:  # noqa: PLR0911
        match node:
            case ast.JoinedStr(values=parts):
                return _joined([self._of(one, module, depth) for one in parts])
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._of(value, module, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self._of(one, module, depth) for one in (left, right)])
            case ast.BinOp(left=left, op=ast.Mod()):
                return tuple(PERCENT.sub(_HOLE, one) for one in self._of(left, module, depth))
            case ast.NamedExpr(value=value):
                return self._of(value, module, depth)
            case _:
                return (_HOLE,)

    def _named(self, name: str, module: str, depth: int) -> tuple[str, ...]:
        """Follow a dotted name to what is assigned to it, here or where it is imported from."""
        first, _, rest = name.partition(".")
        known, imported = self._names.get(module, _NOTHING), self._imports.get(module, {})
        if depth > _MOST:
            return (_HOLE,)
        if first in known.values and not rest:
            values = known.values[first]
            found = [text for one in values for text in self._of(one, module, depth)]
            times = len(values)
        else:
            origin = ".".join(filter(None, (imported.get(first, ""), rest)))
            holder, _, last = origin.rpartition(".")
            held = first in imported and holder in self._names
            found = self._named(last, holder, depth + 1) if held else [_HOLE]
            times = 1
        return _few(found if known.times.get(first, 0) <= times else [*found, _HOLE])

    def _called(self, node: ast.Call, module: str, depth: int) -> tuple[str, ...]:  # noqa: PLR0911
        def inner(one: ast.expr) -> tuple[str, ...]:
            return self._of(one, module, depth)

        match node.func, node.args:
            case ast.Attribute(attr="format", value=value), args:
                given = {str(at): inner(one) for at, one in enumerate(args)}
                given |= {one.arg: inner(one.value) for one in node.keywords if one.arg}
                return _few([text for one in inner(value) for text in _formatted(one, given)])
            case ast.Attribute(attr="join", value=value), [
                ast.List(elts=parts) | ast.Tuple(elts=parts)
            ]:
                return _joined([inner(one) for part in parts for one in (value, part)][1:])
            case ast.Attribute(attr="replace", value=value), [ast.Constant(value=str(old)), new]:
                return _few([one.replace(old, text) for one in inner(value) for text in inner(new)])
            case (ast.Attribute(attr=name, value=value), []) if name in _AS_IT_IS:
                return inner(value)
            case ((ast.Name(id=name) | ast.Attribute(attr=name)), [value]):
                return inner(value) if name in _AS_IT_IS else (_HOLE,)
            case _:
                return (_HOLE,)


def _names(body: Iterable[ast.stmt]) -> _Names:
    values: dict[str, list[ast.expr]] = defaultdict(list)
    times: Counter[str] = Counter()
    for node in (inner for top in body for inner in ast.walk(top)):
        times.update(bindings(node))
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        values[target.id].append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name].append(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                values[name].append(value)
            case _:
                continue
    return _Names(values, times)


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
        case _:
            return ""


def _formatted(text: str, given: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Fill a text as `str.format` does; what isn't known, or is formatted, is a hole."""
    try:
        parts = [*Formatter().parse(text)]
    except ValueError:
        return [_HOLE]
    at, found = 0, list[tuple[str, ...]]()
    for literal, name, spec, conversion in parts:
        found.append((literal,))
        if name is not None:
            key, at = (name, at) if name else (str(at), at + 1)
            plain = not spec and not conversion
            found.append(given.get(key, (_HOLE,)) if plain else (_HOLE,))
    return [*_joined(found)]


def _joined(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    count = 1
    for one in parts:
        count *= len(one)
    return (_HOLE,) if count > _MOST else tuple("".join(one) for one in product(*parts))


def _few(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts)) if len(texts) <= _MOST else (_HOLE,)
