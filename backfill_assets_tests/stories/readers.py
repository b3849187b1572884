"""A reader who polls prod all the time, and the failure of one batch."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from deltalake import DeltaTable

from backfill_assets import resolve, testing
from backfill_assets_tests.looking import Looking
from backfill_assets_tests.stories.project import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from backfill_assets.reading import Resolved
    from backfill_assets_tests.stories.project import Project


@dataclass
class Poller(Looking):
    """Reads all models of prod again and again, and notes each different state that it saw.

    A state counts when two looks in a row found the same pointers: between two calls of `resolve`
    a promotion may happen, and that would be no mix.

    Attributes:
        project: whose prod.
        seen: every different state in the order in which they came: path and pin by model.
        rows: how many rows each table held in that state.
        errors: whatever went wrong; nothing must.
        looks: how often it looked.
    """

    every: ClassVar[float] = 0.05

    project: Project
    models: tuple[str, ...] = MODELS
    seen: list[dict[str, Resolved]] = field(default_factory=list)
    rows: list[dict[str, int]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    looks: int = 0

    def look(self) -> None:
        """Look once."""
        try:
            self._note()
        except Exception as error:  # noqa: BLE001 - a reader must never see one
            self.errors.append(f"{type(error).__name__}: {error}")

    def _note(self) -> None:
        found = {name: resolve(name, settings=self.project.settings) for name in self.models}
        counted = {name: _count(resolved) for name, resolved in found.items()}
        again = {name: resolve(name, settings=self.project.settings) for name in self.models}
        self.looks += 1
        if found == again and (not self.seen or self.seen[-1] != found):
            self.seen.append(found)
            self.rows.append(counted)


def _count(resolved: Resolved) -> int:
    return (
        DeltaTable(resolved.path, version=resolved.delta_version).to_pyarrow_dataset().count_rows()
    )


class TransientError(RuntimeError):
    """The store of files did not answer for a moment."""


@contextmanager
def failing_at(model: str, day: date) -> Iterator[list[Exception]]:
    """Let every batch of a model that builds a day fail while it computes; gives the errors."""

    def builds_it(given: tuple[Any, ...]) -> bool:
        request = given[2].request
        first, end = request.interval.start.date(), request.interval.end.date()
        return request.model == model and first <= day < end

    error = TransientError(f"no answer for the files of {day}")
    with testing.failing_at("computed", error, when=builds_it) as raised:
        yield raised
