"""The smallest backfill that serves: how far back anybody reads, beside how far a plan goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph


def read_from(graph: Graph, furthest_read: Mapping[str, str], now: datetime) -> dict[str, datetime]:
    """Give per model where the part begins that a declared consumer reads, readers included.

    A model that nobody is declared to read, or whose reader's consumers are not known, has none.
    """
    found: dict[str, datetime] = {}
    for name in reversed(graph.order):
        model = graph.models[name]
        starts: list[datetime | None] = []
        if name in furthest_read:
            starts.append(model.cadence.floor(start_at(furthest_read[name], model.cadence.tz)))
        starts += [_through(graph, reader, name, found, now) for reader in graph.readers(name)]
        known = [start for start in starts if start is not None]
        if starts and len(known) == len(starts) and model.cadence.unit is not Unit.WHOLE:
            found[name] = min(known)
    return found


def _through(
    graph: Graph, reader: str, name: str, found: Mapping[str, datetime], now: datetime
) -> datetime | None:
    """Follow a reader's need to what it reads of the model."""
    if reader not in found:
        return None
    model, theirs = graph.models[reader], graph.models[name]
    upstream = next(up for up in model.reads if up.name == name)
    first = IntervalSet.of([Interval(found[reader], model.cadence.next(found[reader]))])
    read = cells_read(model.cadence, upstream, theirs.cadence, first, until=now)
    return instant_of(read.boundaries[0]) if read else theirs.cadence.start


def smaller_window(
    graph: Graph, name: str, cells: IntervalSet, since: datetime | None
) -> str | None:
    """Propose the smaller window, if the planned cells begin before anybody reads."""
    if since is None or not cells or cells.boundaries[0] >= epoch_of(since):
        return None
    cadence = graph.models[name].cadence
    needed = cells.within(epoch_of(since), cells.boundaries[-1])
    key = cadence.key(Interval(since, cadence.next(since)))
    return (
        f"its consumers read back to {key} only: --cutoff {key} --reason TEXT would do, "
        f"{cadence.count(needed)} of {cadence.count(cells)} cells"
    )
