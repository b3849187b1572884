"""Say which cells a verb has built or published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.cli.output import say
from backfill_assets.intervals.text import counted
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.render.plan_words import Naming

_LIMIT = 5


def say_cells(naming: Naming, told: Mapping[str, CellsByModel]) -> None:
    """Say them, a line for each model, with the count last: what is published, what is gone, and what is only built."""
    published = told.get("published", CellsByModel())
    for name, cells in published.items():
        differ = naming.count(name, told["changed"][name])
        count = naming.count(name, cells)
        of, verb = counted(count, "cell"), "differs" if count == 1 else "differ"
        ranges = naming.ranges(name, cells, limit=_LIMIT)
        say(f"published {name}: {ranges}; {differ:,} of {of} {verb}", indent=2)
    for name, cells in told.get("gone", CellsByModel()).items():
        ranges = naming.ranges(name, cells, limit=_LIMIT)
        count = counted(naming.count(name, cells), "cell")
        say(f"gone {name}: {ranges}; {count}, which readers have lost", indent=2)
    for name, apart in (told.get("built", CellsByModel()) - published).items():
        ranges = naming.ranges(name, apart, limit=_LIMIT)
        say(f"built {name}: {ranges}; {counted(naming.count(name, apart), 'cell')}", indent=2)
