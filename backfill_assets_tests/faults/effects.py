"""Every effect that a command has on the state and on the tables, found rather than listed.

A write of the state is known by the method of the store that asks for it, and each may be met before
it, after it, or within: all said, but not committed. Of the tables, whatever function of `warehouse`
commits, creates or deletes.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from backfill_assets import engine, warehouse
from backfill_assets.state.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

TABLES = {
    "files.housekeeping": ("create_table", "evolve_table", "fence", "restore"),
    "files.cell_files": ("write_files", "copy_files", "join_files", "remove_folder"),
    "files.log_entry": ("set_cells", "exchange_files"),
    "rows.copies": ("copy_cells", "restore_cells"),
    "files.collection": ("delete_table",),
    "files.table_files": ("delete_files",),
}
BEFORE, WITHIN, AFTER = "before", "within", "after"
_BY_THE_CLOCK = ("heartbeat",)
"""Come when they come: no step of theirs has a number."""


class Effects:
    """Counts a process's effects, and tells of each moment: its name, its number, and when."""

    def __init__(self, met: Callable[[str, int, str], None]) -> None:
        self._met, self._counted, self._lock = met, Counter[str](), threading.Lock()
        self._replaced: list[tuple[object, object]] = []

    def watch(self) -> None:
        """Stand between the product and its effects from now on."""
        for package in (engine, warehouse):
            for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(found.name)
        self._watch_state()
        for module, names in TABLES.items():
            place = importlib.import_module(f"{warehouse.__name__}.{module}")
            for name in names:
                real = getattr(place, name)
                stepped = self._around(real, name)
                self._replaced.append((stepped, real))
                _put_everywhere(real, stepped)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Stand between them in a block, and leave everything as it was afterwards."""
        write = Database.write
        try:
            self.watch()
            yield
        finally:
            Database.write = write
            for new, real in self._replaced:
                _put_everywhere(new, real)
            self._replaced.clear()

    def _number(self, name: str) -> int:
        with self._lock:
            self._counted[name] += 1
            return self._counted[name]

    def _around(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(real)
        def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
            number = self._number(name)
            self._met(name, number, BEFORE)
            done = real(*given, **named)
            self._met(name, number, AFTER)
            return done

        return stepped

    def _watch_state(self) -> None:
        write = Database.write

        def stepped(database: Database, work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
            name = sys._getframe(1).f_code.co_name
            if name in _BY_THE_CLOCK:
                return write(database, lambda connection: work(connection, *given))
            number = self._number(name)

            def within(connection: Connection) -> Any:  # noqa: ANN401
                done = work(connection, *given)
                self._met(name, number, WITHIN)
                return done

            self._met(name, number, BEFORE)
            done = write(database, within)
            self._met(name, number, AFTER)
            return done

        Database.write = stepped  # type: ignore[method-assign]


def _put_everywhere(old: object, new: object) -> None:
    """Put a function in another's place wherever a module of ours holds it."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("backfill_assets."):
            for name, held in list(vars(module).items()):
                if held is old:
                    setattr(module, name, new)
