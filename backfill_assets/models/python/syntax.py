"""Collect the words that a piece of Python code mentions, and the names that it may bind."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, cast

from backfill_assets.models.python.own_modules import imported_base

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

_WORD = re.compile(r"\w+")


def words(body: Iterable[ast.stmt]) -> set[str]:
    """Every word that code mentions, at any place."""
    return {
        word
        for top in body
        for node in ast.walk(top)
        for text in own_texts(node)
        for word in _WORD.findall(text)
    }


def own_words(node: ast.AST) -> set[str]:
    """The words of a node itself, without those of its children."""
    return {word for text in own_texts(node) for word in _WORD.findall(text)}


def own_texts(node: ast.AST) -> Iterator[str]:
    """The texts of a node itself: names and constants."""
    for _, value in ast.iter_fields(node):
        for item in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(item, (str, bytes)):
                yield item.decode("latin-1") if isinstance(item, bytes) else item


def bindings(node: ast.AST) -> Iterator[str]:
    """Every name that a piece of code may bind, in any scope."""
    match node:
        case ast.alias(name=name, asname=asname):
            yield (asname or name).partition(".")[0]
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Name() | ast.Attribute() | ast.Constant() | ast.ImportFrom() | ast.keyword():
            return
        case _:
            yield from own_texts(node)


def with_parents(top: ast.AST) -> Iterator[tuple[ast.AST | None, ast.AST]]:
    """Walk code, each node with the one that it is a part of."""
    waiting: list[tuple[ast.AST | None, ast.AST]] = [(None, top)]
    while waiting:
        parent, node = waiting.pop()
        yield parent, node
        waiting += [(node, inner) for inner in ast.iter_child_nodes(node)]


def module_names(body: Iterable[ast.stmt], package: str, stored: Set[str]) -> frozenset[str]:
    """Names under which code knows own modules."""
    own_names: set[str] = set()
    for node in (inner for top in body for inner in ast.walk(top)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    own_names |= {bound} if alias.name in stored else set()
            case ast.ImportFrom(names=names):
                base = imported_base(node, package)
                own_names |= {
                    alias.asname or alias.name
                    for alias in names
                    if f"{base}.{alias.name}" in stored
                }
            case _:
                continue
    return frozenset(own_names)
