"""Select the statements of a snapshot's modules that may matter to the model's function.

All of the modules run as they were written. The selection only decides about the word "unchanged". A
top-level statement is left out where it provably can't matter: it only binds names (a plain function,
class or constant, an import from the standard library, an import for type checkers), and no statement
that is kept mentions one of these names as a name, an attribute, a keyword, or a word in a text. If
kept code may look names up in another way, every statement is kept. If it may read its own source,
comments and formatting are kept, too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backfill_assets.models.python.inert import inert
from backfill_assets.models.python.own_modules import by_name, imports_of
from backfill_assets.models.python.reflection import KeptStatements, reflects, sees_source
from backfill_assets.models.python.syntax import words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.python.own_modules import StoredModule


def kept(
    modules: tuple[StoredModule, ...], module: str, function: str
) -> tuple[KeptStatements, ...]:
    """Give the statements that may matter to a function, per module that kept code may import.

    Args:
        modules: every module that the snapshot stores.
        module: the name of the function's own.
        function: its name there.
    """
    keeping = _Keeping(modules, module, function).found()
    return (
        keeping
        if not reflects(keeping, frozenset(stored.name for stored in modules))
        else _everything(modules)
    )


def identity(modules: tuple[StoredModule, ...], module: str, function: str) -> str:
    """Write the statements that may matter as text: equal texts mean equal rows.

    Comments and formatting are left out, unless the code may look at its own source, or at the private
    names and paths under which it runs: these depend on everything that the snapshot stores.
    """
    kept_modules = kept(modules, module, function)
    if sees_source(kept_modules):
        parts = [f"{stored.name} {stored.is_package}\n{stored.source}" for stored in modules]
    else:
        parts = [  # one without a statement too: that it is there decides whether an import succeeds
            f"{kept_module.module.name} {kept_module.module.is_package}\n{_dumped(kept_module.body)}"
            for kept_module in kept_modules
        ]
    return "\x1e".join([f"{module}.{function}", *parts])


def _dumped(body: Iterable[ast.stmt]) -> str:
    return "\n".join(ast.dump(node) for node in body)


def _everything(modules: tuple[StoredModule, ...]) -> tuple[KeptStatements, ...]:
    return tuple(KeptStatements(module, tuple(ast.parse(module.source).body)) for module in modules)


class _Keeping:
    """Extends the kept statements until they mention no name that another statement binds."""

    def __init__(self, modules: tuple[StoredModule, ...], module: str, function: str) -> None:
        self._modules = by_name(modules)
        self._bodies = {stored.name: ast.parse(stored.source).body for stored in modules}
        self._inert = {
            name: inert(body, self._modules[name].package, {*self._modules})
            for name, body in self._bodies.items()
        }
        self._live: dict[str, set[int]] = {}
        self._words = {function}
        self._enter(module)

    def found(self) -> tuple[KeptStatements, ...]:
        while self._step():
            pass
        return tuple(
            KeptStatements(
                self._modules[name], tuple(self._bodies[name][at] for at in sorted(live))
            )
            for name, live in sorted(self._live.items())
        )

    def _enter(self, name: str) -> None:
        """Take a module in, with the packages that are imported before it."""
        for module_name in self._modules:
            if module_name not in self._live and (
                module_name == name or name.startswith(f"{module_name}.")
            ):
                self._live[module_name] = set()

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
